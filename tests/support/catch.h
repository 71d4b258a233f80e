#pragma once
// Includes Catch2 version 2 or 3, depending on the distribution. No other file includes Catch2.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // has this name in version 2
#else
#include <catch2/catch.hpp>
#endif

// Leaves a test that cannot run on this machine and prints the reason. Version 2 has no SKIP.
#define GGUFMILL_SKIP(reason)      \
  do {                             \
    WARN("skipped: " << (reason)); \
    return;                        \
  } while (false)
