#include "pipeline/io/remote/xet_python.h"

#include <chrono>
#include <mutex>
#include <optional>

#include "pipeline/core/text.h"
#include "pipeline/io/command.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/remote/credentials.h"

namespace ggufmill::remote {
namespace {

constexpr std::string_view kAuthorization = "Authorization: Bearer ";
constexpr auto kMaxPythonStart = std::chrono::seconds(30);

Result<XetPython> find_python(const std::atomic<bool>* stop) {
  if (is_xet_disabled()) return XetPython{{}, "HF_HUB_DISABLE_XET is set"};
  for (const std::string& name : {environment("GGUFMILL_PYTHON"), std::string("python3"), std::string("python")}) {
    if (name.empty()) continue;
    const auto found = find_program(name);
    if (!found) continue;
    CommandOptions how;
    how.time_limit = kMaxPythonStart;
    how.stop = stop;
    const auto ran = run_command(xet_command(*found, xet_uploader()), how);
    if (ran && ran.value().exit_code == 0) return XetPython{*found, {}};
    if (!ran && ran.error().code == ExitCode::kInterrupted) return ran.error();
  }
  return XetPython{{}, "no Python here has hf_xet"};
}

}  // namespace

bool is_xet_disabled() {
  const std::string value = lower_case(environment("HF_HUB_DISABLE_XET"));
  return value == "1" || value == "on" || value == "yes" || value == "true";
}

Result<XetPython> python_with_xet(const std::atomic<bool>* stop) {
  static std::mutex mutex;
  static std::optional<XetPython> known;
  const std::scoped_lock lock(mutex);
  if (!known) {
    BOOST_OUTCOME_TRY(known, find_python(stop));
  }
  return *known;
}

std::string why_no_xet() {
  const auto python = python_with_xet(nullptr);
  return python ? python.value().why : python.error().what;
}

// Neither variables nor, by the program itself, the current folder can add to what Python imports. Packages that the
// user has installed for themselves (`pip install --user`) can.
std::vector<std::string> xet_command(const std::string& python, std::string_view program) {
  return {python, "-E", "-c", std::string(program)};
}

std::string token_in(const Access& access) {
  for (const std::string& header : access.headers)
    if (header.starts_with(kAuthorization)) return header.substr(kAuthorization.size());
  return {};
}

}  // namespace ggufmill::remote
