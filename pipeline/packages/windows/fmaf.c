/* fmaf() of the C library, which MinGW-w64 computes with two roundings. */
#include <math.h>
#include <stdint.h>
#include <string.h>

/* The product of two floats is exact as a double. The sum is rounded to odd (Boldo and Melquiond, "Emulation of a FMA
 * and correctly rounded sums: proved algorithms using rounding to odd", 2008), so that rounding it again gives the
 * nearest float. */
float fmaf(float x, float y, float z) {
  const double product = (double)x * y, sum = product + z;
  const double added = sum - product, error = (product - (sum - added)) + (z - added);
  uint64_t bits;
  memcpy(&bits, &sum, sizeof bits);
  if (!isfinite(sum) || error == 0 || (bits & 1) != 0) return (float)sum;
  bits += (error > 0) == (sum > 0) ? 1 : -1;
  double odd;
  memcpy(&odd, &bits, sizeof odd);
  return (float)odd;
}
