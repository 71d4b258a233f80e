#include "pipeline/core/error.h"

#include <fmt/format.h>

#include <cstring>
#include <sstream>
#include <utility>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

void append_indented(std::string& out, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += "  " + printable(line) + "\n";
}

}  // namespace

std::string render(const Error& error) {
  std::string out = error.where.empty() ? "" : printable(error.where) + ": ";
  out += "error: " + printable(error.what) + "\n";
  append_indented(out, error.detail);
  if (!error.help.empty()) append_indented(out, "help: " + error.help);
  return out;
}

Error usage_error(std::string what, std::string help) {
  return {ExitCode::kUsage, "", std::move(what), "", std::move(help)};
}

Error input_error(std::string where, std::string what, std::string help) {
  return {ExitCode::kBadInput, std::move(where), std::move(what), "", std::move(help)};
}

Error io_error(std::string path, std::string action, int errno_value) {
  return {ExitCode::kIo, std::move(path), fmt::format("cannot {}: {}", action, std::strerror(errno_value)), "", ""};
}

Error error_at(const Origin& origin, std::string what, std::string help) {
  return {ExitCode::kUsage, origin.where, std::move(what), origin.excerpt, std::move(help)};
}

void Diagnostics::add(Error error) {
  const std::vector<Error> also = std::exchange(error.also, {});
  errors_.push_back(std::move(error));
  for (const Error& other : also) add(other);
}

Error Diagnostics::together() const {
  Error first = errors_.front();
  first.also.assign(errors_.begin() + 1, errors_.end());
  return first;
}

}  // namespace ggufmill
