// Operations of the C interface.
#include <fmt/format.h>

#include <boost/json.hpp>

#include "pipeline/c_api/c_support.h"
#include "pipeline/call/json_call.h"
#include "pipeline/core/json.h"

namespace ggufmill::c {
namespace {

namespace json = boost::json;

// `request`: text, or the members of the object.
template <class Request>
Result<CalledOperation> call(const Context& context, Caller caller, const char* operation, const Request& request,
                             ggufmill_control* control, const Batch* jobs = nullptr) {
  Call how{[stop = stop_of(control)] { return stop; }, ProgressCaller(control).of_reading()};
  how.jobs = jobs;
  PlanProgress progress(control);
  if (progress.is_wanted()) {
    how.run_progress = [&](const Plan& plan, const Progress& now) { progress.show(plan, now); };
    how.step_progress = [read = how.progress](const std::string&, std::uint64_t done, std::uint64_t total) {
      read(done, total);
    };
  }
  return call_operation(context, operation, request, caller, how);
}

template <class Request>
Result<CalledOperation> call(const ggufmill_context& context, const char* operation, const Request& request,
                             ggufmill_control* control) {
  return call(*context.context, context.caller, operation, request, control);
}

}  // namespace

Result<CalledOperation> call_former(const ggufmill_context& context, const char* operation, json::object parameters,
                                    const char* options, std::initializer_list<Renamed> renamed,
                                    ggufmill_control* control) {
  BOOST_OUTCOME_TRY(json::object members, request_of(options ? options : ""));
  for (const Renamed& each : renamed)
    if (const json::value* const value = members.if_contains(each.key)) {
      if (members.contains(each.option))
        return usage_error(fmt::format("the options '{}' and '{}' cannot be used together", each.option, each.key),
                           fmt::format("give all of them in '{}'", each.option));
      json::value copy = *value;  // the insertion moves the members
      members.erase(each.key);
      members[each.option] = std::move(copy);
    }
  for (auto& [name, value] : parameters) {
    if (members.contains(name))
      return usage_error(fmt::format("unknown option '{}'", std::string_view(name)), "omit it");
    members[name] = std::move(value);
  }
  return call(context, operation, members, control);
}

Result<CalledOperation> call_on_job(const ggufmill_job& job, const char* operation, json::object options,
                                    ggufmill_control* control) {
  for (const char* const name : {"job", "set", "parameters"})
    if (options.contains(name)) return usage_error(fmt::format("unknown option '{}'", name), "omit it");
  options["job"] = job.batch.jobs.front().job.file;
  return call(*job.context, job.caller, operation, options, control, &job.batch);
}

Result<CalledOperation> call_on_job(const ggufmill_job& job, const char* operation, const char* options,
                                    ggufmill_control* control) {
  BOOST_OUTCOME_TRY(json::object members, request_of(options ? options : ""));
  return call_on_job(job, operation, std::move(members), control);
}

Result<json::object> pipeline_of_operation(const ggufmill_context& context, const char* operation,
                                           json::object options) {
  options["emit_pipeline"] = true;
  BOOST_OUTCOME_TRY(const CalledOperation called, call(context, operation, options, nullptr));
  BOOST_OUTCOME_TRY(json::value result, parse_json("result", called.json));
  return std::move(result.as_object());
}

}  // namespace ggufmill::c

using namespace ggufmill;
using namespace ggufmill::c;

// ggufmill_call(), whose name is a type of the kernels' header in this source.
#define GGUFMILL_TEXT_OF(word) #word
#define GGUFMILL_LABEL_OF(prefix, name) GGUFMILL_TEXT_OF(prefix) name
extern "C" GGUFMILL_API ggufmill_status
exported_call(const ggufmill_context* context, const char* operation, const char* request, ggufmill_control* control,
              char** result, ggufmill_error** error) __asm__(GGUFMILL_LABEL_OF(__USER_LABEL_PREFIX__, "ggufmill_call"));

ggufmill_status exported_call(const ggufmill_context* context, const char* operation, const char* request,
                              ggufmill_control* control, char** result, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"operation", operation}, {"result", result}}));
    BOOST_OUTCOME_TRY(const CalledOperation called,
                      call(*context, operation, std::string_view(request ? request : ""), control));
    *result = copy_of(called.json);
    return called.failure ? Status(*called.failure) : ok();
  });
}
