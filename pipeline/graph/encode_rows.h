#pragma once
// Encodes rows with the encoder of an encoding: a kernel or a search; or the lattice kernel.

#include "pipeline/graph/bind.h"

namespace ggufmill {

// Encodes rows of F32. With a lattice kernel, a row that it recognises as exact is written by it alone; a row that it
// recognises as near is written by it if its error, the sum of w (x - y)^2, is less than that of the encoder.
// `call.importance` is used by the kernel or the search if `encoding.importance` is set; `weights` are those of
// the errors that are compared, or null for none. Fails with exit code 4 for values that are too large
// for the type, 1 if a kernel fails.
Status encode_rows(const BoundEncoding& encoding, const KernelCall& call, const float* weights);

}  // namespace ggufmill
