#pragma once
// What the command line says on stderr: text, in which names from outside are printable(), or with `--log json` one
// JSON object a line, of json_text(). A terminal has some words in colours, but with NO_COLOR set. stdout is for data
// alone.

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

// Says the error, with those that came with it, and returns its exit code.
int fail(const Error& error);
// Says all of them, counts them, and returns the exit code of the first.
int fail(const std::vector<Error>& errors);

}  // namespace ggufmill
