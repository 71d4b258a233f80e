#pragma once
// A golden test case of the command line is a folder with these files:
//   cmd       shell commands, one per line, run in order; lines that begin with # describe the case
//   setup     optional: a shell script that creates inputs first
//   needs     optional: a shell command that fails and prints the reason if the case cannot be run
//   stdout, stderr, exit, files: the expected results; if missing: no output, and exit code 0
// and inputs, which are copied. Each case runs in a fresh folder. If there are several commands, the output of each
// follows a line "$ COMMAND", and `exit` has one line for each. `files` lists the files that the case has created ("+
// NAME"), removed ("- NAME") and changed ("~ NAME").

#include <optional>
#include <string>
#include <vector>

namespace ggufmill {

// The results of a case, in the form of its files.
struct Outcome {
  std::string out;
  std::string err;
  std::string exit;
  std::string files;

  bool operator==(const Outcome&) const = default;
};

struct GoldenCase {
  std::string name;
  std::string folder;
  std::vector<std::string> comments;  // without #
  std::vector<std::string> commands;
  std::string setup;
  std::string needs;
  Outcome expected;
  std::vector<std::string> inputs;  // file names, sorted
};

// Returns all cases under `folder`, sorted by name. This function and the following ones throw std::exception if files
// cannot be read, written or run.
std::vector<GoldenCase> load_cases(const std::string& folder);

// Runs a case and masks text that varies from run to run. Returns nullopt if the case cannot be run here; `why_skipped`
// then has the reason.
std::optional<Outcome> run_case(const GoldenCase& test, std::string& why_skipped);

// Stores `outcome` as the expected result.
void accept(const GoldenCase& test, const Outcome& outcome);

// Returns the lines that differ: expected lines after "-", actual lines after "+". Empty if there is no difference.
std::string describe_difference(const Outcome& expected, const Outcome& got);

}  // namespace ggufmill
