#include "pipeline/c_api/c_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json.hpp>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"

namespace ggufmill::c {

namespace json = boost::json;

namespace {
constexpr const char* kWhere = "options";
}

Options::Options(const char* text) {
  if (!text) return;
  auto parsed = parse_json(kWhere, text);
  if (!parsed) {
    Error error = parsed.error();
    error.code = ExitCode::kUsage;
    errors_.add(std::move(error));
  } else if (!parsed.value().is_object()) {
    errors_.add({ExitCode::kUsage, kWhere, "not a JSON object", "", "for example {\"overwrite\": true}"});
  } else {
    members_ = std::move(parsed.value().as_object());
  }
}

const json::value* Options::take(const char* name) {
  known_.emplace_back(name);
  const json::value* const value = members_.if_contains(name);
  return value && !value->is_null() ? value : nullptr;
}

void Options::refuse(const char* name, const std::string& wanted) {
  errors_.add({ExitCode::kUsage, kWhere, fmt::format("'{}' must be {}", name, wanted), "", ""});
}

void Options::read(const char* name, bool& into) {
  const json::value* const value = take(name);
  if (!value) return;
  if (value->is_bool())
    into = value->as_bool();
  else
    refuse(name, "true or false");
}

void Options::read(const char* name, std::string& into) {
  const json::value* const value = take(name);
  if (!value) return;
  if (value->is_string())
    into = value->as_string();
  else
    refuse(name, "a string");
}

void Options::read(const char* name, Strings& into) {
  const json::value* const value = take(name);
  if (!value) return;
  if (!value->is_array() || !std::ranges::all_of(value->as_array(), [](const auto& each) { return each.is_string(); }))
    return refuse(name, "a list of strings");
  into.clear();
  for (const json::value& each : value->as_array()) into.emplace_back(each.as_string());
}

void Options::read(const char* name, json::object& into) {
  const json::value* const value = take(name);
  if (!value) return;
  if (value->is_object())
    into = value->as_object();
  else
    refuse(name, "an object");
}

void Options::read(const char* name, std::uint64_t& into, std::uint64_t most) {
  const json::value* const value = take(name);
  if (!value) return;
  boost::system::error_code wrong;
  const auto number = value->to_number<std::uint64_t>(wrong);
  if (!value->is_number() || wrong || number > most)
    return refuse(name, most == UINT64_MAX ? "a number from 0" : fmt::format("a number from 0 to {}", most));
  into = number;
}

void Options::read(const char* name, unsigned& into, std::uint64_t most) {
  std::uint64_t number = into;
  read(name, number, most);
  into = static_cast<unsigned>(number);
}

void Options::read(const char* name, std::size_t& into, const Strings& words) {
  std::optional<std::string> word;
  read(name, word);
  if (!word) return;
  const auto found = std::ranges::find(words, *word);
  if (found == words.end()) return refuse(name, fmt::format("one of: {}", fmt::join(words, ", ")));
  into = static_cast<std::size_t>(found - words.begin());
}

Status Options::finish() {
  for (const auto& member : members_) {
    const std::string name(member.key());
    if (std::ranges::count(known_, name) != 0) continue;
    const std::string meant = did_you_mean(name, known_);
    const std::string help = known_.empty()  ? "there are no options"
                             : meant.empty() ? fmt::format("options: {}", fmt::join(known_, ", "))
                                             : fmt::format("did you mean '{}'?", meant);
    errors_.add({ExitCode::kUsage, kWhere, fmt::format("unknown option {}", quoted_name(name)), "", help});
  }
  if (!errors_.empty()) return errors_.together();
  return ok();
}

}  // namespace ggufmill::c
