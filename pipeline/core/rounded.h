#pragma once
// Functions whose results are the nearest float, on every machine and with every C library: evaluated with about twice
// the precision of double, and rounded once. Pure functions; thread-safe. torch's own are not always the nearest float,
// and differ between its builds; the nearest is the result that most of them have in common.

namespace ggufmill::rounded {

// The exponential function; 0 and infinity beyond the range of float, NaN for NaN.
float exp(float x);

// Sine and cosine of an angle in radians. NaN outside of -65536 to 65536, where the angle is not reduced accurately.
float sin(float x);
float cos(float x);

// log(1 + exp(x)).
float softplus(float x);

// The inverse of the error function: infinite for -1 and 1, NaN outside of them.
float inverse_erf(float y);

}  // namespace ggufmill::rounded
