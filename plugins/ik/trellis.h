#pragma once
// Code books of the trellis types. The points of a book are numbers in a few dimensions, which a generator computes
// from their index. A search for the nearest point reads only those of one cluster, so the clusters are part of the
// definition of the types. Source: ik_llama.cpp, ggml/src/iqk/iqk_quantize.cpp (MIT).

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace ggufmill::ik {

inline constexpr std::uint32_t kTrellisFactor = 0xcbac1fed;  // the generator multiplies by it

// Computes kCount numbers from -126 to 126 from an index, to which `offset` was added.
template <int kCount>
std::array<std::int8_t, kCount> trellis_values(std::uint32_t index) {
  std::array<std::int8_t, kCount> values;
  for (std::int8_t& value : values) {
    index *= kTrellisFactor;
    const std::uint32_t four = index & 0x3f3f3f3f;  // their sum is the value
    value = static_cast<std::int8_t>(static_cast<int>((four * 0x01010101u) >> 24) - 126);
  }
  return values;
}

struct TrellisFormat {
  int bits;              // of an index
  std::uint32_t offset;  // added to the index
  bool is_magnitude;     // the points have no signs
  int neighbours;        // number of clusters that a point joins
};

// The values of a sub-block that points are searched for.
struct TrellisQuery {
  static constexpr int kSubBlock = 32;
  const float *x, *weights;
  float inverse;            // of the scale that is tried
  float scaled[kSubBlock];  // its products with x

  TrellisQuery(const float* values, const float* weights_of_values, float factor)
      : x(values), weights(weights_of_values), inverse(factor) {
    for (int i = 0; i < kSubBlock; ++i) scaled[i] = inverse * x[i];
  }
};

// The best try of a sub-block so far, whose score another one must exceed.
struct TrellisRival {
  float score = 0;
  float squares = 0;        // sum of w x^2, which no score exceeds
  float weights = 0;        // sum
  float largest = 0;        // of |x|
  bool is_regular = false;  // no weight is negative or NaN

  TrellisRival() = default;
  TrellisRival(const float* x, const float* weights_of_x) : is_regular(true) {
    for (int i = 0; i < TrellisQuery::kSubBlock; ++i) {
      const float weight = weights_of_x[i];
      squares += weight * x[i] * x[i];
      weights += weight;
      largest = std::max(largest, std::fabs(x[i]));
      is_regular = is_regular && weight >= 0;
    }
  }
};

// Where a search found a point, for the next search for about the same values.
struct TrellisHint {
  int place = -1;  // as the book numbers them; -1 is none
  float distance = 0;
};

// A search for the points of a sub-block at one scale; `inverse` is 1 / scale.
struct TrellisSearch {
  const float *x, *weights;
  float inverse;
  int* indices;        // one point for each group
  TrellisHint* hints;  // from a search for about the same values, and for the next one
};

// The points of a book and their clusters. Immutable; building one takes up to some tenths of a second.
template <int kCoordinates>
class TrellisBook {
 public:
  static constexpr int kDimensions = kCoordinates;
  static constexpr int kLanes = 8;  // points of a cluster that are compared together

  explicit TrellisBook(const TrellisFormat& format);

  bool is_magnitude() const { return is_magnitude_; }
  const std::array<float, kDimensions>& middle() const { return middle_; }
  const std::int8_t* point(int index) const { return points_.data() + index * kDimensions; }

  // Returns the index of the point with the least weighted squared distance from x, among those of its cluster. Among
  // equals, the first lane counts, then the order within the lane. If no distance is finite, the point is the first
  // one.
  int nearest(const float* x, const float* weights) const;
  // Finds the points of kSubBlock values. Other books use hints and rivals; they return false if they stopped early.
  bool find(const TrellisQuery& query, const TrellisRival& /*rival*/, int* indices, TrellisHint* /*hints*/) const {
    for (int i = 0; i < TrellisQuery::kSubBlock; i += kDimensions)
      indices[i / kDimensions] = nearest(query.scaled + i, query.weights + i);
    return true;
  }
  // Makes many searches, each of which is complete.
  void find(std::span<const TrellisSearch> searches) const {
    for (const TrellisSearch& search : searches)
      find(TrellisQuery(search.x, search.weights, search.inverse), {}, search.indices, search.hints);
  }

  // Returns the number of the cluster of x.
  int cluster_of(const float* x) const;

  // A cluster: `count` points, a multiple of kLanes. Coordinate k of point i is
  // coordinates[i / kLanes * kDimensions * kLanes + k * kLanes + i % kLanes].
  struct Cluster {
    const std::int8_t* coordinates;
    const std::uint16_t* indices;
    int count;
  };
  Cluster cluster(int number) const {
    const int first = begins_[static_cast<std::size_t>(number)], end = begins_[static_cast<std::size_t>(number) + 1];
    return {coordinates_.data() + first * kDimensions, indices_.data() + first, end - first};
  }
  static constexpr int kClusters = kDimensions == 8 ? 256 : 625;

 private:
  void divide(bool is_magnitude);
  std::vector<float> centres() const;
  void make_clusters(int neighbours);
  void add_cluster(const std::vector<std::uint16_t>& members);

  const bool is_magnitude_;
  std::vector<std::int8_t> points_;
  std::array<float, kDimensions> middle_{};  // of each dimension
  std::vector<int> begins_;                  // first point of each cluster, and the end
  std::vector<std::uint16_t> indices_;
  std::vector<std::int8_t> coordinates_;
};

// Return the books, which are built once in a process, by the first call. Thread-safe.
const TrellisBook<8>& book_of_iq1_kt();
const TrellisBook<8>& book_of_iq2_kt();
const TrellisBook<8>& book_of_iq3_kt();
const TrellisBook<4>& book_of_iq4_kt(bool is_second);

inline constexpr std::uint32_t kTrellisOffset = 4096, kSecondTrellisOffset = 4096 + 32768;

}  // namespace ggufmill::ik
