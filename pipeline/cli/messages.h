#pragma once
// Messages on stderr: text, with names from outside made printable(), or with `--log json` one JSON object per line,
// made by to_json_text(). On a terminal some words are colored, unless NO_COLOR is set. stdout is only for data.

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

enum class LogFormat { kText, kJson };

// Sets the format of all messages. Call it once, before the first message.
void set_log_format(LogFormat format);
LogFormat log_format();

void print_error(const Error& error);
void print_warning(const std::string& text);
void print_warnings(const std::vector<std::string>& texts);
// Prints a note. `table`: further lines that belong to it.
void print_note(const std::string& text, const std::string& table = {});
// Prints a JSON object on its own line; used for progress with `--log json`.
void print_object(const boost::json::value& object);

// Writes JSON objects to standard output: a single expected object by itself, several as a list with one object per
// line.
class JsonList {
 public:
  explicit JsonList(std::size_t expected) : is_list_(expected > 1) {}
  JsonList(const JsonList&) = delete;
  JsonList& operator=(const JsonList&) = delete;
  ~JsonList();
  // Call it before an object that the caller prints directly, without a newline at its end.
  void begin_item();
  void add(const std::string& text);

 private:
  bool is_list_;
  bool any_ = false;
};

// Prints the error and those combined with it, and returns the exit code of the first.
int fail(const Error& error);
// Prints all errors and, if there are several, their number. Returns the exit code of the first; 0 if there are none.
int fail(const std::vector<Error>& errors);

}  // namespace ggufmill
