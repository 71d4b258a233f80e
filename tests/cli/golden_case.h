#pragma once
// A case of the command line's golden tests: a folder with
//   cmd       shell commands, one a line, which are run one after the other; lines that begin with # say what they show
//   setup     optional: a shell script that makes inputs first
//   needs     optional: a shell command that fails, and says why, where the case cannot be run
//   stdout, stderr, exit, files: what must come of it; none: nothing, and exit code 0
// and inputs, which are copied. Each case runs in a fresh folder of its own. Of several commands, what each writes is
// headed by "$ COMMAND", and `exit` has a line for each. `files` lists what is there afterwards and was not before
// ("+ NAME"), what is gone ("- NAME") and what is changed ("~ NAME").

#include <optional>
#include <string>
#include <vector>

namespace ggufmill {

// What comes of a case, as in its files.
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
  std::vector<std::string> inputs;  // names of files, sorted
};

// All of the cases under `folder`, sorted by name. These and the next throw std::exception where files cannot be read,
// written or run.
std::vector<GoldenCase> load_cases(const std::string& folder);

// Runs a case and masks what differs from run to run. Nothing: it cannot be run here, as `why_skipped` says.
std::optional<Outcome> run_case(const GoldenCase& test, std::string& why_skipped);

// Makes `outcome` the expectation.
void accept(const GoldenCase& test, const Outcome& outcome);

// The lines that differ, those expected after "-" and the others after "+"; empty when the same.
std::string describe_difference(const Outcome& expected, const Outcome& got);

}  // namespace ggufmill
