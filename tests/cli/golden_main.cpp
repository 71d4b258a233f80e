// cli_golden [--update | --messages] [NAME...]: runs the cases of tests/cli/cases (all, or those whose names begin with
// a NAME) and compares the results. --update stores the results as expected. --messages runs nothing: it prints a page
// of the errors and warnings that the cases expect.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "pipeline/io/platform/filesystem.h"
#include "tests/cli/golden_case.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {
namespace {

const std::string kCases = GGUFMILL_CLI_TESTS "/cases";
constexpr const char* kHint = "if the new output is right: cli_golden --update (in the build folder's tests/)\n";

// ---- the page of messages: every error and warning in a case, with the input that causes it ----

constexpr const char* kIntroduction =
    "# Messages\n"
    "Every error and warning of the command line, with the input that causes it. Made by `cli_golden --messages`\n"
    "from the cases in tests/cli/cases, which the tests run. Commands are run one after the other in a folder of\n"
    "their own, DIR.\n";

// Refused kernel modules are reported on standard output, as the result of `ggufmill kernels`.
bool has_message(const GoldenCase& test) {
  return !test.expected.exit.empty() || test.expected.err.find("warning: ") != std::string::npos ||
         test.expected.out.find(" refused ") != std::string::npos;
}

std::string block(const std::string& language, const std::string& text) {
  const char* end = text.empty() || text.back() == '\n' ? "" : "\n";
  return "```" + language + "\n" + text + end + "```\n";
}

std::string language_of(const std::string& name) {
  const std::string extension = fs::path(name).extension();
  return extension.empty() ? "" : extension.substr(1);
}

// Returns the setup script and, if there is only one command, that command. With several commands, each one is printed
// above its output instead.
std::string script_of(const GoldenCase& test) {
  return test.setup + (test.commands.size() == 1 ? test.commands.front() + "\n" : "");
}

// Returns "Exit code 2." or "Exit codes 2, 2, 0.".
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
    if (fs::is_regular_file(path)) text += "`" + input + "`:\n" + block(language_of(input), read_text(path));
  }
  if (const std::string script = script_of(test); !script.empty()) text += block("sh", script);
  return text + exit_line(test) + block("text", test.expected.err.empty() ? test.expected.out : test.expected.err);
}

// Builds the page from the expected results of the cases. Throws std::exception if an input cannot be read.
std::string messages_page(const std::vector<GoldenCase>& cases) {
  std::string page = kIntroduction;
  for (const GoldenCase& test : cases)
    if (has_message(test)) page += section(test);
  return page;
}

// ---- running the cases ----

// Result of a case.
struct Report {
  std::string difference;  // empty: as expected
  std::string skipped;     // the reason, if skipped
  bool broken = false;     // set if it could not be run
};

// Puts the programs of the build first in PATH, sets the language of system messages to English, and keeps measurements
// in the folder `cache`.
void set_environment(const std::string& cache) {
  const char* path = std::getenv("PATH");
  ::setenv("PATH", (GGUFMILL_BUILD_DIR "/bin:" GGUFMILL_BUILD_DIR "/tests:" + std::string(path ? path : "")).c_str(),
           1);
  ::setenv("LC_ALL", "C", 1);
  ::setenv("GGUFMILL_CACHE", cache.c_str(), 1);
  ::setenv("MODULES", GGUFMILL_TEST_MODULES, 1);
  ::setenv("MODELS", GGUFMILL_CLI_TESTS "/../golden/models", 1);
}

Report check(GoldenCase& test, bool update) try {
  Report report;
  const auto outcome = run_case(test, report.skipped);
  if (!outcome) return report;
  report.skipped.clear();
  report.difference = describe_difference(test.expected, *outcome);
  if (!update || report.difference.empty()) return report;
  accept(test, *outcome);
  test.expected = *outcome;
  return report;
} catch (const std::exception& error) {
  return {std::string("  ") + error.what() + "\n", "", true};
}

// Runs many cases at a time, since a case mostly waits for its processes.
std::vector<Report> check_all(std::vector<GoldenCase>& cases, bool update) {
  std::vector<Report> reports(cases.size());
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(2u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back([&] {
      for (std::size_t at; (at = next++) < cases.size();) reports[at] = check(cases[at], update);
    });
  for (std::thread& thread : threads) thread.join();
  return reports;
}

bool is_wanted(const GoldenCase& test, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (test.name.starts_with(name)) return true;
  return names.empty();
}

std::vector<GoldenCase> wanted_cases(const std::vector<std::string>& names) {
  std::vector<GoldenCase> cases;
  for (const GoldenCase& test : load_cases(kCases))
    if (is_wanted(test, names)) cases.push_back(test);
  return cases;
}

int print_messages(const std::vector<std::string>& names) {
  std::fputs(messages_page(wanted_cases(names)).c_str(), stdout);
  return 0;
}

int run(const std::vector<std::string>& names, bool update) {
  const TempDir cache;
  set_environment(cache.path());
  std::vector<GoldenCase> cases = wanted_cases(names);
  const std::vector<Report> reports = check_all(cases, update);
  std::size_t commands = 0, different = 0, broken = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    commands += cases[i].commands.size();
    if (!reports[i].skipped.empty())
      std::printf("skipped: %s: %s\n", cases[i].name.c_str(), reports[i].skipped.c_str());
    if (reports[i].difference.empty()) continue;
    ++different;
    broken += reports[i].broken;
    std::printf("%s: %s\n%s", cases[i].name.c_str(), update ? "new" : "not as expected", reports[i].difference.c_str());
  }
  std::printf("%zu of %zu cases as expected, %zu commands\n", cases.size() - different, cases.size(), commands);
  if (broken == 0 && (update || different == 0)) return 0;
  std::fputs(kHint, stdout);
  return 1;
}

}  // namespace
}  // namespace ggufmill

int main(int count, char** arguments) try {
  std::vector<std::string> names(arguments + 1, arguments + count);
  const std::string option = names.empty() ? "" : names.front();
  const bool update = option == "--update", messages = option == "--messages";
  if (update || messages) names.erase(names.begin());
  return messages ? ggufmill::print_messages(names) : ggufmill::run(names, update);
} catch (const std::exception& error) {
  std::fprintf(stderr, "cli_golden: %s\n", error.what());
  return 2;
}
