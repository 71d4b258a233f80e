#pragma once
// What the command line says on stderr: text, in which names from outside are printable(), or with `--log json` one
// JSON object a line, of to_json_text(). A terminal has some words in colours, but with NO_COLOR set. stdout is for
// data alone.

#include <boost/json/value.hpp>
#include <string>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

enum class LogFormat { kText, kJson };

// Set once, before the first message.
void set_log_format(LogFormat format);
LogFormat log_format();

void say_error(const Error& error);
void say_warning(const std::string& text);
void say_warnings(const std::vector<std::string>& texts);
// `table`: lines that belong to the note.
void say_note(const std::string& text, const std::string& table = {});
// An object of its own, with `--log json`: progress.
void say_object(const boost::json::value& object);

// JSON objects on standard output: the only one as it is, several as a list, each on a line.
class JsonList {
 public:
  explicit JsonList(std::size_t expected) : is_list_(expected > 1) {}
  JsonList(const JsonList&) = delete;
  JsonList& operator=(const JsonList&) = delete;
  ~JsonList();
  // Before an object that the caller prints itself, without the end of its line.
  void begin_item();
  void add(const std::string& text);

 private:
  bool is_list_;
  bool any_ = false;
};

// Says the error, with those that came with it, and returns its exit code.
int fail(const Error& error);
// Says all of them, counts them, and returns the exit code of the first.
int fail(const std::vector<Error>& errors);

}  // namespace ggufmill
