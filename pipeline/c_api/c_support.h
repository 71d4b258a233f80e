#pragma once
// Shared by the functions of ggufmill.h: handles, and the conversion of a Result to a status and an error.

#include <atomic>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/api/context.h"
#include "pipeline/c_api/ggufmill.h"
#include "pipeline/call/json_call.h"

struct ggufmill_error {
  std::vector<ggufmill::Error> errors;  // at least one; `also` of each is empty
  std::vector<std::string> messages;    // of each
  std::string text;                     // all messages
};

struct ggufmill_control {
  std::atomic<bool> stop{false};
  ggufmill_progress_function progress = nullptr;
  void* user_data = nullptr;
  // Set once the function has thrown an exception: it is not called again, and the operations with the control fail.
  std::atomic<bool> has_thrown{false};
};

struct ggufmill_context {
  std::shared_ptr<const ggufmill::Context> context;
  ggufmill::Caller caller = ggufmill::Caller::kProgram;  // how errors of operations name options
};

struct ggufmill_job {
  std::shared_ptr<const ggufmill::Context> context;
  ggufmill::Caller caller;  // as that of its context
  ggufmill::Batch batch;
};

struct ggufmill_plan {
  std::shared_ptr<const ggufmill::Context> context;
  ggufmill::Plan plan;
};

struct ggufmill_model {
  std::shared_ptr<const ggufmill::Context> context;
  std::string path;  // that it was opened with, as the output type
  ggufmill::OutType out_type;
  ggufmill::Model model;
};

namespace ggufmill::c {

using Strings = std::vector<std::string>;

// Calls `work(function)`, catches every exception, and converts the result to a status. Stores an error, or null, in
// `error` unless that is null.
ggufmill_status guarded_call(ggufmill_error** error, Status (*work)(const void* function),
                             const void* function) noexcept;
// Does the same for a function object that returns a Status. Allocates nothing before exceptions are caught, as a
// std::function would.
template <class Function>
ggufmill_status guarded(ggufmill_error** error, const Function& function) noexcept {
  return guarded_call(
      error, [](const void* it) -> Status { return (*static_cast<const Function*>(it))(); }, &function);
}
// Error of an operation whose progress function has thrown an exception.
Error progress_has_thrown();
// Does the same for an operation with a control, which may be null. Fails with exit code 2 if its function throws an
// exception, which is caught where it is called and stops the operation.
template <class Function>
ggufmill_status guarded(ggufmill_control* control, ggufmill_error** error, const Function& function) noexcept {
  return guarded(error, [&]() -> Status {
    const Status done = function();
    return control && control->has_thrown ? Status(progress_has_thrown()) : done;
  });
}

// A parameter that must not be null.
struct Needed {
  const char* name;
  const void* value;
};
// Fails with exit code 2 if one of the parameters is null.
Status require(std::initializer_list<Needed> parameters);

// Options in JSON, and the struct that they are bound to.
struct BoundOptions {
  std::vector<OperationOption> options;
  void* into;
};
// Reads a JSON object, which may be null. Fails with exit code 2 for values of the wrong kind and unknown options.
Status read_options(const char* text, const std::vector<BoundOptions>& bound);

// Returns a copy for the caller, to be freed with ggufmill_free().
char* copy_of(std::string_view text);

boost::json::array json_texts(const std::vector<std::string>& texts);

// Returns the flag to stop an operation; null without a control.
inline const std::atomic<bool>* stop_of(const ggufmill_control* control) { return control ? &control->stop : nullptr; }

// Passes progress on to the function of a control, which may be null. Measures time from its construction.
class ProgressCaller {
 public:
  explicit ProgressCaller(ggufmill_control* control) : control_(control) {}
  bool is_wanted() const { return control_ && control_->progress; }
  // Catches exceptions of the function, and stops the operation instead.
  void operator()(ggufmill_progress progress) const noexcept;

  // Returns a function for operations that only read; empty if nobody wants to know.
  std::function<void(std::uint64_t done, std::uint64_t total)> of_reading() const;

 private:
  ggufmill_control* control_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Calls an operation whose request names a pipeline file with a job that has been read.
Result<CalledOperation> call_on_job(const ggufmill_job& job, const char* operation, boost::json::object options,
                                    ggufmill_control* control = nullptr);
Result<CalledOperation> call_on_job(const ggufmill_job& job, const char* operation, const char* options,
                                    ggufmill_control* control = nullptr);
// A key of a function that ggufmill_call() replaces, and the option of the operation.
struct Renamed {
  const char* key;
  const char* option;
};

// Calls an operation for a function that ggufmill_call() replaces: `parameters` are options that the function has as
// parameters, and `options`, which may be null, is its JSON.
Result<CalledOperation> call_former(const ggufmill_context& context, const char* operation,
                                    boost::json::object parameters, const char* options = nullptr,
                                    std::initializer_list<Renamed> renamed = {}, ggufmill_control* control = nullptr);

// Returns the result of an operation that makes a pipeline file of its options: {pipeline, warnings}.
Result<boost::json::object> pipeline_of_operation(const ggufmill_context& context, const char* operation,
                                                  boost::json::object options);

// Passes the progress of plans on to a control.
class PlanProgress {
 public:
  explicit PlanProgress(ggufmill_control* control) : caller_(control) {}
  bool is_wanted() const { return caller_.is_wanted(); }
  void show(const Plan& plan, const Progress& now) {
    ggufmill_progress progress{};
    progress.bytes_read = now.bytes_read;
    progress.bytes_to_read = plan.bytes_read();
    progress.bytes_written = now.bytes_written;
    for (const PlannedOutput& output : plan.outputs)
      for (const PlannedTensor& tensor : output.tensors) progress.bytes_to_write += tensor.bytes;
    progress.tensor = now.tensor ? now.tensor->c_str() : "";
    caller_(progress);
  }

 private:
  ProgressCaller caller_;
};

}  // namespace ggufmill::c
