#include "plugins/ik/simd/leaf_book.h"

#include <bit>
#include <limits>

#include "plugins/ik/simd/trial.h"
#include "plugins/simd/bytes.h"

namespace ggufmill::simd {
namespace {

constexpr int kStep = static_cast<int>(kLanes);

Floats coordinates(const std::int8_t* bytes) {
  return to_floats(load_signed(reinterpret_cast<const std::uint8_t*>(bytes)));
}

// Returns what ik::TrellisBook::cluster_of() does, without branches.
int cluster_of(const float* x) {
  int number = 0;
  for (int k = LeafBook::kDimensions - 1; k >= 0; --k)
    number = 5 * number + 4 - (x[k] < -48) - (x[k] < -16) - (x[k] < 16) - (x[k] < 48);
  return number;
}

// Four values and their weights, each in all lanes.
struct Query {
  Floats x[LeafBook::kDimensions], weight[LeafBook::kDimensions];

  Query(const float* values, const float* weights) {
    for (int k = 0; k < LeafBook::kDimensions; ++k) {
      x[k] = floats(values[k]);
      weight[k] = floats(weights[k]);
    }
  }
  Floats term(int k, Floats off) const { return weight[k] * (off * off); }
};

}  // namespace

LeafBook::LeafBook(const ik::TrellisBook<kDimensions>& book)
    : book_(book), clusters_(static_cast<std::size_t>(book.kClusters)) {
  for (int number = 0; number < book.kClusters; ++number) add(number);
}

void LeafBook::add(int number) {
  const OrderedPoints<kDimensions> ordered(book_, number, kLeaf);
  Cluster& cluster = clusters_[static_cast<std::size_t>(number)];
  const std::size_t count = ordered.points.size(), leaves = (count + kLeaf - 1) / kLeaf;
  const std::size_t stride = (leaves + kLanes - 1) / kLanes * kLanes;
  cluster.first_leaf = static_cast<std::uint32_t>(leaves_.size());
  cluster.leaves = static_cast<std::uint32_t>(leaves);
  cluster.first_box = static_cast<std::uint32_t>(boxes_.size());
  leaves_.resize(leaves_.size() + leaves);
  boxes_.resize(boxes_.size() + 2 * stride * kDimensions);
  for (std::size_t i = 0; i < leaves * kLeaf; ++i) {
    // The last leaf is filled up with its last point.
    const std::size_t from = std::min(i, count - 1);
    indices_.push_back(ordered.indices[from]);
    places_.push_back(ordered.places[from]);
    for (std::size_t k = 0; k < kDimensions; ++k) {
      const std::int8_t value = ordered.points[from][k];
      std::int8_t* const low = boxes_.data() + cluster.first_box + 2 * k * stride + i / kLeaf;
      std::int8_t* const high = low + stride;
      leaves_[cluster.first_leaf + i / kLeaf].coordinates[k][i % kLeaf] = value;
      *low = i % kLeaf == 0 ? value : std::min(*low, value);
      *high = i % kLeaf == 0 ? value : std::max(*high, value);
    }
  }
  for (std::size_t k = 0; k < kDimensions; ++k) {
    std::vector<std::int8_t> sorted;
    for (const auto& point : ordered.points) sorted.push_back(point[k]);
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t cut = 0; cut < kCuts; ++cut) cluster.cuts[cut][k] = sorted[count * (cut + 1) / (kCuts + 1)];
  }
  find_homes(ordered.points, cluster);
}

int LeafBook::cell_of(const Cluster& cluster, const float* x) {
  int cell = 0;
  for (int k = 0; k < kDimensions; ++k) {
    int above = 0;
    for (int cut = 0; cut < kCuts; ++cut) above += x[k] > static_cast<float>(cluster.cuts[cut][k]) ? 1 : 0;
    cell = cell * (kCuts + 1) + above;
  }
  return cell;
}

// Finds the leaf of a point that is near to the middle of each cell.
void LeafBook::find_homes(const TrellisPoints<kDimensions>& points, Cluster& cluster) {
  // The mean of each coordinate of the points between its cuts.
  float sums[kCuts + 1][kDimensions] = {}, counts[kCuts + 1][kDimensions] = {};
  for (const auto& point : points)
    for (std::size_t k = 0; k < kDimensions; ++k) {
      std::size_t above = 0;
      for (std::size_t cut = 0; cut < kCuts; ++cut) above += point[k] > cluster.cuts[cut][k];
      sums[above][k] += static_cast<float>(point[k]);
      counts[above][k] += 1;
    }
  for (std::size_t cell = 0; cell < kCells; ++cell) {
    float middle[kDimensions];
    std::size_t rest = cell;
    for (std::size_t k = kDimensions; k-- > 0; rest /= kCuts + 1)
      middle[k] = sums[rest % (kCuts + 1)][k] / std::max(counts[rest % (kCuts + 1)][k], 1.0f);
    float least = 0;
    for (std::size_t i = 0; i < points.size(); i += 3) {  // some of the points are enough
      float distance = 0;
      for (std::size_t k = 0; k < kDimensions; ++k) {
        const float off = static_cast<float>(points[i][k]) - middle[k];
        distance += off * off;
      }
      if (i != 0 && distance >= least) continue;
      least = distance;
      cluster.homes[cell] = static_cast<std::uint8_t>(i / kLeaf);
    }
  }
}

// A search in one cluster.
class LeafBook::Search {
 public:
  Search(const LeafBook& book, const Cluster& cluster, const float* x, const float* weights)
      : query_(x, weights),
        leaves_(book.leaves_.data() + cluster.first_leaf),
        boxes_(book.boxes_.data() + cluster.first_box),
        places_(book.places_.data() + std::size_t{cluster.first_leaf} * kLeaf),
        count_(static_cast<int>(cluster.leaves)) {}

  // Returns the number of the nearest point, or -1 if there is none, or the order of equal ones is not known.
  int run(int home) {
    compare(home);
    const Floats least = hn::MinOfLanes(kFloats, least_);
    const int stride = (count_ + kStep - 1) / kStep * kStep;
    // All bounds come first: a loop over the leaves of all vectors ends only once.
    std::uint64_t near[kMaxLeaves / 64] = {};
    for (int first = 0; first < stride; first += kStep)
      near[first / 64] |= std::uint64_t{mask_bits(bounds(first, stride) <= least)} << (first % 64);
    near[home / 64] &= ~(std::uint64_t{1} << (home % 64));
    for (int first = 0; first < count_; first += 64)
      for (std::uint64_t bits = near[first / 64]; bits != 0; bits &= bits - 1)
        if (const int leaf = first + std::countr_zero(bits); leaf < count_) compare(leaf);
    return nearest_of_lanes();
  }
  float distance() const { return distance_; }  // of the point that was found

 private:
  // Returns the bounds of the distances of leaves, in the order of the sums of points.
  HWY_INLINE Floats bounds(int first, int stride) const {
    const auto term = [&](int k) {
      const Floats below = coordinates(boxes_ + 2 * k * stride + first) - query_.x[k];
      const Floats above = query_.x[k] - coordinates(boxes_ + (2 * k + 1) * stride + first);
      return query_.term(k, greater(greater(below, above), floats(0)));
    };
    return (term(0) + term(2)) + (term(1) + term(3));
  }

  // Compares the points of a leaf with the nearest one so far in each lane.
  HWY_INLINE void compare(int leaf) {
    GGUFMILL_UNROLL
    for (int i = 0; i < kLeaf; i += kStep) {
      const auto term = [&](int k) {
        return query_.term(k, coordinates(leaves_[leaf].coordinates[k] + i) - query_.x[k]);
      };
      const Floats distance = (term(0) + term(2)) + (term(1) + term(3));
      const Mask is_less = distance < least_;
      has_equals_ = hn::AndNot(is_less, hn::Or(has_equals_, distance == least_));
      number_ = choose(is_less, ints(leaf * kLeaf + i), number_);
      least_ = choose(is_less, distance, least_);
    }
  }

  int nearest_of_lanes() {
    const Floats least = hn::MinOfLanes(kFloats, least_);
    distance_ = hn::GetLane(least);
    const Mask is_least = least_ == least;
    if (any(hn::And(has_equals_, is_least))) return -1;
    alignas(64) std::int32_t numbers[kLanes];
    hn::Store(number_, kInts, numbers);
    int nearest = -1;
    for (unsigned bits = mask_bits(is_least); bits != 0; bits &= bits - 1) {
      const int lane = std::countr_zero(bits), number = numbers[lane] + lane;
      if (numbers[lane] < 0) continue;
      if (nearest < 0 || comes_before<kDimensions>(places_[number], places_[nearest])) nearest = number;
    }
    return nearest;
  }

  float distance_ = 0;
  const Query query_;
  const Leaf* leaves_;
  const std::int8_t* boxes_;
  const std::uint16_t* places_;
  int count_;
  Floats least_ = floats(std::numeric_limits<float>::infinity());
  Ints number_ = ints(-1);  // of the first lane
  Mask has_equals_ = hn::MaskFromVec(floats(0));
};

int LeafBook::nearest(int number, const float* x, const float* weights, ik::TrellisHint& hint) const {
  constexpr int kMaxPoints = kMaxLeaves * kLeaf;
  const Cluster& cluster = clusters_[static_cast<std::size_t>(number)];
  const bool is_near = hint.place >= 0 && hint.place / kMaxPoints == number;
  const int home = is_near ? hint.place % kMaxPoints / kLeaf : cluster.homes[cell_of(cluster, x)];
  Search search(*this, cluster, x, weights);
  const int found = search.run(home);
  if (found < 0) {
    hint = {};
    return book_.nearest(x, weights);
  }
  hint = {number * kMaxPoints + found, search.distance()};
  return indices_[cluster.first_leaf * kLeaf + static_cast<unsigned>(found)];
}

bool LeafBook::find(const ik::TrellisQuery& query, const ik::TrellisRival& rival, int* indices,
                    ik::TrellisHint* hints) const {
  constexpr int kGroups = Trial<kDimensions>::kGroups;
  int clusters[kGroups];
  for (int g = 0; g < kGroups; ++g) clusters[g] = cluster_of(query.scaled + g * kDimensions);
  Trial<kDimensions> trial(query, rival);
  FarthestFirst<kGroups> groups(hints);
  for (int n = 0; n < kGroups; ++n) {
    const int g = groups.next(), i = g * kDimensions;
    indices[g] = nearest(clusters[g], query.scaled + i, query.weights + i, hints[g]);
    if (!trial.add(g, point(indices[g]), hints[g].distance)) return false;
  }
  return true;
}

}  // namespace ggufmill::simd
