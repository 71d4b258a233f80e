#include "plugins/ik/trellis.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace ggufmill::ik {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The `count` points that are nearest to a centre, nearest first; of two at the same distance, the first one offered.
class NearestPoints {
 public:
  static constexpr int kMax = 7;

  bool takes(float distance) const { return distance < distances_[kMax - 1]; }
  void offer(float distance, std::uint16_t point) {
    int at = kMax - 1;
    for (; at > 0 && distance < distances_[at - 1]; --at) {
      distances_[at] = distances_[at - 1];
      points_[at] = points_[at - 1];
    }
    distances_[at] = distance;
    points_[at] = point;
  }
  std::uint16_t operator[](std::size_t i) const { return points_[i]; }

 private:
  std::array<float, kMax> distances_{kInfinity, kInfinity, kInfinity, kInfinity, kInfinity, kInfinity, kInfinity};
  std::array<std::uint16_t, kMax> points_{};
};

// The borders of the five parts into which each of four dimensions is divided.
int part_of(float x) { return x < -48 ? 0 : x < -16 ? 1 : x < 16 ? 2 : x < 48 ? 3 : 4; }

// Position in a block of eight of the point in each lane. In four dimensions, sums of pairs leave the even ones first.
template <int kDimensions>
constexpr std::array<int, 8> kLaneOrder =
    kDimensions == 8 ? std::array{0, 1, 2, 3, 4, 5, 6, 7} : std::array{0, 2, 4, 6, 1, 3, 5, 7};

// Adds the terms of all dimensions in the order of a register's halves.
template <int kDimensions, class Term>
float sum_of(const Term& term) {
  if constexpr (kDimensions == 8)
    return ((term(0) + term(4)) + (term(2) + term(6))) + ((term(1) + term(5)) + (term(3) + term(7)));
  else
    return (term(0) + term(2)) + (term(1) + term(3));
}

}  // namespace

template <int kDimensions>
TrellisBook<kDimensions>::TrellisBook(const TrellisFormat& format) : is_magnitude_(format.is_magnitude) {
  for (std::uint32_t index = 0; index < 1u << format.bits; ++index)
    for (const std::int8_t value : trellis_values<kDimensions>(index + format.offset))
      points_.push_back(format.is_magnitude && value < 0 ? static_cast<std::int8_t>(-value) : value);
  divide(format.is_magnitude);
  make_clusters(format.neighbours);
}

// Sets the middle of each dimension: the median of magnitudes, else the middle of the range.
template <int kDimensions>
void TrellisBook<kDimensions>::divide(bool is_magnitude) {
  const std::size_t count = points_.size() / kDimensions;
  std::vector<int> sorted(count);
  for (std::size_t k = 0; k < kDimensions; ++k) {
    for (std::size_t i = 0; i < count; ++i) sorted[i] = points_[i * kDimensions + k];
    std::ranges::sort(sorted);
    const int low = is_magnitude ? sorted[count / 2 - 1] : sorted.front();
    const int high = is_magnitude ? sorted[count / 2] : sorted.back();
    middle_[k] = 0.5f * static_cast<float>(low + high);
  }
}

template <int kDimensions>
int TrellisBook<kDimensions>::cluster_of(const float* x) const {
  int number = 0;
  for (int k = kDimensions - 1; k >= 0; --k) {
    if constexpr (kDimensions == 8)
      number = 2 * number + (x[k] > middle_[static_cast<std::size_t>(k)] ? 1 : 0);
    else
      number = 5 * number + part_of(x[k]);
  }
  return number;
}

// Returns the mean of the points in each cell, by dimension, then cell; zero for an empty cell.
template <int kDimensions>
std::vector<float> TrellisBook<kDimensions>::centres() const {
  std::vector<float> sums(static_cast<std::size_t>(kDimensions) * kClusters);
  std::vector<int> counts(kClusters);
  for (std::size_t i = 0; i < points_.size(); i += kDimensions) {
    float point[kDimensions];
    for (std::size_t k = 0; k < kDimensions; ++k) point[k] = points_[i + k];
    const auto cell = static_cast<std::size_t>(cluster_of(point));
    ++counts[cell];
    for (std::size_t k = 0; k < kDimensions; ++k) sums[k * kClusters + cell] += point[k];
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (const int count = counts[i % kClusters]; count != 0) sums[i] /= static_cast<float>(count);
  return sums;
}

// Adds each point to the clusters of its nearest centres. A cluster is filled up to a multiple of kLanes with the
// nearest of the other points.
template <int kDimensions>
void TrellisBook<kDimensions>::make_clusters(int neighbours) {
  const std::vector<float> centres = this->centres();
  std::vector<std::vector<std::uint16_t>> members(kClusters);
  std::vector<NearestPoints> others(kClusters);
  std::vector<std::pair<float, int>> nearest(static_cast<std::size_t>(neighbours));  // distance, number
  for (std::size_t i = 0; i < points_.size() / kDimensions; ++i) {
    const auto point = static_cast<std::uint16_t>(i);
    float distances[kClusters] = {};
    for (std::size_t k = 0; k < kDimensions; ++k) {
      const float x = points_[i * kDimensions + k], *const centre = centres.data() + k * kClusters;
      for (std::size_t c = 0; c < kClusters; ++c) distances[c] += (x - centre[c]) * (x - centre[c]);
    }
    std::ranges::fill(nearest, std::pair(kInfinity, -1));
    for (int c = 0; c < kClusters; ++c) {
      if (!(distances[c] < nearest.back().first)) continue;
      auto at = nearest.end() - 1;
      for (; at != nearest.begin() && distances[c] < (at - 1)->first; --at) *at = *(at - 1);
      *at = {distances[c], c};
    }
    for (const auto& [distance, c] : nearest) {
      members[static_cast<std::size_t>(c)].push_back(point);
      distances[c] = kInfinity;
    }
    for (std::size_t c = 0; c < kClusters; ++c)
      if (others[c].takes(distances[c])) others[c].offer(distances[c], point);
  }
  for (std::size_t c = 0; c < kClusters; ++c) {
    for (std::size_t i = 0; members[c].size() % kLanes != 0; ++i) members[c].push_back(others[c][i]);
    add_cluster(members[c]);
  }
  begins_.push_back(static_cast<int>(indices_.size()));
}

template <int kDimensions>
void TrellisBook<kDimensions>::add_cluster(const std::vector<std::uint16_t>& members) {
  begins_.push_back(static_cast<int>(indices_.size()));
  for (std::size_t first = 0; first < members.size(); first += kLanes) {
    for (const int place : kLaneOrder<kDimensions>)
      indices_.push_back(members[first + static_cast<std::size_t>(place)]);
    for (int k = 0; k < kDimensions; ++k)
      for (std::size_t lane = 0; lane < kLanes; ++lane)
        coordinates_.push_back(point(indices_[indices_.size() - kLanes + lane])[k]);
  }
}

template <int kDimensions>
int TrellisBook<kDimensions>::nearest(const float* x, const float* weights) const {
  const Cluster cluster = this->cluster(cluster_of(x));
  float least[kLanes];
  int best[kLanes] = {};
  std::ranges::fill(least, kInfinity);
  const std::int8_t* eight = cluster.coordinates;
  for (int first = 0; first < cluster.count; first += kLanes, eight += kDimensions * kLanes) {
    float terms[kDimensions][kLanes];
    for (int k = 0; k < kDimensions; ++k)
      for (int lane = 0; lane < kLanes; ++lane) {
        const float off = static_cast<float>(eight[k * kLanes + lane]) - x[k];
        terms[k][lane] = weights[k] * (off * off);
      }
    for (int lane = 0; lane < kLanes; ++lane) {
      const float distance = sum_of<kDimensions>([&](int k) { return terms[k][lane]; });
      best[lane] = distance < least[lane] ? first + lane : best[lane];
      least[lane] = distance < least[lane] ? distance : least[lane];
    }
  }
  const auto lane = std::min_element(least, least + kLanes) - least;
  return cluster.indices[best[lane]];
}

template class TrellisBook<4>;
template class TrellisBook<8>;

const TrellisBook<8>& book_of_iq1_kt() {
  static const TrellisBook<8> book({13, kTrellisOffset, false, 32});
  return book;
}

const TrellisBook<8>& book_of_iq2_kt() {
  static const TrellisBook<8> book({16, kTrellisOffset, false, 8});
  return book;
}

const TrellisBook<8>& book_of_iq3_kt() {
  static const TrellisBook<8> book({16, kTrellisOffset, true, 8});
  return book;
}

const TrellisBook<4>& book_of_iq4_kt(bool is_second) {
  static const TrellisBook<4> first({15, kTrellisOffset, false, 6});
  static const TrellisBook<4> second({15, kSecondTrellisOffset, false, 6});
  return is_second ? second : first;
}

}  // namespace ggufmill::ik
