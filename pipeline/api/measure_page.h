#pragma once
// A measurement as a page for people: heat maps of the errors, by role and layer and by tensor and type.

#include <string>

#include "stages/quantize/measurement.h"

namespace ggufmill {

// One file that needs no other. Names are text, whatever they hold.
std::string measurement_html(const Measurement& measurement);

}  // namespace ggufmill
