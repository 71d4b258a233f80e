// Versions, strings, errors and controls of the C interface.
#include "pipeline/c_api/c_support.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <new>

#include "pipeline/api/operations/context_options.h"
#include "pipeline/api/operations/given_options.h"
#include "pipeline/call/json_call.h"
#include "pipeline/io/io_service.h"
#include "pipeline/report/json_text.h"

namespace ggufmill::c {
namespace {

// Reported when there is no memory for another error; never freed.
ggufmill_error& out_of_memory() {
  static ggufmill_error error = [] {
    ggufmill_error made{{{ExitCode::kTransient, "", "out of memory", "", ""}}, {}, {}};
    made.text = render(made.errors.front());
    made.messages.push_back(made.text);
    return made;
  }();
  return error;
}

// Options as keys of JSON.
const OptionNames& keys() {
  static const OptionNames kNames(Caller::kProgram, context_options(ContextUse::kCheckpoints));
  return kNames;
}

ggufmill_status fail(const Error& first, ggufmill_error** error) {
  if (error) {
    Diagnostics all;
    all.add(keys().in_error(first));
    auto made = std::make_unique<ggufmill_error>();
    made->errors = all.errors();
    for (const Error& each : made->errors) made->text += made->messages.emplace_back(render(each));
    *error = made.release();
  }
  return static_cast<ggufmill_status>(first.code);
}

ggufmill_status fail_without_memory(ggufmill_error** error) {
  if (error) *error = &out_of_memory();
  return GGUFMILL_ERROR_TRANSIENT;
}

const Error* find_error(const ggufmill_error* error, std::size_t index) {
  return error && index < error->errors.size() ? &error->errors[index] : nullptr;
}

const char* text_of(const ggufmill_error* error, std::size_t index, std::string Error::*part) {
  const Error* const one = find_error(error, index);
  return one ? (one->*part).c_str() : "";
}

// Made before the first use, while there is memory.
[[maybe_unused]] const ggufmill_error& kMadeEarly = out_of_memory();

}  // namespace

ggufmill_status guarded_call(ggufmill_error** error, Status (*work)(const void* function),
                             const void* function) noexcept {
  if (error) *error = nullptr;
  try {
    try {
      const Status done = work(function);
      return done ? GGUFMILL_SUCCESS : fail(done.error(), error);
    } catch (...) {
      return fail(error_of_exception(), error);
    }
  } catch (...) {
    return fail_without_memory(error);
  }
}

Status require(std::initializer_list<Needed> parameters) {
  for (const Needed& each : parameters)
    if (!each.value) return usage_error(fmt::format("the parameter '{}' is null", each.name));
  return ok();
}

Status read_options(const char* text, const std::vector<BoundOptions>& bound) {
  std::vector<OperationOption> all;
  for (const BoundOptions& each : bound) all.insert(all.end(), each.options.begin(), each.options.end());
  BOOST_OUTCOME_TRY(const boost::json::object members, request_of(text ? text : ""));
  GivenOptions given(OptionNames(Caller::kProgram, all));
  BOOST_OUTCOME_TRY(add_members(members, all, given));
  for (const BoundOptions& each : bound) {
    BOOST_OUTCOME_TRY(given.read(each.options, {}, each.into));
  }
  return ok();
}

char* copy_of(std::string_view text) {
  char* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (!copy) throw std::bad_alloc();
  std::ranges::copy(text, copy);
  copy[text.size()] = '\0';
  return copy;
}

boost::json::array json_texts(const std::vector<std::string>& texts) {
  boost::json::array list;
  for (const std::string& text : texts) list.emplace_back(keys().in_message(text));
  return list;
}

Error progress_has_thrown() {
  return usage_error("the progress function has thrown an exception, so the operation was stopped",
                     "catch exceptions in the function, then use a new control");
}

void ProgressCaller::operator()(ggufmill_progress progress) const noexcept {
  if (!is_wanted() || control_->has_thrown) return;
  progress.size = sizeof progress;
  progress.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  try {
    control_->progress(&progress, control_->user_data);
  } catch (...) {
    control_->has_thrown = true;
    control_->stop = true;
  }
}

std::function<void(std::uint64_t, std::uint64_t)> ProgressCaller::of_reading() const {
  if (!is_wanted()) return {};
  return [caller = *this](std::uint64_t done, std::uint64_t total) {
    ggufmill_progress progress{};
    progress.bytes_read = done;
    progress.bytes_to_read = total;
    progress.tensor = "";
    caller(progress);
  };
}

}  // namespace ggufmill::c

using namespace ggufmill;
using namespace ggufmill::c;

const char* ggufmill_version(void) { return GGUFMILL_VERSION; }
int ggufmill_version_number(void) { return GGUFMILL_VERSION_NUMBER; }

void ggufmill_free(char* text) { std::free(text); }

size_t ggufmill_error_count(const ggufmill_error* error) { return error ? error->errors.size() : 0; }

ggufmill_status ggufmill_error_code(const ggufmill_error* error, size_t index) {
  const Error* const one = find_error(error, index);
  return one ? static_cast<ggufmill_status>(one->code) : GGUFMILL_SUCCESS;
}

const char* ggufmill_error_where(const ggufmill_error* error, size_t index) {
  return text_of(error, index, &Error::where);
}
const char* ggufmill_error_what(const ggufmill_error* error, size_t index) {
  return text_of(error, index, &Error::what);
}
const char* ggufmill_error_detail(const ggufmill_error* error, size_t index) {
  return text_of(error, index, &Error::detail);
}
const char* ggufmill_error_help(const ggufmill_error* error, size_t index) {
  return text_of(error, index, &Error::help);
}
const char* ggufmill_error_message(const ggufmill_error* error, size_t index) {
  return find_error(error, index) ? error->messages[index].c_str() : "";
}
const char* ggufmill_error_text(const ggufmill_error* error) { return error ? error->text.c_str() : ""; }

void ggufmill_error_free(ggufmill_error* error) {
  if (error != &out_of_memory()) delete error;
}

ggufmill_control* ggufmill_control_create(ggufmill_progress_function progress, void* user_data) {
  auto* const control = new (std::nothrow) ggufmill_control;
  if (!control) return nullptr;
  control->progress = progress;
  control->user_data = user_data;
  return control;
}

void ggufmill_control_cancel(ggufmill_control* control) {
  if (control) control->stop = true;
}

void ggufmill_control_free(ggufmill_control* control) { delete control; }
