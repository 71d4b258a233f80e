// The main program of every test executable. Prints which test cases were skipped, and why.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_RUNNER
#endif
#include "tests/support/catch.h"

#include <iostream>
#include <set>

namespace {

std::set<std::string>& reasons() {
  static std::set<std::string> reasons;
  return reasons;
}

#if __has_include(<catch2/catch_all.hpp>)
using Listener = Catch::EventListenerBase;
#else
using Listener = Catch::TestEventListenerBase;
#endif

// Counts the test cases.
class SkippedTestCases : public Listener {
 public:
  using Listener::Listener;

  static std::size_t all, skipped;
  static bool is_skipping;  // the current test case, or a part of it

  void testCaseStarting(const Catch::TestCaseInfo&) override { is_skipping = false; }
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    ++all;
    if (is_skipping && stats.totals.assertions.passed + stats.totals.assertions.failed == 0) ++skipped;
  }
};
std::size_t SkippedTestCases::all, SkippedTestCases::skipped;
bool SkippedTestCases::is_skipping;
CATCH_REGISTER_LISTENER(SkippedTestCases)

}  // namespace

void ggufmill::note_skipped(const std::string& reason) {
  reasons().insert(reason);
  SkippedTestCases::is_skipping = true;
}

int main(int count, char** words) {
  const int result = Catch::Session().run(count, words);
  for (const std::string& reason : reasons()) std::cout << "skipped: " << reason << "\n";
  const std::size_t all = SkippedTestCases::all, skipped = SkippedTestCases::skipped;
  if (skipped > 0) std::cout << skipped << " of " << all << " test cases skipped\n";
  // Version 3 ends with 4 if all test cases were skipped, but also if four assertions failed.
  if (skipped > 0 && skipped == all) return ggufmill::kSkippedExitCode;
  return result == 0 ? 0 : 1;
}
