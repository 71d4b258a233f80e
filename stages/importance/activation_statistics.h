#pragma once
// Statistics of the activations behind each entry of an importance file, which llama-imatrix stores with it. Source:
// llama.cpp, tools/imatrix/imatrix.cpp, compute_vector_statistics and compute_tensor_statistics (MIT).

#include <array>
#include <cstddef>
#include <limits>
#include <string_view>
#include <vector>

#include "stages/importance/merged_importance.h"

namespace ggufmill {

// The names of the statistics in the order in which they are stored, the key `imatrix.stats_schema`.
inline constexpr std::string_view kActivationStatistics[] = {"sum_sq",   "mean",     "elements", "std_deviation",
                                                             "skewness", "kurtosis", "gain",     "h_norm",
                                                             "l2_dist",  "cossim",   "pearson",  "covariance"};

// The statistics of one entry. Those up to the entropy describe its columns: the mean activations or, in files without
// sums of activations, the mean squares. The others compare them with those of the same tensor in the nearest earlier
// layer, and are NaN if there is none.
struct ActivationStatistics {
  static constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

  double sum_sq = 0;    // of the mean squares
  double elements = 0;  // columns whose values are finite, of parts that saw tokens; 0: there are no statistics
  float mean = 0, deviation = 0, skewness = 0, kurtosis = 0;
  float gain = kNone;  // of the root mean square
  float entropy = 0;   // of the mean squares, in bits
  float distance = kNone, cosine = kNone, pearson = kNone, covariance = kNone;

  // Returns the numbers as stored; all are 0 if there are no statistics.
  std::array<float, std::size(kActivationStatistics)> stored() const;
};

// Computes the statistics of all entries, in their order. Reads the numbers of each entry several times, in pieces.
Result<std::vector<ActivationStatistics>> activation_statistics(const MergedImportance& merged);

}  // namespace ggufmill
