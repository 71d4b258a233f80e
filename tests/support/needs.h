#pragma once
// Test cases that need wings of the program (configs/wings.tsv). Both macros are only for the body of a test case.

#include "pipeline/core/types.h"
#include "pipeline/core/wings.h"
#include "tests/support/catch.h"

// Leaves a test case in a build without the built-in or interleaved type, which a wing has.
#define GGUFMILL_NEEDS_TYPE(name) \
  if (!::ggufmill::Types().find(name)) GGUFMILL_SKIP("this build has no type " name)

// Leaves a test case about files that describe the complete build.
#define GGUFMILL_NEEDS_ALL_WINGS() \
  if (!::ggufmill::omitted_wings().empty()) GGUFMILL_SKIP("this build omits parts that the files describe")
