#pragma once
// ik::TrellisBook in four dimensions, with a search that compares only a few of the points of a cluster.
//
// The points of a cluster are in leaves of neighbours. The weighted squared distance to the box of a leaf is a lower
// bound of those to its points, also when it is rounded: off = point - x, off * off, its product with the weight, and
// sums are monotonic. Only leaves whose bounds do not exceed the best distance of a first leaf are compared, as the
// plain loop compares them.

#include <cstdint>
#include <vector>

#include "plugins/ik/simd/point_order.h"
#include "plugins/simd/lanes.h"

namespace ggufmill::simd {

class LeafBook {
 public:
  static constexpr int kDimensions = 4;

  explicit LeafBook(const ik::TrellisBook<kDimensions>& book);

  const std::int8_t* point(int index) const { return book_.point(index); }
  // Finds the points of a sub-block of 32 values; the same as ik::TrellisBook::find() unless it returns false. If the
  // hints were set by a search for about the same values, it takes less time.
  bool find(const ik::TrellisQuery& query, const ik::TrellisRival& rival, int* indices, ik::TrellisHint* hints) const;

 private:
  static constexpr int kLeaf = 16;        // points
  static constexpr int kMaxLeaves = 128;  // of a cluster, a multiple of a vector's lanes
  static constexpr int kCuts = 3, kCells = 256;

  struct Cluster {
    std::int8_t cuts[kCuts][kDimensions];  // borders of cells
    std::uint32_t first_leaf, leaves;
    std::uint32_t first_box;     // in boxes_
    std::uint8_t homes[kCells];  // a leaf near the middle of each cell
  };
  struct Leaf {
    std::int8_t coordinates[kDimensions][kLeaf];
  };
  class Search;

  void add(int number);
  static void find_homes(const TrellisPoints<kDimensions>& points, Cluster& cluster);
  static int cell_of(const Cluster& cluster, const float* x);
  int nearest(int number, const float* x, const float* weights, ik::TrellisHint& hint) const;

  const ik::TrellisBook<kDimensions>& book_;
  std::vector<Cluster> clusters_;
  std::vector<Leaf> leaves_;
  std::vector<std::int8_t> boxes_;  // by cluster and coordinate: the least values of its leaves, then the greatest ones
  std::vector<std::uint16_t> indices_;  // of the points of the leaves in the book
  std::vector<std::uint16_t> places_;   // and in the list of the cluster
};

}  // namespace ggufmill::simd
