// Tools of the C interface: kernel modules, edit, importance files.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <optional>

#include "pipeline/api/describe.h"
#include "pipeline/api/merge_importance.h"
#include "pipeline/api/open_model.h"
#include "pipeline/c_api/c_options.h"
#include "pipeline/c_api/c_support.h"
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
