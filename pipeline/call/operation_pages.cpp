#include "pipeline/call/reference_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipeline/api/operations/option_names.h"
#include "pipeline/call/operations.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::size_t kPythonWidth = 120;

// ---- Markdown ----

std::string cell(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != text.npos; at += 2) text.insert(at, "\\");
  return text;
}

// The command line of an operation, without what is optional: "ggufmill kernels --check MODULE".
std::string command_line_of(const OperationSpec& operation) {
  const bool is_chosen_by_flag = operation.choice.starts_with("--");
  std::string text = fmt::format("ggufmill {}", is_chosen_by_flag ? operation.verb() : operation.command());
  for (const OperationOption& option : operation.options)
    if (option.is_word() && option.field.spec.required)
      text += fmt::format(" {}{}", option.shown_word, option.is_list() ? "..." : "");
  if (is_chosen_by_flag) text += fmt::format(" {}", operation.choice);
  for (const OperationOption& option : operation.options) {
    if (option.place == OperationOption::Place::kChoice) text += " " + option.shown_word;
    if (option.place == OperationOption::Place::kNamed && option.field.spec.required)
      text += fmt::format(" --{} {}", option.flag(), option.shown_word);
  }
  return text;
}

// "--max-rmse", or several flags.
std::string on_command_line(const OperationSpec& operation, const OperationOption& option, const OptionNames& names) {
  if (!operation.has_verb || option.programs_only) return "";
  std::string text;
  for (const OptionFlag& flag : option.flags) text += (text.empty() ? "--" : ", --") + flag.name;
  if (text.empty()) text = names.of(option.name());
  if (option.letter != '\0') text = fmt::format("-{}, {}", option.letter, text);
  return "`" + text + "`";
}

std::string text_for_programs(const OperationSpec& operation) {
  const bool has_both = !operation.description.empty() && !operation.for_programs.empty();
  return fmt::format("{}{}{}", operation.description, has_both ? "\n\n" : "", operation.for_programs);
}

std::vector<ResultMember> results_of_programs(const OperationSpec& operation) {
  std::vector<ResultMember> members = operation.result;
  std::erase_if(members, [](const ResultMember& each) { return each.command_line_only; });
  return members;
}

std::string reference_of(const OperationSpec& operation) {
  const OptionNames command_line(Caller::kCommandLine, operation.options);
  const OptionNames program(Caller::kProgram, operation.options);
  std::string page = fmt::format("\n## {}\n{}.\n", operation.name, operation.summary);
  for (const std::string& paragraph : paragraphs_of(program.in_text(text_for_programs(operation))))
    page += "\n" + paragraph + "\n";
  if (operation.shared) page += fmt::format("\nOn the command line: `{}`.\n", command_line_of(operation));
  if (!operation.options.empty())
    page += "\n| Option | Command line | Value | Default | Description |\n|---|---|---|---|---|\n";
  for (const OperationOption& option : operation.options) {
    if (option.command_line_only) continue;
    const FieldSpec& spec = option.field.spec;
    const std::string value =
        spec.kind == FieldKind::kList ? "a list, each " + describe_value(spec.item.front()) : describe_value(spec);
    page +=
        fmt::format("| `{}` | {} | {} | {} | {} |\n", option.name(), on_command_line(operation, option, command_line),
                    cell(value), spec.required ? "required" : cell(spec.default_text), cell(program.in_text(spec.doc)));
  }
  page += "\nResult: ";
  if (operation.result_is_alone) page += "one member; in Python, its value.";
  if (!operation.result_doc.empty()) return page + operation.result_doc + ", and `warnings`.\n";
  page += "\n\n| Member | Description |\n|---|---|\n";
  for (const ResultMember& member : results_of_programs(operation))
    page +=
        fmt::format("| `{}{}` | {}{} |\n", member.name, member.shape.empty() ? "" : ": " + member.shape,
                    cell(program.in_text(member.doc)), member.when.empty() ? "" : "; " + program.in_text(member.when));
  return page + "| `warnings` | a list of strings |\n";
}

// The options that callers other than the command line have.
std::vector<OperationOption> options_of_programs(const OperationSpec& operation) {
  std::vector<OperationOption> options = operation.options;
  std::erase_if(options, [](const OperationOption& each) { return each.command_line_only; });
  return options;
}

// ---- Python ----

std::string wrapped_at(const std::string& text, const std::string& first, const std::string& indent) {
  std::string out, line = first;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (line.size() + 1 + word.size() > kPythonWidth && line.size() > indent.size()) {
      out += line + "\n";
      line = indent;
    }
    line += (line.size() == indent.size() || line == first ? "" : " ") + word;
    at = end + 1;
  }
  return out + line + "\n";
}

std::string python_type(const FieldSpec& spec) {
  switch (spec.kind) {
    case FieldKind::kPath:
      return "Path";
    case FieldKind::kBool:
      return "bool";
    case FieldKind::kInteger:
      return "int";
    case FieldKind::kNumber:
      return "float";
    case FieldKind::kBytes:
      return "int | str";
    case FieldKind::kEnum:
      return fmt::format("Literal[\"{}\"]", fmt::join(spec.choices, "\", \""));
    case FieldKind::kList:
      return fmt::format("Iterable[{}]", python_type(spec.item.front()));
    case FieldKind::kDictionary:
      return fmt::format("Mapping[str, {}]", python_type(spec.item.front()));
    case FieldKind::kOneOf: {
      std::vector<std::string> types;
      for (const FieldSpec& each : spec.alternatives) types.push_back(python_type(each));
      return fmt::format("{}", fmt::join(types, " | "));
    }
    case FieldKind::kAny:
    case FieldKind::kMap:
      return "Any";
    default:
      return "str";
  }
}

std::string python_parameter(const OperationOption& option) {
  const FieldSpec& spec = option.field.spec;
  const std::string type = python_type(spec);
  if (spec.required) return fmt::format("{}: {}", spec.name, type);
  const std::string& text = spec.default_text;
  if (text.empty()) return fmt::format("{}: {} | None = None", spec.name, type);
  const bool is_number = spec.kind == FieldKind::kInteger || spec.kind == FieldKind::kNumber;
  const std::string value = text == "true" ? "True" : text == "false" ? "False" : is_number ? text : '"' + text + '"';
  return fmt::format("{}: {} = {}", spec.name, type, value);
}

std::string_view python_name(const OperationSpec& operation) {
  return operation.in_python.name.empty() ? operation.name : operation.in_python.name;
}

// The type of a result: a dictionary, or if it is alone, that of its members.
std::string python_result(const OperationSpec& operation) {
  if (!operation.in_python.type.empty()) return std::string(operation.in_python.type);
  if (!operation.result_is_alone) return "Result";
  std::vector<std::string> types;
  for (const ResultMember& each : operation.result)
    types.emplace_back(each.shape.empty() ? "str" : "list[dict[str, Any]]");
  return fmt::format("{}", fmt::join(types, " | "));
}

// The head of a method: "def name(self, a, b) -> dict[str, Any]:", in lines.
std::string definition(const OperationSpec& operation) {
  std::vector<std::string> parameters{"self"};
  for (const OperationOption& option : options_of_programs(operation))
    if (option.is_positional()) parameters.push_back(python_parameter(option));
  const std::size_t positional = parameters.size();
  for (const OperationOption& option : options_of_programs(operation))
    if (!option.is_positional()) parameters.push_back(python_parameter(option));
  if (operation.progress) parameters.emplace_back("progress: ProgressFunction | None = None");
  if (parameters.size() > positional)
    parameters.insert(parameters.begin() + static_cast<std::ptrdiff_t>(positional), "*");
  std::string text = fmt::format("    def {}(\n", python_name(operation));
  for (const std::string& parameter : parameters) text += fmt::format("        {},\n", parameter);
  return text + fmt::format("    ) -> {}:\n", python_result(operation));
}

// A list of names with their descriptions, in two columns.
std::string described(const std::vector<std::pair<std::string, std::string>>& list) {
  std::size_t width = 0;
  for (const auto& [name, doc] : list) width = std::max(width, name.size());
  const std::string indent(8 + width + 2, ' ');
  std::string text;
  for (const auto& [name, doc] : list) text += wrapped_at(doc, fmt::format("        {:<{}}  ", name, width), indent);
  return text;
}

std::string docstring(const OperationSpec& operation) {
  const OptionNames names(Caller::kPython, operation.options);
  std::string text = fmt::format("        \"\"\"{}.\n", operation.summary);
  for (const std::string& paragraph : paragraphs_of(names.in_text(text_for_programs(operation))))
    text += "\n" + wrapped_at(paragraph, "        ", "        ");
  std::vector<std::pair<std::string, std::string>> list;
  for (const OperationOption& option : options_of_programs(operation))
    list.emplace_back(option.name(), names.in_text(option.field.spec.doc));
  if (operation.progress)
    list.emplace_back(
        "progress",
        "a function that is called with a Progress, whose exceptions end the operation; True: a bar of tqdm");
  if (!list.empty()) text += "\n" + described(list);
  if (!operation.in_python.returns.empty())
    return text + "\n" + wrapped_at(fmt::format("Returns {}.", operation.in_python.returns), "        ", "        ") +
           "        \"\"\"\n";
  if (operation.result_is_alone) {
    std::string returned;
    for (const ResultMember& each : operation.result)
      returned += fmt::format("{} {}{}{}", returned.empty() ? "Returns" : "; or", each.doc,
                              each.when.empty() ? "" : " " + each.when, each.shape.empty() ? "" : ": " + each.shape);
    text += "\n" + wrapped_at(names.in_text(returned + "."), "        ", "        ");
    return text + "        \"\"\"\n";
  }
  if (!operation.result_doc.empty())
    return text + "\n" +
           wrapped_at(names.in_text(fmt::format("Returns {}, and \"warnings\".", operation.result_doc)), "        ",
                      "        ") +
           "        \"\"\"\n";
  list.clear();
  for (const ResultMember& member : results_of_programs(operation))
    list.emplace_back(member.name, names.in_text(member.doc + (member.when.empty() ? "" : "; " + member.when)) +
                                       (member.shape.empty() ? "" : ": " + member.shape));
  list.emplace_back("warnings", "a list of strings");
  return text + "\n        Returns a dictionary:\n" + described(list) + "        \"\"\"\n";
}

std::string method(const OperationSpec& operation) {
  std::vector<std::string> members, empty;
  for (const OperationOption& option : options_of_programs(operation))
    members.push_back(fmt::format("\"{0}\": {0}", option.name()));
  for (const ResultMember& member : results_of_programs(operation))
    if (member.none_if_empty) empty.push_back(fmt::format("\"{}\"", member.name));
  const std::string request = members.empty() ? "{}"
                                              : fmt::format("{{\n                {},\n            }}",
                                                            fmt::join(members, ",\n                "));
  const bool is_made = !operation.in_python.type.empty();
  std::string call = is_made ? fmt::format("        return self._{}(\n", operation.name)
                             : fmt::format("        return self._operate(\n            \"{}\",\n", operation.name);
  call += fmt::format("            {},\n", request);
  if (operation.progress) call += "            progress,\n";
  if (!empty.empty()) call += fmt::format("            none_if_empty=({},),\n", fmt::join(empty, ", "));
  if (operation.result_is_alone) call += "            is_alone=True,\n";
  return "\n" + definition(operation) + docstring(operation) + call + "        )\n";
}

}  // namespace

std::string operations_reference() {
  std::string page =
      "# Operations\nPrinted by `ggufmill schema operations --reference`. Each operation is a verb of the program, or "
      "a part of one, a "
      "name for `ggufmill_call()` of the C interface, whose request is a JSON object of options, and a function of the "
      "Python module. `\"name\"` stands for an option: a key in JSON, and a parameter in Python.\n";
  for (const OperationSpec& operation : operations()) page += reference_of(operation);
  return page;
}

std::string operations_in_python() {
  std::string text =
      "\"\"\"The operations of the library as functions. Written by `ggufmill schema operations --python`.\"\"\"\n\n"
      "from __future__ import annotations\n\n"
      "from collections.abc import Callable, Iterable, Mapping  # noqa: F401\n"
      "from os import PathLike\n"
      "from typing import Any, Literal, Union\n\n"
      "from ._error import Error\n"
      "from ._library import Progress\n"
      "from ._operate import Operator, of_default\n"
      "from ._plan import Plan\n"
      "from ._result import Result\n\n"
      "Path = Union[str, \"PathLike[str]\"]\n"
      "# True: a bar of tqdm.\nProgressFunction = Union[Callable[[Progress], object], bool]\n\n\n"
      "class Operations(Operator):\n"
      "    \"\"\"The operations as methods: a base of Context.\"\"\"\n";
  for (const OperationSpec& operation : operations()) text += method(operation);
  text += "\n\n";
  std::vector<std::string_view> names;
  for (const OperationSpec& operation : operations()) {
    names.push_back(python_name(operation));
    text += fmt::format("{0} = of_default(Operations.{0})\n", names.back());
  }
  return text + fmt::format("__all__ = [\"{}\"]\n", fmt::join(names, "\", \""));
}

}  // namespace ggufmill
