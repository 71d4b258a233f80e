#pragma once
// A measurement as a page for people: a row a tensor, sortable, with what each type loses as a curve.

#include <string>

#include "stages/quantize/measurement.h"

namespace ggufmill {

// One file that needs no other. Names are text, whatever they hold.
std::string measurement_html(const Measurement& measurement);

}  // namespace ggufmill
