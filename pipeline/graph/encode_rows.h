#pragma once
// Encodes rows with the encoder of an encoding: a kernel or a search, then the gain; or the lattice kernel.

#include "pipeline/graph/bind.h"

namespace ggufmill {

// The kernels of F16.
struct HalfKernels {
  KernelChoice decode, encode;
};

// Encodes rows of F32. With a lattice kernel, a row that it recognises as exact is written by it alone; a row that it
// recognises as near is written by it if its error, the sum of w (x - y)^2, is less than that of the encoder.
// `call.importance` is used by the kernel or the search if `encoding.importance` is set; `weights` are those of the
// gain, or null for none. If the encoder compensates, the call's first row is the first of Encoder::kRowsTogether rows
// of a matrix, and its last row the last of them or of the matrix. Fails with exit code 4 for values that are too large
// for the type, 1 if a kernel fails.
Status encode_rows(const BoundEncoding& encoding, const KernelCall& call, const float* weights);

// Multiplies the scales of each encoded row of `call.dst` by sum(w x x) / sum(w x y), where x are the values in
// `call.src`, y the encoded ones, and w the weights (1 if null): then sum(w x y) is sum(w x x), up to the rounding of
// the scales. The levels remain. The sums are of doubles, eight partial sums of every eighth column each, so the bytes
// depend only on the row and the weights. A row remains as it is if the factor is not between 1/2 and 2, or if a scale
// would not be finite: then its values are not those of a usual encoding, and stretching them does not help.
// The type must have a gain, see has_gain().
Status apply_row_gain(const TypeInfo& type, const KernelChoice& decode, const HalfKernels& f16, const KernelCall& call,
                      const float* weights, const std::string& tensor);

}  // namespace ggufmill
