#include "pipeline/cli/messages.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>

#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

LogFormat format_now = LogFormat::kText;

void put(const std::string& text) { std::fputs(text.c_str(), stderr); }

}  // namespace

void set_log_format(LogFormat format) { format_now = format; }

LogFormat log_format() { return format_now; }

void say_error(const Error& error) {
  if (format_now == LogFormat::kText) return put(render(error));
  boost::json::object object{{"level", "error"}, {"code", static_cast<int>(error.code)}, {"message", error.what}};
  if (!error.where.empty()) object["where"] = error.where;
  if (!error.detail.empty()) object["detail"] = error.detail;
  if (!error.help.empty()) object["help"] = error.help;
  say_object(object);
}

void say_warning(const std::string& text) {
  if (format_now == LogFormat::kText) return put("warning: " + printable(text) + "\n");
  say_object({{"level", "warning"}, {"message", text}});
}

void say_warnings(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) say_warning(text);
}

void say_note(const std::string& text, const std::string& table) {
  if (format_now == LogFormat::kText) return put(printable(text) + "\n" + printable(table, "\n"));
  boost::json::object object{{"level", "info"}, {"message", text}};
  if (!table.empty()) object["table"] = table;
  say_object(object);
}

void say_object(const boost::json::value& object) { put(json_text(object) + "\n"); }

int fail(const Error& error) {
  Diagnostics errors;
  errors.add(error);
  return fail(errors.errors());
}

int fail(const std::vector<Error>& errors) {
  for (const Error& error : errors) say_error(error);
  if (errors.size() > 1) say_note(fmt::format("{} errors; nothing was written", errors.size()));
  return errors.empty() ? 0 : static_cast<int>(errors.front().code);
}

}  // namespace ggufmill
