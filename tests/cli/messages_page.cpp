#include "tests/cli/messages_page.h"

#include <algorithm>
#include <filesystem>

#include "tests/support/files.h"

namespace ggufmill {
namespace {

constexpr const char* kIntroduction =
    "# Messages\n"
    "Every error and warning of the command line, with the input that causes it. Made by `cli_golden --update` from "
    "the\n"
    "cases beside this file, which the tests run; do not edit. Commands are run one after the other in a folder of\n"
    "their own, DIR.\n";

// Kernel modules that are refused are told of on standard output: it is what `ggufmill kernels` was asked for.
bool has_message(const GoldenCase& test) {
  return !test.expected.exit.empty() || test.expected.err.find("warning: ") != std::string::npos ||
         test.expected.out.find(" refused ") != std::string::npos;
}

std::string block(const std::string& language, const std::string& text) {
  const char* end = text.empty() || text.back() == '\n' ? "" : "\n";
  return "```" + language + "\n" + text + end + "```\n";
}

std::string language_of(const std::string& name) {
  const std::string extension = std::filesystem::path(name).extension();
  return extension.empty() ? "" : extension.substr(1);
}

// What is typed; of several commands each stands above what it says.
std::string script_of(const GoldenCase& test) {
  return test.setup + (test.commands.size() == 1 ? test.commands.front() + "\n" : "");
}

// "exit codes: 2", "exit codes: 2, 2, 0".
std::string exit_line(const GoldenCase& test) {
  std::string codes = test.expected.exit.empty() ? "0\n" : test.expected.exit;
  const bool several = std::count(codes.begin(), codes.end(), '\n') > 1;
  codes.pop_back();
  for (std::size_t at = 0; (at = codes.find('\n', at)) != std::string::npos;) codes.replace(at, 1, ", ");
  return (several ? "Exit codes " : "Exit code ") + codes + ".\n";
}

std::string section(const GoldenCase& test) {
  std::string text = "\n## " + test.name + "\n";
  for (const std::string& comment : test.comments) text += comment + "\n";
  for (const std::string& input : test.inputs) {
    const std::string path = test.folder + "/" + input;
    if (std::filesystem::is_regular_file(path))
      text += "`" + input + "`:\n" + block(language_of(input), read_text(path));
  }
  if (const std::string script = script_of(test); !script.empty()) text += block("sh", script);
  return text + exit_line(test) + block("text", test.expected.err.empty() ? test.expected.out : test.expected.err);
}

}  // namespace

std::string messages_page(const std::vector<GoldenCase>& cases) {
  std::string page = kIntroduction;
  for (const GoldenCase& test : cases)
    if (has_message(test)) page += section(test);
  return page;
}

}  // namespace ggufmill
