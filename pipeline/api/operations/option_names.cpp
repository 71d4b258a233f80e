#include "pipeline/api/operations/option_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "pipeline/core/option_reference.h"
#include "pipeline/core/pattern.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

// The names of an exit code in the C interface and in Python.
struct Failure {
  char digit;
  const char* program;
  const char* python;
};
constexpr Failure kFailures[] = {
    {'2', "GGUFMILL_ERROR_USAGE", "UsageError"},     {'3', "GGUFMILL_ERROR_VERIFICATION", "VerificationError"},
    {'4', "GGUFMILL_ERROR_BAD_INPUT", "InputError"}, {'5', "GGUFMILL_ERROR_KERNEL", "KernelError"},
    {'6', "GGUFMILL_ERROR_IO", "FileError"},
};

std::string written_failure(Caller caller, char digit, bool begins_sentence) {
  const auto* const found = std::ranges::find(kFailures, digit, &Failure::digit);
  if (caller == Caller::kCommandLine) return fmt::format("{} code {}", begins_sentence ? "Exit" : "exit", digit);
  return caller == Caller::kPython ? fmt::format("`{}`", found->python) : found->program;
}

bool is_name_letter(char c) {
  return std::islower(static_cast<unsigned char>(c)) != 0 || c == '_' ||
         std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_text(const FieldSpec& spec) {
  return spec.kind == FieldKind::kString || spec.kind == FieldKind::kPath || spec.kind == FieldKind::kEnum;
}

// Returns the flag that stands for a value; without one, the first of the option, with the value if it takes one.
std::string flag_for(const OperationOption& option, std::string_view value) {
  const auto found = std::ranges::find(option.flags, value, &OptionFlag::value);
  if (found != option.flags.end()) return "--" + found->name;
  const OptionFlag& first = option.flags.front();
  return fmt::format("--{}{}{}", first.name, first.has_value && !value.empty() ? " " : "",
                     first.has_value ? value : "");
}

}  // namespace

const OperationOption* OptionNames::find(std::string_view name) const {
  const auto found = std::ranges::find_if(options_, [&](const OperationOption& each) { return each.name() == name; });
  return found == options_.end() ? nullptr : &*found;
}

std::string OptionNames::of(std::string_view name, std::string_view value) const {
  const OperationOption* const option = find(name);
  const bool is_several = caller_ != Caller::kCommandLine && option && option->is_list() && !value.empty();
  if (is_several) {  // a list with the value; a map has another form
    const std::string in_list = fmt::format("[\"{}\"]", value);
    return option->field.spec.kind != FieldKind::kList ? of(name)
           : caller_ == Caller::kPython                ? fmt::format("{}={}", name, in_list)
                                                       : fmt::format("\"{}\": {}", name, in_list);
  }
  const std::string quoted =
      option && !value.empty() && is_text(option->field.spec) ? fmt::format("\"{}\"", value) : std::string(value);
  if (caller_ == Caller::kProgram) return fmt::format("\"{}\"{}{}", name, value.empty() ? "" : ": ", quoted);
  if (caller_ == Caller::kPython) {
    if (value.empty() && option && option->is_positional()) return std::string(name);
    return fmt::format("{}={}", name, value == "true" ? "True" : value == "false" ? "False" : quoted);
  }
  if (option && option->is_word()) return value.empty() ? option->shown_word : std::string(value);
  if (option && !option->flags.empty()) return flag_for(*option, value);
  std::string flag = option ? option->flag() : std::string(name);
  std::ranges::replace(flag, '_', '-');
  return fmt::format("--{}{}{}", flag, value.empty() || value == "true" ? "" : " ", value == "true" ? "" : value);
}

// Marks what is Python in a text.
std::string OptionNames::in_prose(std::string written) const {
  return caller_ == Caller::kPython ? "`" + written + "`" : written;
}

std::string OptionNames::in_text(std::string_view text) const {
  std::string out;
  for (std::size_t at; (at = text.find('@')) != text.npos;) {
    std::size_t end = at + 1;
    if (end < text.size() && text[end] == 'E') ++end;  // @Error4
    while (end < text.size() && is_name_letter(text[end])) ++end;
    const std::string_view name = text.substr(at + 1, end - at - 1);
    out += text.substr(0, at);
    if (name.size() == 6 && name.substr(1, 4) == "rror")
      out += written_failure(caller_, name.back(), name.front() == 'E');
    else
      out += find(name) ? in_prose(of(name)) : std::string(text.substr(at, end - at));
    text.remove_prefix(end);
  }
  return out + std::string(text);
}

std::string OptionNames::in_message(std::string_view message) const {
  return replace_option_references(message,
                                   [this](std::string_view name, std::string_view value) { return of(name, value); });
}

Error OptionNames::in_error(Error error) const {
  for (std::string* const text : {&error.where, &error.what, &error.detail, &error.help}) *text = in_message(*text);
  for (Error& each : error.also) each = in_error(std::move(each));
  return error;
}

namespace {

// Removes the place in a pipeline file that the user did not write.
void omit_place(Error& error) {
  if (!error.where.starts_with(kArgumentsName)) return;
  error.where.clear();
  std::string detail;
  for (std::size_t at = 0; at < error.detail.size();) {
    const std::size_t end = std::min(error.detail.find('\n', at), error.detail.size());
    const std::string_view line = std::string_view(error.detail).substr(at, end - at);
    const std::size_t bar = line.find_first_not_of(" 0123456789");
    if (bar == line.npos || line[bar] != '|') detail += fmt::format("{}{}", detail.empty() ? "" : "\n", line);
    at = end + 1;
  }
  error.detail = std::move(detail);
}

}  // namespace

Error with_help_for_options(Error error) {
  omit_place(error);
  static const Pattern kKey = Pattern::compile("`[a-z_]+: |\\b[a-z_]+: [\\[{]").value();  // "`misfit: keep`"
  const Result<bool> names_key = kKey.matches(error.help);
  const bool says_where = error.help.find("pipeline file") != std::string::npos ||
                          error.help.find(" --") != std::string::npos || has_option_reference(error.help);
  if (has_keys_or_options(error.help))
    error.help = as_for_options(error.help);
  else if (!says_where && names_key && names_key.value())
    error.help += fmt::format(", in the pipeline file that {} prints", option_reference("emit_pipeline"));
  for (Error& each : error.also) each = with_help_for_options(std::move(each));
  return error;
}

}  // namespace ggufmill
