#pragma once
// Includes Catch2 version 2 or 3, depending on the distribution. No other file includes Catch2.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // has this name in version 2
#else
#include <catch2/catch.hpp>
#endif
#include <string>

#include "tests/support/skip.h"

namespace ggufmill {

// Records that the current test case is skipped. Part of GGUFMILL_SKIP.
void note_skipped(const std::string& reason);

}  // namespace ggufmill

// Leaves a test case that cannot run on this machine; only for the body of a test case. A program whose test cases were
// all skipped ends with kSkippedExitCode. Version 2 has no SKIP.
#ifdef SKIP
#define GGUFMILL_SKIP(reason)         \
  do {                                \
    ::ggufmill::note_skipped(reason); \
    SKIP(reason);                     \
  } while (false)
#else
#define GGUFMILL_SKIP(reason)         \
  do {                                \
    ::ggufmill::note_skipped(reason); \
    return;                           \
  } while (false)
#endif
