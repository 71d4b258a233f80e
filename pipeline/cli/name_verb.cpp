// `ggufmill name`: parses and generates file names that follow GGUF's naming convention.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>

#include "pipeline/api/catalog.h"
#include "pipeline/api/describe.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;
namespace json = boost::json;

CommandSpec name_command() {
  CommandSpec spec;
  spec.usage = "ggufmill name (NAME.gguf... | --of MODEL)";
  spec.description =
      "Parse file names that follow GGUF's naming convention, "
      "BaseName-SizeLabel-FineTune-Version-Encoding-Type-Shard.gguf, without opening the files. The exit code is 3 if "
      "a name does not follow the convention, which requires a base name, a size, and a version. With --of, print the "
      "name built from a model's metadata.";
  spec.examples =
      "  ggufmill name Mixtral-8x7B-v0.1-Q4_K_M.gguf\n"
      "  ggufmill name --of out/model.gguf";
  spec.positional = "names";
  spec.many = true;
  spec.optional = true;
  auto add = spec.options.add_options();
  add("of", po::value<std::string>(), "print the file name for this model");
  add("encoding", po::value<std::string>(), "with --of: encoding to use instead of general.file_type");
  add("json", "print one JSON object per line, with each part as a string or null");
  add_kernel_options(spec.options);
  return spec;
}

int make_name(const std::string& path, const po::variables_map& values) {
  const auto context = open_context(values);
  if (!context) return fail(context.error());
  const auto model = context.value().inspect(path);
  if (!model) return fail(model.error());
  const auto encoding = value_or<std::string>(values, "encoding", {});
  std::puts(printable(conventional_name(model.value(), encoding)).c_str());
  return 0;
}

int name_verb(const Parsed& parsed) {
  if (const auto model = text_of(parsed.values, "of")) return make_name(*model, parsed.values);
  const auto names = value_or<Strings>(parsed.values, "names", {});
  if (names.empty()) return fail(usage_error("no name given", "usage: " + name_command().usage));
  int code = 0;
  for (const std::string& name : names) {
    const auto described = describe_name(name);
    if (!described) {
      code = fail(described.error());
      continue;
    }
    const json::object& description = described.value();
    std::vector<Row> rows;
    for (const auto& [part, text] : description)
      if (part != "name" && text.is_string()) rows.push_back({part, std::string(text.as_string())});
    if (parsed.values.count("json"))
      std::puts(to_json_text(description).c_str());
    else
      std::fputs(render_table({{name}, {""}}, rows).c_str(), stdout);
  }
  return code;
}

}  // namespace

const Verb kNameVerb{"name", OperationGroup::kEdit, "Parse or build file names of GGUF's naming convention",
                     name_command, name_verb};

}  // namespace ggufmill
