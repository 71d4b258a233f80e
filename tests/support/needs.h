#pragma once
// Test cases that need wings of the program (configs/wings.tsv). Both macros are only for the body of a test case.

#include "pipeline/core/wings.h"
#include "tests/support/catch.h"

// Leaves a test case in a build that omits the wing with this word, the name of a type for example.
#define GGUFMILL_NEEDS(word) \
  if (!::ggufmill::omitted_wing_help(word).empty()) GGUFMILL_SKIP("this build has no " word)

// Leaves a test case about files that describe the complete build.
#define GGUFMILL_NEEDS_ALL_WINGS() \
  if (!::ggufmill::omitted_wings().empty()) GGUFMILL_SKIP("this build omits parts that the files describe")
