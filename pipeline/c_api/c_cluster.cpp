// Cluster jobs of the C interface, by the operations that replace its functions.
#include <boost/json.hpp>

#include "pipeline/c_api/c_support.h"
#include "pipeline/core/json.h"
#include "pipeline/report/json_text.h"

namespace ggufmill::c {
namespace {

namespace json = boost::json;

// Calls an operation on the folder of a job. `parameters` are options that the function has as parameters.
Result<CalledOperation> call_on_folder(const char* operation, json::object parameters, const char* options,
                                       ggufmill_control* control = nullptr) {
  BOOST_OUTCOME_TRY(Context context, Context::create());
  const ggufmill_context with{std::make_shared<const Context>(std::move(context))};
  return call_former(with, operation, std::move(parameters), options, {}, control);
}

// Stores a result, if it is wanted, also that of a failure if `also_failed`.
Status store_result(const Result<CalledOperation>& called, char** into, bool also_failed = false) {
  if (!called) return called.error();
  if (into && (also_failed || !called.value().failure)) *into = copy_of(called.value().json);
  return called.value().failure ? Status(*called.value().failure) : ok();
}

}  // namespace
}  // namespace ggufmill::c

using namespace ggufmill;
using namespace ggufmill::c;

ggufmill_status ggufmill_job_submit(const ggufmill_job* job, const char* options, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"job", job}, {"json", json}}));
    BOOST_OUTCOME_TRY(const CalledOperation called, call_on_job(*job, "submit", options));
    *json = copy_of(called.json);  // outputs of a batch that cannot be made are in it
    return ok();
  });
}

ggufmill_status ggufmill_cluster_status(const char* folder, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"folder", folder}, {"json", json}}));
    return store_result(call_on_folder("status", {{"job", folder}}, nullptr), json);
  });
}

ggufmill_status ggufmill_cluster_part(const char* folder, uint64_t part, const char* options, ggufmill_control* control,
                                      char** json, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"folder", folder}}));
    return store_result(call_on_folder("part", {{"plan", folder}, {"part", part}}, options, control), json);
  });
}

ggufmill_status ggufmill_cluster_seal(const char* folder, const char* options, ggufmill_control* control, char** json,
                                      ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"folder", folder}}));
    return store_result(call_on_folder("seal", {{"plan", folder}}, options, control), json, true);
  });
}

ggufmill_status ggufmill_cluster_resume(const char* folder, const char* options, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"folder", folder}, {"json", json}}));
    return store_result(call_on_folder("resume", {{"folder", folder}}, options), json);
  });
}

ggufmill_status ggufmill_cluster_cancel(const char* folder, const char* options, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"folder", folder}}));
    return store_result(call_on_folder("cancel", {{"folder", folder}}, options), nullptr);
  });
}

ggufmill_status ggufmill_cluster_render(const char* folder, const char* options, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"folder", folder}, {"json", json}}));
    BOOST_OUTCOME_TRY(const CalledOperation called, call_on_folder("render", {{"folder", folder}}, options));
    BOOST_OUTCOME_TRY(const boost::json::value result, parse_json("result", called.json));
    *json = copy_of(to_json_text(result.at("manifests")));
    return ok();
  });
}
