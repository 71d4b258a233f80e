#pragma once
// ik::TrellisBook in eight dimensions, with a search that compares only a few of the points of a cluster.
//
// Each coordinate of the points of a cluster is in one of 16 parts, whose number is a nibble. For a value, a table of
// 16 bytes has a lower bound of the weighted squared distance to each part, in units of which the best distance so far
// has some 240. Looked up and added for all coordinates, they are a lower bound of the distance to a point. The points
// are in blocks of neighbours, for which there is a lower bound in the same way, from the parts that they reach. Only
// points whose bounds do not exceed the best distance are compared, as the plain loop compares them; the one with the
// least bound comes first.
//
// The clusters together are larger than a core's caches, so the searches of a row run in the order of their clusters.
//
// The result is that of the plain loop, if no weight is negative: off = point - x, off * off, its product with the
// weight, and sums are monotonic also when they are rounded, so the term of a part's end nearest to x is at most that
// of any point in the part. Bounds are rounded down, and what is left of the rounding is far less than the unit that
// the limit has to spare.

#include <cstdint>
#include <span>
#include <vector>

#include "plugins/ik/simd/point_order.h"

namespace ggufmill::simd {

class ScannedBook {
 public:
  static constexpr int kDimensions = 8;

  explicit ScannedBook(const ik::TrellisBook<kDimensions>& book);

  const std::int8_t* point(int index) const { return book_.point(index); }
  // Finds the points of many sub-blocks; the same as ik::TrellisBook::find(). If the hints were set by a search for
  // about the same values, it takes less time.
  void find(std::span<const ik::TrellisSearch> searches) const;

 private:
  static constexpr int kParts = 16, kBlock = 64;  // points of a block
  static constexpr int kMaxBlocks = 128;          // of a cluster
  static constexpr int kMaxPoints = kMaxBlocks * kBlock;
  static constexpr int kCells = 256;  // by the signs of x - middle

  // Points of a cluster. Its last block is filled up with its last point.
  struct alignas(64) Block {
    std::uint8_t parts[kDimensions / 2][kBlock];  // nibbles: those of the even coordinate are low
    std::uint16_t indices[kBlock];                // in the book
  };
  struct Cluster {
    alignas(64) std::int8_t low[kDimensions][kParts];  // least values of the parts
    std::int8_t high[kDimensions][kParts];             // greatest ones
    std::int8_t middle[kDimensions];                   // median of each coordinate
    std::int32_t count;                                // of points
    std::uint32_t first_block;                         // in blocks_
    std::uint32_t first_range;                         // in ranges_
    std::uint16_t seeds[kCells];                       // number of a point near the values of each cell

    int blocks() const { return (count + kBlock - 1) / kBlock; }
  };
  class Search;

  void add(int number);
  static void divide(const TrellisPoints<kDimensions>& points, Cluster& cluster);
  void add_blocks(const OrderedPoints<kDimensions>& ordered, Cluster& cluster);
  static void find_seeds(const TrellisPoints<kDimensions>& points, Cluster& cluster);
  int cluster_of(const ik::TrellisSearch& search, std::size_t group) const;

  const ik::TrellisBook<kDimensions>& book_;
  std::vector<Cluster> clusters_;
  std::vector<Block> blocks_;
  std::vector<std::uint16_t> places_;  // where the points of the blocks are in the list of their cluster
  std::vector<std::uint8_t> ranges_;   // for each coordinate and block: the least part, and in the high nibble the last
};

}  // namespace ggufmill::simd
