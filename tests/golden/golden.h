#pragma once
// The commands of the program golden: each compares what ggufmill does with a table of golden values.

#include <cstddef>
#include <string>
#include <vector>

namespace ggufmill::golden {

using Words = std::vector<std::string>;

// The number of cases that have the golden values.
struct Tally {
  std::size_t right = 0, all = 0;

  void count(bool is_right) {
    ++all;
    right += is_right;
  }
  bool is_right() const { return all > 0 && right == all; }
};

// Returns the words of a text, separated by spaces.
Words words_of(const std::string& text);
Words join(Words words, const Words& more);

// The commands take their arguments and return the exit code. They throw std::exception if they cannot run; arguments
// that are wrong throw a UsageError.
struct UsageError {};
int check_files(const Words& arguments);
int check_plans(const Words& arguments);
int check_checkpoints(const Words& arguments);
int check_parts(const Words& arguments);
int check_adapters(const Words& arguments);
int check_back(const Words& arguments);

}  // namespace ggufmill::golden
