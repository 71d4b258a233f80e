#pragma once
// The functions of torch's float32 vectors. Their results are not always the nearest float: torch uses Sleef's, which
// are evaluated with fused multiply-adds. Pure functions; thread-safe. Source of the methods and the constants: SLEEF,
// sleefsp.c (Boost Software License).

#include <span>

namespace ggufmill::sleef {

// Sleef's expf with an error of up to 1.0 units in the last place.
float exp(float x);

// Replace each value by Sleef's sinf or cosf of it, with an error of up to 3.5 units in the last place. The values are
// taken in groups of 8, the size of a vector of AVX2: if one of a group is 125 or more, the arguments of the whole
// group are reduced more accurately. NaN outside of -39000 to 39000, where Sleef reduces them in a third way.
void sin(std::span<float> values);
void cos(std::span<float> values);

// Sleef's log1pf with an error of up to 1.0 units in the last place, from 0 to 10^38. NaN for other arguments.
float log1p(float x);

}  // namespace ggufmill::sleef
