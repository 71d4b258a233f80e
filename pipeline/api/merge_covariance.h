#pragma once
// Adds up covariance files.

#include <string>
#include <vector>

#include "pipeline/api/merge_importance.h"
#include "stages/importance/covariance_file.h"

namespace ggufmill {

struct WeightedCovariance {
  CovarianceFile file;
  double weight = 1;  // factor for its sums and counts; finite and greater than 0
};

// Writes the sum of covariance files, in the order given, as one that was collected of all their texts. Sums are in
// double precision; sums of squares are rounded to F32, and correlations to F16, to the nearest or the even number, so
// merging at once and in pairs can differ by a rounding. At most one row of the correlations of one matrix of each file
// is in memory at a time. Held-out vectors are those of all files, in the same order, or kMaxHeldOut of them at equal
// distances; if a file has none, neither has the sum. Fails with exit code 4 if the files do not have the same inputs,
// shapes, blocks and chunk size, or have numbers that are not sums or correlations.
Result<Merged> merge_covariance(const std::vector<WeightedCovariance>& parts, const std::string& output,
                                bool overwrite);

}  // namespace ggufmill
