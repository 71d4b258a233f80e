#include "tests/cli/golden_case.h"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {
namespace {

// The content of a folder, for finding the files that a command has created, removed or changed.
class FolderState {
 public:
  // Throws std::exception if the folder cannot be read.
  explicit FolderState(const std::string& folder);

  // Returns "+ NAME" for entries only in `later`, "- NAME" for entries only here, and "~ NAME" for files whose bytes
  // differ (for large files, whose size or time differs). One entry per line, sorted by name. Folder names end with /.
  std::string changes_to(const FolderState& later) const;

 private:
  std::map<std::string, std::string> contents_;  // by path
};

constexpr std::uintmax_t kCompared = 1 << 20;  // bytes; larger files are compared by size and time only

std::string content_of(const fs::directory_entry& entry) {
  if (!entry.is_regular_file() || ::access(entry.path().c_str(), R_OK) != 0) return {};
  if (entry.file_size() <= kCompared) return read_text(entry.path());
  return std::to_string(entry.file_size()) + " " + std::to_string(entry.last_write_time().time_since_epoch().count());
}

FolderState::FolderState(const std::string& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string name = fs::relative(entry.path(), folder);
    if (entry.is_symlink())
      contents_[name] = "link to " + fs::read_symlink(entry.path()).string();
    else if (entry.is_directory())
      contents_[name + "/"];
    else
      contents_[name] = content_of(entry);
  }
}

std::string FolderState::changes_to(const FolderState& later) const {
  std::set<std::string> names;
  for (const auto& [name, bytes] : contents_) names.insert(name);
  for (const auto& [name, bytes] : later.contents_) names.insert(name);
  std::string text;
  for (const std::string& name : names) {
    const auto before = contents_.find(name), now = later.contents_.find(name);
    if (before == contents_.end())
      text += "+ " + name + "\n";
    else if (now == later.contents_.end())
      text += "- " + name + "\n";
    else if (before->second != now->second)
      text += "~ " + name + "\n";
  }
  return text;
}

void replace_all(std::string& text, const std::string& what, const std::string& by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
}

struct Mask {
  std::regex what;
  const char* by;
};

const Mask kMasks[] = {
    {std::regex("ggufmill [0-9]+\\.[0-9]+\\.[0-9]+"), "ggufmill VERSION"},
    {std::regex("ggufmill-[0-9a-f]{32}\\.[a-z0-9]{6}\\b"), "ggufmill-IDENTITY.JOB"},
    {std::regex("ggufmill-[0-9a-f]{32}"), "ggufmill-IDENTITY"},
    {std::regex("\"identity\":\"[0-9a-f]+\""), "\"identity\":\"IDENTITY\""},
    {std::regex("(JOB\\.job.* )[0-9]+ B"), "$1BYTES"},  // a claim contains the path of DIR
    {std::regex("(JOB\\.job\",\"output\":\"[^\"]*\",\"bytes\":)[0-9]+"), "$1BYTES"},
    {std::regex("in [0-9.]+ s \\([0-9]+ MB/s\\), [0-9.]+ [KMGi]*B of buffers at most, [a-z]+ I/O by [a-z_]+"),
     "in TIME"},
    {std::regex("in [0-9.]+ s\\b"), "in TIME"},
    {std::regex("takes about [0-9.]+ [a-z]+"), "takes about TIME"},
    {std::regex("[0-9.]+ [a-zA-Z]+ are free"), "FREE are free"},
    {std::regex("ISAs available here: [-a-z0-9, ]+"), "ISAs available here: ISAS"},
};

// Replaces text that varies between runs and machines with placeholders: the case's `folder` becomes DIR, the build
// folder BUILD, times TIME, free space FREE, and instruction sets ISAS. Output of modules or system programs about
// themselves is not masked; the cases control how much of it they show.
std::string mask(std::string text, const std::string& folder) {
  replace_all(text, folder, "DIR");
  replace_all(text, GGUFMILL_BUILD_DIR, "BUILD");
  for (const Mask& each : kMasks) text = std::regex_replace(text, each.what, each.by);
  return text;
}

struct Member {
  const char* file;
  std::string Outcome::*text;
};
constexpr Member kMembers[] = {
    {"stdout", &Outcome::out}, {"stderr", &Outcome::err}, {"exit", &Outcome::exit}, {"files", &Outcome::files}};

bool is_reserved(const std::string& name) {
  return name == "cmd" || name == "setup" || name == "needs" ||
         std::any_of(std::begin(kMembers), std::end(kMembers), [&](const Member& m) { return name == m.file; });
}

std::string text_or_nothing(const std::string& path) { return fs::exists(path) ? read_text(path) : std::string(); }

using Lines = std::vector<std::string>;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

GoldenCase load_case(const fs::path& folder) {
  GoldenCase test;
  test.name = folder.filename();
  test.folder = folder;
  for (const std::string& line : lines_of(read_text(folder / "cmd"))) {
    if (line.starts_with("# "))
      test.comments.push_back(line.substr(2));
    else if (!line.empty())
      test.commands.push_back(line);
  }
  test.setup = text_or_nothing(folder / "setup");
  test.needs = text_or_nothing(folder / "needs");
  for (const Member& member : kMembers) test.expected.*member.text = text_or_nothing(folder / member.file);
  for (const std::string& name : names_in(folder))
    if (!is_reserved(name)) test.inputs.push_back(name);
  return test;
}

ProcessResult run_command(const std::string& line, const std::string& folder) {
  return run_process({"/bin/sh", "-c", line}, folder);
}

void make_inputs(const GoldenCase& test, const std::string& folder) {
  for (const std::string& name : test.inputs)
    fs::copy(fs::path(test.folder) / name, fs::path(folder) / name, fs::copy_options::recursive);
  if (test.setup.empty()) return;
  const ProcessResult result = run_command("set -e\n" + test.setup, folder);
  if (result.exit_code != 0) throw std::runtime_error("the setup failed: " + result.err);
}

void append_headed(std::string& to, const std::string& command, const std::string& text, bool headed) {
  if (text.empty()) return;
  if (headed) to += "$ " + command + "\n";
  to += text;
  if (headed && text.back() != '\n') to += "\n";
}

// Computes the table of the longest common subsequence: entry [i][j] is the number of lines that the texts have in
// common from lines i and j on.
std::vector<std::vector<std::size_t>> common_lines(const Lines& a, const Lines& b) {
  std::vector<std::vector<std::size_t>> common(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      common[i][j] = a[i] == b[j] ? common[i + 1][j + 1] + 1 : std::max(common[i + 1][j], common[i][j + 1]);
  return common;
}

std::string line_difference(const Lines& before, const Lines& now) {
  const auto common = common_lines(before, now);
  std::string text;
  for (std::size_t i = 0, j = 0; i < before.size() || j < now.size();) {
    if (i < before.size() && j < now.size() && before[i] == now[j])
      ++i, ++j;
    else if (j == now.size() || (i < before.size() && common[i + 1][j] >= common[i][j + 1]))
      text += "  - " + before[i++] + "\n";
    else
      text += "  + " + now[j++] + "\n";
  }
  return text.empty() ? "  only the last line's end differs\n" : text;
}

}  // namespace

std::vector<GoldenCase> load_cases(const std::string& folder) {
  std::vector<GoldenCase> cases;
  for (const std::string& name : names_in(folder)) cases.push_back(load_case(fs::path(folder) / name));
  return cases;
}

std::optional<Outcome> run_case(const GoldenCase& test, std::string& why_skipped) {
  const TempDir folder;
  if (!test.needs.empty()) {
    const ProcessResult needs = run_command(test.needs, folder.path());
    why_skipped = needs.out + needs.err;
    if (needs.exit_code != 0) return {};
  }
  make_inputs(test, folder.path());
  const FolderState before(folder.path());
  Outcome outcome;
  const bool several = test.commands.size() > 1;
  bool failed = false;
  for (const std::string& command : test.commands) {
    const ProcessResult result = run_command(command, folder.path());
    append_headed(outcome.out, command, mask(result.out, folder.path()), several);
    append_headed(outcome.err, command, mask(result.err, folder.path()), several);
    outcome.exit += std::to_string(result.exit_code) + "\n";
    failed = failed || result.exit_code != 0;
  }
  if (!failed) outcome.exit.clear();
  outcome.files = mask(before.changes_to(FolderState(folder.path())), folder.path());
  return outcome;
}

void accept(const GoldenCase& test, const Outcome& outcome) {
  for (const Member& member : kMembers) {
    const fs::path path = fs::path(test.folder) / member.file;
    if ((outcome.*member.text).empty())
      fs::remove(path);
    else
      write_text(path, outcome.*member.text);
  }
}

std::string describe_difference(const Outcome& expected, const Outcome& got) {
  std::string text;
  for (const Member& member : kMembers) {
    const std::string& before = expected.*member.text;
    const std::string& now = got.*member.text;
    if (before != now)
      text += std::string("  ") + member.file + ":\n" + line_difference(lines_of(before), lines_of(now));
  }
  return text;
}

}  // namespace ggufmill
