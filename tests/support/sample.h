#pragma once
// Which cases of a golden table are run.

#include <cstddef>
#include <cstdlib>
#include <string>

namespace ggufmill {

// All; with $GGUFMILL_TEST_EVERY=8 each eighth. The preset tsan says so, where a program takes twenty times as long, of
// tables that are about bytes, not about threads.
inline bool is_in_sample(std::size_t number) {
  const char* every = std::getenv("GGUFMILL_TEST_EVERY");
  return !every || number % std::stoul(every) == 0;
}

}  // namespace ggufmill
