// Tools of the C interface: kernel modules.
#include <fmt/format.h>

#include <boost/json.hpp>

#include "pipeline/api/describe.h"
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
