// Tools of the C interface: verify, compare, hash, edit, importance files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>
#include <optional>

#include "pipeline/api/describe.h"
#include "pipeline/api/merge_importance.h"
#include "pipeline/api/open_model.h"
#include "pipeline/c_api/c_options.h"
#include "pipeline/c_api/c_support.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill::c {
namespace {

namespace json = boost::json;

Result<std::string> check_module(const Context& context, const char* path, const char* text,
                                 ggufmill_control* control) {
  ConformanceOptions it;
  it.module = path;
  it.loaded = &context.kernels();
  Options options(text);
  options.read("reference", it.reference);
  options.read("types", it.types);
  options.read("times", it.times);
  BOOST_OUTCOME_TRY(options.finish());
  it.stop = stop_of(control);
  BOOST_OUTCOME_TRY(const ModuleConformance checked, ggufmill::check_module(it));
  return to_json_text(describe_conformance(checked));
}

Result<std::string> verify(const Context& context, const char* path, const char* text, ggufmill_control* control) {
  VerifyOptions it;
  bool spec = false;
  Options options(text);
  options.read("manifest", it.manifest);
  options.read("against", it.against);
  options.read("allow_missing", it.allow_missing);
  options.read("threads", it.threads, Limits::kMaxThreads);
  options.read("spec", spec);
  BOOST_OUTCOME_TRY(options.finish());
  if (spec) {
    if (!it.manifest.empty() || !it.against.empty() || it.allow_missing || it.threads != 0)
      return usage_error("the option 'spec' reads only the header, and options for reading weights are given with it",
                         "omit 'spec', or omit 'manifest', 'against', 'allow_missing', and 'threads'");
    BOOST_OUTCOME_TRY(const Model model, context.inspect(path));
    return to_json_text(describe_findings(path, gguf::check_specification(path, model)));
  }
  it.stop = stop_of(control);
  it.progress = ProgressCaller(control).of_reading();
  BOOST_OUTCOME_TRY(const Verification verified, context.verify(path, it));
  json::object described = describe_verification(verified);
  described["warnings"] = json_texts(verified.warnings);
  return to_json_text(described);
}

Result<std::string> compare(const Context& context, const char* a, const char* b, const char* text,
                            ggufmill_control* control) {
  ComparisonOptions it;
  std::optional<std::string> memory;
  std::string out_type = "auto";
  Options options(text);
  options.read("imatrix", it.importance);
  options.read("outtype", out_type);
  options.read("html", it.html);
  options.read("overwrite", it.overwrite);
  options.read("memory", memory);
  options.read("threads", it.threads, Limits::kMaxThreads);
  BOOST_OUTCOME_TRY(options.finish());
  if (memory) {
    BOOST_OUTCOME_TRY(const std::uint64_t bytes, parse_bytes(*memory));
    it.memory = bytes;
  }
  BOOST_OUTCOME_TRY(it.out_type, parse_out_type(out_type, "outtype"));
  it.stop = stop_of(control);
  it.progress = ProgressCaller(control).of_reading();
  BOOST_OUTCOME_TRY(const Comparison comparison, context.compare(a, b, it));
  std::string report;
  report_json(comparison.report, [&](std::string_view piece) { report += piece; });
  return fmt::format("{{\"report\":{},\"warnings\":{}}}", report, to_json_text(json_texts(comparison.warnings)));
}

Result<std::vector<HashKind>> hash_kinds(const Strings& names) {
  std::vector<HashKind> kinds;
  for (std::size_t i = 0; i < std::size(kHashNames); ++i)
    if (std::ranges::count(names, kHashNames[i]) != 0) kinds.push_back(static_cast<HashKind>(i));
  for (const std::string& name : names)
    if (std::ranges::count(kHashNames, name) == 0)
      return usage_error(fmt::format("unknown kind of hash {}", quoted_name(name)),
                         fmt::format("the kinds are {}", fmt::join(kHashNames, ", ")));
  return kinds;
}

Result<std::string> hash(const Context& context, const char* path, const char* text, ggufmill_control* control) {
  HashOptions it;
  Strings kinds;
  std::string list;
  Options options(text);
  options.read("kinds", kinds);
  options.read("tensors", it.tensors);
  options.read("check", list);
  BOOST_OUTCOME_TRY(options.finish());
  KnownHashes known;
  if (!list.empty()) {
    BOOST_OUTCOME_TRY(known, read_hashes(list));
  }
  BOOST_OUTCOME_TRY(it.kinds, hash_kinds(kinds));
  if (it.kinds.empty()) it.kinds = {list.empty() ? HashKind::kXxh64 : strongest_of(known)};
  it.stop = stop_of(control);
  BOOST_OUTCOME_TRY(const Model model, context.inspect(path));
  BOOST_OUTCOME_TRY(const std::vector<Hash> hashes, hash_model(model, path, it));
  if (!list.empty()) {
    BOOST_OUTCOME_TRY(compare_hashes(hashes, known, list));
  }
  return to_json_text(describe_hashes(path, hashes));
}

// Adds the changes that texts of the form KEY=... describe.
Status read_assignments(const Strings& set, const Strings& set_file, const Strings& rename, MetadataOptions& changes) {
  for (const std::string& text : rename) {
    BOOST_OUTCOME_TRY(auto sides, split_assignment(text, "rename"));
    changes.rename.push_back(std::move(sides));
  }
  for (const std::string& text : set) {
    BOOST_OUTCOME_TRY(const auto sides, split_assignment(text, "set"));
    BOOST_OUTCOME_TRY(MetadataSetting setting, parse_setting(sides.first, sides.second));
    changes.set.push_back(std::move(setting));
  }
  for (const std::string& text : set_file) {
    BOOST_OUTCOME_TRY(const auto sides, split_assignment(text, "set_file"));
    BOOST_OUTCOME_TRY(MetadataSetting setting, file_setting(sides.first, sides.second));
    changes.set.push_back(std::move(setting));
  }
  return ok();
}

Result<WrittenValue> written_of(const json::value& value) {
  WrittenValue written;
  if (const json::array* const items = value.if_array()) {
    written.kind = WrittenValue::Kind::kList;
    for (const json::value& item : *items) {
      BOOST_OUTCOME_TRY(written.items.emplace_back(), written_of(item));
    }
    return written;
  }
  if (value.is_object() || value.is_null())
    return usage_error(fmt::format("{} is not a metadata value", to_json_text(value)),
                       "a value is a string, a number, true, false, or a list");
  written.is_text = value.is_string();
  written.text = value.is_string() ? std::string(value.get_string()) : to_json_text(value);
  return written;
}

Status read_values(const json::object& values, MetadataOptions& changes) {
  for (const auto& member : values) {
    BOOST_OUTCOME_TRY(WrittenValue written, written_of(member.value()));
    BOOST_OUTCOME_TRY(MetadataSetting setting, setting_of(std::string(member.key()), std::move(written)));
    changes.set.push_back(std::move(setting));
  }
  return ok();
}

Result<std::string> edit(const Context& context, const char* path, const char* text, ggufmill_control* control) {
  EditOptions it;
  it.types = context.recipes().types();
  Strings set, set_file, rename;
  json::object values;
  Options options(text);
  options.read("values", values);
  options.read("set", set);
  options.read("set_file", set_file);
  options.read("remove", it.changes.remove);
  options.read("rename", rename);
  options.read("output", it.output);
  options.read("overwrite", it.overwrite);
  options.read("dry_run", it.dry_run);
  BOOST_OUTCOME_TRY(options.finish());
  BOOST_OUTCOME_TRY(read_assignments(set, set_file, rename, it.changes));
  BOOST_OUTCOME_TRY(read_values(values, it.changes));
  it.stop = stop_of(control);
  BOOST_OUTCOME_TRY(const Edited edited, edit_metadata(path, it));
  Strings keys, changes;
  for (const MetadataChange& change : edited.changes) {
    keys.push_back(change.key);
    if (!change.new_key.empty()) keys.push_back(change.new_key);
    changes.push_back(describe(change));
  }
  return to_json_text(json::object{{"keys", json_texts(keys)},
                                   {"changes", json_texts(changes)},
                                   {"in_place", edited.in_place},
                                   {"restored", edited.restored},
                                   {"bytes", edited.bytes},
                                   {"warnings", json_texts(edited.warnings)}});
}

Result<std::string> merge(const Context& context, const char* text) {
  Strings inputs;
  std::string output;
  unsigned chunk_size = 0;
  bool overwrite = false;
  Options options(text);
  options.read("inputs", inputs);
  options.read("output", output);
  options.read("chunk_size", chunk_size);
  options.read("overwrite", overwrite);
  BOOST_OUTCOME_TRY(options.finish());
  if (inputs.empty() || output.empty())
    return usage_error("an importance file needs inputs and an output", "set the options 'inputs' and 'output'");
  BOOST_OUTCOME_TRY(const Merged merged,
                    merge_importance(inputs, output, chunk_size ? std::optional(chunk_size) : std::nullopt, overwrite,
                                     gguf_opener(context.kernels().types())));
  return to_json_text(
      json::object{{"entries", merged.entries}, {"bytes", merged.bytes}, {"warnings", json_texts(merged.warnings)}});
}

// Runs a tool whose result is a text.
template <class Tool>
ggufmill_status text_result(char** into, ggufmill_error** error, std::initializer_list<Needed> parameters,
                            const Tool& tool) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require(parameters));
    BOOST_OUTCOME_TRY(require({{"json", into}}));
    BOOST_OUTCOME_TRY(const std::string text, tool());
    *into = copy_of(text);
    return ok();
  });
}

}  // namespace
}  // namespace ggufmill::c

using namespace ggufmill;
using namespace ggufmill::c;

ggufmill_status ggufmill_check_module(const ggufmill_context* context, const char* path, const char* options,
                                      ggufmill_control* control, char** json, ggufmill_error** error) {
  return text_result(json, error, {{"context", context}, {"path", path}},
                     [&] { return c::check_module(*context->context, path, options, control); });
}

ggufmill_status ggufmill_verify(const ggufmill_context* context, const char* path, const char* options,
                                ggufmill_control* control, char** json, ggufmill_error** error) {
  return text_result(json, error, {{"context", context}, {"path", path}},
                     [&] { return c::verify(*context->context, path, options, control); });
}

ggufmill_status ggufmill_compare(const ggufmill_context* context, const char* a, const char* b, const char* options,
                                 ggufmill_control* control, char** json, ggufmill_error** error) {
  return text_result(json, error, {{"context", context}, {"a", a}, {"b", b}},
                     [&] { return c::compare(*context->context, a, b, options, control); });
}

ggufmill_status ggufmill_hash(const ggufmill_context* context, const char* path, const char* options,
                              ggufmill_control* control, char** json, ggufmill_error** error) {
  return text_result(json, error, {{"context", context}, {"path", path}},
                     [&] { return c::hash(*context->context, path, options, control); });
}

ggufmill_status ggufmill_edit(const ggufmill_context* context, const char* path, const char* options,
                              ggufmill_control* control, char** json, ggufmill_error** error) {
  return text_result(json, error, {{"context", context}, {"path", path}},
                     [&] { return c::edit(*context->context, path, options, control); });
}

ggufmill_status ggufmill_importance_describe(const ggufmill_context* context, const char* path, char** json,
                                             ggufmill_error** error) {
  return text_result(json, error, {{"context", context}, {"path", path}}, [&]() -> Result<std::string> {
    BOOST_OUTCOME_TRY(const boost::json::object described,
                      describe_importance(path, gguf_opener(context->context->kernels().types())));
    return to_json_text(described);
  });
}

ggufmill_status ggufmill_importance_merge(const ggufmill_context* context, const char* options, char** json,
                                          ggufmill_error** error) {
  return text_result(json, error, {{"context", context}}, [&] { return c::merge(*context->context, options); });
}
