#pragma once
// Selects the cases of a golden table to run.

#include <cstddef>
#include <cstdlib>
#include <string>

namespace ggufmill {

// Returns true for all cases, or for every eighth one with $GGUFMILL_TEST_EVERY=8. The preset tsan, which is twenty
// times slower, sets this for tables that test bytes, not threads.
inline bool is_in_sample(std::size_t number) {
  const char* every = std::getenv("GGUFMILL_TEST_EVERY");
  return !every || number % std::stoul(every) == 0;
}

}  // namespace ggufmill
