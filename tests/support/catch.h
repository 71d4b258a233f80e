#pragma once
// Catch2, version 2 or 3, whichever the distribution has. No other file includes it.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // as version 2 has it
#else
#include <catch2/catch.hpp>
#endif

// Leaves a test that cannot run on this machine, and says why: version 2 has no SKIP.
#define GGUFMILL_SKIP(reason)      \
  do {                             \
    WARN("skipped: " << (reason)); \
    return;                        \
  } while (false)
