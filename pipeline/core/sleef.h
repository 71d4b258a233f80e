#pragma once
// The functions that torch computes in every build with SLEEF, with fused multiply-adds. Their results are not always
// the nearest float; see rounded.h for the functions that differ between builds. Pure functions; thread-safe. Source of
// the methods and the constants: SLEEF, sleefsp.c (Boost Software License).

namespace ggufmill::sleef {

// Sleef's expf with an error of up to 1.0 units in the last place.
float exp(float x);

// Sleef's log1pf with an error of up to 1.0 units in the last place, from 0 to 10^38. NaN for other arguments.
float log1p(float x);

}  // namespace ggufmill::sleef
