#pragma once
// What differs from run to run and from machine to machine, replaced by words.

#include <string>

namespace ggufmill {

// The case's `folder` becomes DIR, the build folder BUILD, times TIME, free space FREE, instruction sets ISAS. What a
// module or a program of the system says of itself is not masked: cases choose what they show.
std::string mask(std::string text, const std::string& folder);

}  // namespace ggufmill
