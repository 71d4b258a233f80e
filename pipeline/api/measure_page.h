#pragma once
// A measurement as an HTML page: heat maps of the errors, by role and layer and by tensor and type.

#include <string>

#include "stages/quantize/measurement.h"

namespace ggufmill {

// Returns a self-contained page. Names are escaped, whatever they contain.
std::string measurement_html(const Measurement& measurement);

}  // namespace ggufmill
