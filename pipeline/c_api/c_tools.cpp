// Tools of the C interface: kernel modules and importance files.
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
