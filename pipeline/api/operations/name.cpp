// `name`: parses and builds file names that follow GGUF's naming convention.

#include <fmt/format.h>

#include "pipeline/api/operations/context_options.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/core/text.h"
#include "stages/gguf/file_name.h"
#include "stages/huggingface/model_id.h"
#include "stages/quantize/recipe.h"

namespace ggufmill {
namespace {

constexpr SharedVerb kNameVerb{
    .name = "name",
    .summary = "Parse or build file names of GGUF's naming convention",
    .description =
        "Parse file names that follow GGUF's naming convention, "
        "BaseName-SizeLabel-FineTune-Version-Encoding-Type-Shard.gguf, without opening the files. The exit code is 3 "
        "if a name does not follow the convention, which requires a base name, a size, and a version. With --of, print "
        "the name built from a model's metadata.",
    .examples =
        "  ggufmill name Mixtral-8x7B-v0.1-Q4_K_M.gguf\n"
        "  ggufmill name --of out/model.gguf",
    .usage = "(NAME.gguf... | --of MODEL)"};

// ---- parsing ----

struct NameRequest {
  std::string name{};
};

struct ParsedName : gguf::FileName {
  std::string name;  // all of it
};

Error name_error(const std::string& name) {
  const gguf::NameFaults explained = gguf::explain_file_name(name);
  std::string faults, parts;
  for (const std::string& fault : explained.faults) faults += (faults.empty() ? "" : "; ") + fault;
  const auto add = [&](const char* what, const std::optional<std::string>& part) {
    if (part && !part->empty())
      parts += fmt::format("{}{} {}", parts.empty() ? "found " : ", ", what, quoted_name(*part));
  };
  const gguf::FileName& found = explained.found;
  add("sidecar", found.sidecar);
  add("base name", found.base_name);
  add("size", found.size_label);
  add("finetune", found.finetune);
  add("version", found.version);
  add("encoding", found.encoding);
  add("type", found.type);
  add("shard", found.shard);
  return {ExitCode::kVerification, name, "does not follow the GGUF naming convention: " + faults, parts,
          explained.better.empty()
              ? "a name needs at least BaseName-SizeLabel-Version.gguf, for example Mine-7B-v1.0-Q8_0.gguf"
              : fmt::format("for example {}", explained.better)};
}

Result<Answer<ParsedName>> run_name(const Context&, const NameRequest& request, const Call&) {
  const auto parsed = gguf::parse_file_name(request.name);
  if (!parsed) return name_error(request.name);
  return Answer<ParsedName>{{*parsed, request.name}};
}

// The parts besides the name, in the order of the convention.
std::vector<ResultMember> parts_of_name() {
  namespace json = boost::json;
  const auto part = [](std::string_view name, std::optional<std::string> gguf::FileName::*member,
                       std::string_view doc) {
    return result<ParsedName>(
        name,
        [member](const ParsedName& it) {
          return std::optional(it.*member ? json::value(*(it.*member)) : json::value());
        },
        doc);
  };
  using Name = gguf::FileName;
  return {part("sidecar", &Name::sidecar, "what the file is for, such as mmproj"),
          result<ParsedName>(
              "base_name", [](const ParsedName& it) { return std::optional(json::value(it.base_name)); },
              "name of the model"),
          part("size_label", &Name::size_label, "size of the model"),
          part("finetune", &Name::finetune, "what the model was tuned for"),
          part("version", &Name::version, "version of the model"),
          part("encoding", &Name::encoding, "types of the tensors"),
          part("type", &Name::type, "LoRA or vocab"),
          part("shard", &Name::shard, "number of the shard, and of all shards")};
}

void print_name(const ParsedName& name, TextOutput& to) {
  to.table = Table{{{name.name}, {""}}, {}};
  boost::json::object parts;
  for (const ResultMember& each : parts_of_name()) each.write(&name, parts);
  for (const auto& [part, text] : parts)
    if (text.is_string()) to.table->rows.push_back({part, std::string(text.as_string())});
}

// ---- building ----

struct NameOfRequest {
  std::string path{}, encoding{};
  OutType out_type = OutType::kAuto;
};

struct BuiltName {
  std::string name;
};

// Returns the file name for a model. An empty `encoding` stands for that of general.file_type.
std::string conventional_name(const Model& model, std::string encoding) {
  const MetadataValue* type = model.metadata.find("general.file_type");
  if (const auto number = type ? as_unsigned(*type) : std::nullopt; encoding.empty() && number)
    for (const BuiltInRecipe& built_in : built_in_recipes())
      if (encoding.empty() && heading_of(built_in).file_type == *number) encoding = built_in.name;
  return gguf::file_name_of(model, huggingface::size_label(huggingface::count_weights(model.tensors)), encoding);
}

Result<Answer<BuiltName>> run_name_of(const Context& context, const NameOfRequest& request, const Call&) {
  BOOST_OUTCOME_TRY(const Model model, context.inspect(request.path, request.out_type));
  return Answer<BuiltName>{{conventional_name(model, request.encoding)}};
}

}  // namespace

OperationSpec name_operation() {
  return operation(OperationOf<NameRequest, ParsedName>{
      .name = "name",
      .group = OperationGroup::kEdit,
      .summary = "Parse a file name of GGUF's naming convention",
      .description =
          "Parse a file name that follows GGUF's naming convention, "
          "BaseName-SizeLabel-FineTune-Version-Encoding-Type-Shard.gguf, without opening the file. The convention "
          "requires a base name, a size, and a version; @error3: the name does not follow it.",
      .has_json_lines = true,
      .shared = &kNameVerb,
      .options = {option("name", &NameRequest::name, text(), "the file name").each_word("NAME")},
      .result = {std::vector<ResultMember>{result("name", &ParsedName::name, "the name")} + parts_of_name()},
      .context = ContextUse::kNone,
      .run = run_name,
      .print = print_name});
}

OperationSpec name_of_operation() {
  return operation(OperationOf<NameOfRequest, BuiltName>{
      .name = "name_of",
      .group = OperationGroup::kEdit,
      .summary = "Build the file name of a model by GGUF's naming convention",
      .description = "Build the file name of a model from its metadata, by GGUF's naming convention.",
      .prints_data = true,
      .shared = &kNameVerb,
      .choice = "--of",
      .options =
          {option("path", &NameOfRequest::path, path(), "print the file name for this model").choice("of", "MODEL"),
           option("encoding", &NameOfRequest::encoding, text(), "encoding to use instead of general.file_type"),
           option("outtype", &NameOfRequest::out_type, enumeration<OutType>(kOutTypeWords), kOutTypeHelp)},
      .result = {.members = {result("name", &BuiltName::name, "the file name")}, .is_alone = true},
      .context = ContextUse::kCheckpoints,
      .run = run_name_of,
      .print = [](const BuiltName& it, TextOutput& to) { to.out = printable(it.name) + "\n"; }});
}

}  // namespace ggufmill
