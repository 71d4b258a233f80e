#pragma once
// Leaves a test that cannot run on this machine, and says why: for Catch2 versions without SKIP.

#include "tests/support/catch.h"

#define GGUFMILL_SKIP(reason)      \
  do {                             \
    WARN("skipped: " << (reason)); \
    return;                        \
  } while (false)
