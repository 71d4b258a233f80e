#include "pipeline/core/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {
namespace {

void append_indented(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    out += "  " + printable(text.substr(0, end)) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Returns a place, such as "./a.yaml:1:2", with the path in the same form however it is spelled. Folders that are links
// are followed. Addresses stay as they are.
std::string normal_place(const std::string& place) {
  if (place.find("://") != place.npos) return place;
  std::error_code failed;
  const fs::path path = fs::weakly_canonical(fs::absolute(place, failed), failed);
  return failed ? place : path.string();
}

// Returns the place and the text that errors about the same problem share.
std::pair<std::string, std::string> key_of(const Error& error) {
  if (!error.unread.empty()) return {normal_place(error.unread), ""};
  return {normal_place(error.where), error.what};
}

}  // namespace

Error::Error() = default;
Error::Error(ExitCode exit_code, std::string place, std::string problem, std::string details, std::string remedy)
    : code(exit_code),
      where(std::move(place)),
      what(std::move(problem)),
      detail(std::move(details)),
      help(std::move(remedy)) {}
Error::Error(const Error&) = default;
Error::Error(Error&&) noexcept = default;
Error& Error::operator=(const Error&) = default;
Error& Error::operator=(Error&&) noexcept = default;
Error::~Error() = default;

std::string render(const Error& error) {
  std::string out = error.where.empty() ? "" : printable(with_plain_options(error.where)) + ": ";
  out += "error: " + printable(with_plain_options(error.what)) + "\n";
  append_indented(out, error.detail);
  if (!error.help.empty()) append_indented(out, "help: " + with_plain_options(error.help));
  return out;
}

Error usage_error(std::string what, std::string help) {
  return {ExitCode::kUsage, "", std::move(what), "", std::move(help)};
}

Error with_options(Error error, std::string_view help) {
  error.help = keys_or_options(as_for_keys(error.help), help);
  return error;
}

Error input_error(std::string where, std::string what, std::string help) {
  return {ExitCode::kBadInput, std::move(where), std::move(what), "", std::move(help)};
}

Error io_error(std::string path, std::string action, int errno_value) {
  // Memory may become available later.
  const ExitCode code = errno_value == ENOMEM ? ExitCode::kTransient : ExitCode::kIo;
  return {code, std::move(path), fmt::format("cannot {}: {}", action, std::strerror(errno_value)), "", ""};
}

Error error_at(const Origin& origin, std::string what, std::string help) {
  return {ExitCode::kUsage, origin.where, std::move(what), origin.excerpt, std::move(help)};
}

Error named_at(const Origin& origin, Error error, std::string help) {
  if (error.unread.empty() || origin.where.empty()) return error;
  Error placed = error_at(origin, fmt::format("{}: {}", error.where, error.what),
                          error.help.empty() ? std::move(help) : std::move(error.help));
  placed.code = error.code;
  placed.unread = std::move(error.unread);
  return placed;
}

void Diagnostics::add(Error error) {
  const std::vector<Error> also = std::exchange(error.also, {});
  if (error.where.empty() || seen_.insert(key_of(error)).second) errors_.push_back(std::move(error));
  for (const Error& other : also) add(other);
}

Error Diagnostics::together() const {
  Error first = errors_.front();
  first.also.assign(errors_.begin() + 1, errors_.end());
  return first;
}

}  // namespace ggufmill
