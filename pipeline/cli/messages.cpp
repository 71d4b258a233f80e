#include "pipeline/cli/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>

#include "pipeline/api/operations/option_names.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/platform/terminal.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

LogFormat format_now = LogFormat::kText;

void put(const std::string& text) {
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);  // some C libraries buffer it
}

// Returns true if stderr is a terminal that supports colors and the user has not disabled them (no-color.org).
bool wants_colours() {
  static const bool wanted = [] {
    const auto none = environment_variable("NO_COLOR");
    return is_color_terminal(StandardStream::kErr) && (!none || none->empty());
  }();
  return wanted;
}

constexpr const char *kRed = "1;31", *kYellow = "1;33", *kCyan = "36";

// Colors `bytes` bytes of a text, starting at `at`.
void colour(std::string& text, std::size_t at, std::size_t bytes, const char* code) {
  if (!wants_colours()) return;
  text.insert(at + bytes, "\x1b[0m");
  text.insert(at, fmt::format("\x1b[{}m", code));
}

// Writes a reference to an option that is not one of an operation.
std::string write_flag(std::string_view name, std::string_view value) {
  std::string flag = fmt::format("--{}", name);
  std::ranges::replace(flag, '_', '-');
  return value.empty() || value == "true" ? flag : fmt::format("{} {}", flag, value);
}

std::string coloured(const Error& error) {
  constexpr std::string_view kHelp = "\n  help:", kError = "error:";
  std::string text = render(error);
  if (const std::size_t help = text.rfind(kHelp); !error.help.empty() && help != std::string::npos)
    colour(text, help + 3, kHelp.size() - 3, kCyan);
  colour(text, error.where.empty() ? 0 : printable(error.where).size() + 2, kError.size(), kRed);
  return text;
}

}  // namespace

void set_log_format(LogFormat format) { format_now = format; }

LogFormat log_format() { return format_now; }

void print_error(const Error& given) {
  Error error = given;
  for (std::string* const text : {&error.where, &error.what, &error.detail, &error.help})
    *text = replace_option_references(*text, write_flag);
  if (format_now == LogFormat::kText) return put(coloured(error));
  boost::json::object object{{"level", "error"}, {"code", static_cast<int>(error.code)}, {"message", error.what}};
  if (!error.where.empty()) object["where"] = error.where;
  if (!error.detail.empty()) object["detail"] = error.detail;
  if (!error.help.empty()) object["help"] = error.help;
  print_object(object);
}

void print_warning(const std::string& given) {
  const std::string text = replace_option_references(given, write_flag);
  if (format_now == LogFormat::kText) {
    std::string line = "warning: " + printable(text) + "\n";
    colour(line, 0, 8, kYellow);
    return put(line);
  }
  print_object({{"level", "warning"}, {"message", text}});
}

void print_warnings(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) print_warning(text);
}

void print_note(const std::string& given, const std::string& table) {
  const std::string text = replace_option_references(given, write_flag);
  if (format_now == LogFormat::kText) return put(printable(text) + "\n" + printable(table, "\n"));
  boost::json::object object{{"level", "info"}, {"message", text}};
  if (!table.empty()) object["table"] = table;
  print_object(object);
}

void print_object(const boost::json::value& object) { put(to_json_text(object) + "\n"); }

void JsonList::begin_item() {
  if (any_ || is_list_) std::fputs(any_ ? ",\n" : "[", stdout);
  any_ = true;
}

void JsonList::add(const std::string& text) {
  begin_item();
  std::fputs(text.c_str(), stdout);
}

JsonList::~JsonList() {
  if (is_list_) std::fputs(any_ ? "]" : "[]", stdout);
  if (is_list_ || any_) std::fputs("\n", stdout);
}

int fail(const Error& error) {
  Diagnostics errors;
  errors.add(error);
  return fail(errors.errors());
}

int fail(const std::vector<Error>& errors) {
  for (const Error& error : errors) print_error(error);
  if (errors.size() > 1) print_note(fmt::format("{} errors; nothing was written", errors.size()));
  return errors.empty() ? 0 : static_cast<int>(errors.front().code);
}

}  // namespace ggufmill
