#include "pipeline/io/remote/xet_python.h"

#include <chrono>

#include "pipeline/core/text.h"
#include "pipeline/io/command.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/remote/credentials.h"

namespace ggufmill::remote {
namespace {

constexpr std::string_view kAuthorization = "Authorization: Bearer ";
constexpr auto kMaxPythonStart = std::chrono::seconds(30);

std::string find_python() {
  if (is_xet_disabled()) return {};
  for (const std::string& name : {environment("GGUFMILL_PYTHON"), std::string("python3"), std::string("python")}) {
    if (name.empty()) continue;
    const auto found = find_program(name);
    if (!found) continue;
    CommandOptions how;
    how.time_limit = kMaxPythonStart;
    const auto ran = run_command(xet_command(*found, xet_uploader()), how);
    if (ran && ran.value().exit_code == 0) return *found;
  }
  return {};
}

}  // namespace

bool is_xet_disabled() {
  const std::string value = lower_case(environment("HF_HUB_DISABLE_XET"));
  return value == "1" || value == "on" || value == "yes" || value == "true";
}

const std::string& python_with_xet() {
  static const std::string python = find_python();
  return python;
}

std::string why_no_xet() {
  if (!python_with_xet().empty()) return {};
  return is_xet_disabled() ? "HF_HUB_DISABLE_XET is set" : "no Python here has hf_xet";
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
