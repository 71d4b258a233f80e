// golden_tables COMMAND: compares decisions and outputs with golden values (see README.md). Prints N of N.

#include "tests/golden/golden.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <sstream>
#include <string_view>

namespace ggufmill::golden {

Words words_of(const std::string& text) {
  std::istringstream stream(text);
  Words words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

Words join(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

namespace {

struct Command {
  std::string_view name;
  int (*run)(const Words& arguments);
  std::string_view usage;
};

constexpr Command kCommands[] = {
    {"files", check_files,
     "[--table FILE] [--only MODEL] [--isa NAME] [--shared] [--types FILE] [--kernel-dir D] [--once] GGUFMILL\n"
     "  --table FILE   the table (tests/golden/files.tsv)\n"
     "  --only MODEL   only the lines of this model\n"
     "  --isa NAME     only with the kernels of this ISA ($GGUFMILL_TEST_ISA); skipped if the CPU does not have it\n"
     "  --shared       the tables are in the larger golden data next to the repository; skipped if it is missing\n"
     "  --types FILE   compare the type of each tensor with this table, instead of the file\n"
     "  --kernel-dir D with the kernel modules of this folder\n"
     "  --once         only with `ggufmill quantize`, not again with its pipeline file\n"},
    {"plans", check_plans, "GGUFMILL\n"},
    {"checkpoints", check_checkpoints, "GGUFMILL\n"},
    {"parts", check_parts, "GGUFMILL\n"},
    {"adapters", check_adapters, "GGUFMILL\n"},
    {"back", check_back, "[--update]\n"},
};

int run(const Words& words) {
  for (const Command& command : kCommands) {
    if (words.empty() || words[0] != command.name) continue;
    try {
      return command.run({words.begin() + 1, words.end()});
    } catch (const UsageError&) {
      fmt::print(stderr, "usage: golden {} {}", command.name, command.usage);
      return 2;
    }
  }
  for (const Command& command : kCommands) fmt::print(stderr, "usage: golden {} {}", command.name, command.usage);
  return 2;
}

}  // namespace
}  // namespace ggufmill::golden

int main(int count, char** words) {
  try {
    return ggufmill::golden::run({words + 1, words + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
