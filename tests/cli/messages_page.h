#pragma once
// tests/cli/MESSAGES.md: every error and warning that a case shows, with the input that causes it.

#include <string>
#include <vector>

#include "tests/cli/golden_case.h"

namespace ggufmill {

// Made of the cases' expectations. Throws std::exception when an input cannot be read.
std::string messages_page(const std::vector<GoldenCase>& cases);

}  // namespace ggufmill
