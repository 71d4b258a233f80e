#pragma once
// Orders points so that neighbours are together.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "plugins/ik/trellis.h"

namespace ggufmill::simd {

template <int kDimensions>
using TrellisPoints = std::vector<std::array<std::int8_t, kDimensions>>;

// Sorts numbers of points into groups of `unit`: halves the coordinate of widest range.
template <int kDimensions>
void order_points(const TrellisPoints<kDimensions>& points, std::uint16_t* numbers, std::size_t count,
                  std::size_t unit) {
  if (count <= unit) return;
  std::size_t widest = 0;
  int range = -1;
  for (std::size_t k = 0; k < kDimensions; ++k) {
    const auto less = [&](std::uint16_t a, std::uint16_t b) { return points[a][k] < points[b][k]; };
    const auto [least, most] = std::minmax_element(numbers, numbers + count, less);
    if (points[*most][k] - points[*least][k] <= range) continue;
    range = points[*most][k] - points[*least][k];
    widest = k;
  }
  const std::size_t half = (count + unit - 1) / unit / 2 * unit;
  std::nth_element(numbers, numbers + half, numbers + count, [&](std::uint16_t a, std::uint16_t b) {
    return points[a][widest] != points[b][widest] ? points[a][widest] < points[b][widest] : a < b;
  });
  order_points<kDimensions>(points, numbers, half, unit);
  order_points<kDimensions>(points, numbers + half, count - half, unit);
}

// The points of a cluster in this order.
template <int kDimensions>
struct OrderedPoints {
  std::vector<std::uint16_t> places;   // in the list of the cluster
  std::vector<std::uint16_t> indices;  // in the book
  TrellisPoints<kDimensions> points;

  OrderedPoints(const ik::TrellisBook<kDimensions>& book, int cluster, std::size_t unit) {
    const auto list = book.cluster(cluster);
    TrellisPoints<kDimensions> given(static_cast<std::size_t>(list.count));
    for (std::size_t i = 0; i < given.size(); ++i)
      std::copy_n(book.point(list.indices[i]), kDimensions, given[i].begin());
    places.resize(given.size());
    std::iota(places.begin(), places.end(), std::uint16_t{0});
    order_points<kDimensions>(given, places.data(), places.size(), unit);
    for (const std::uint16_t place : places) {
      indices.push_back(list.indices[place]);
      points.push_back(given[place]);
    }
  }
};

// True if a point of a cluster's list comes before another in the order of TrellisBook::nearest().
template <int kDimensions>
bool comes_before(int place, int other) {
  constexpr int kOrder = ik::TrellisBook<kDimensions>::kLanes;
  return place % kOrder != other % kOrder ? place % kOrder < other % kOrder : place < other;
}

}  // namespace ggufmill::simd
