#include "plugins/reference/iq_lattice.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace ggufmill::reference {
namespace {

// Returns the squared distance in levels, which determines the order of the neighbours.
template <class Space>
int distance(const typename Space::Point& a, const typename Space::Point& b) {
  int sum = 0;
  for (int i = 0; i < Space::kDims; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

// Neighbour lists of one code book. `Neighbours` is the total number of entries in all lists; a unit test checks it for
// each book.
template <class Space, int Size, std::uint32_t Neighbours>
class Lists {
 public:
  Lists(const CodeBook<Space, Size>& book, int rings) {
    std::fill(std::begin(index_), std::end(index_), std::int16_t{-1});
    for (int i = 0; i < Size; ++i) index_[Space::code_of(book[i].data())] = static_cast<std::int16_t>(i);
    for (int code = 0; code < Space::kCodes; ++code) {
      first_[code] = count_;
      if (index_[code] < 0) append_neighbours(book, Space::point_of(code), rings);
    }
    first_[Space::kCodes] = count_;
    lattice_ = {book.data(), index_, first_, neighbours_};
  }

  const Lattice<Space>& lattice() const { return lattice_; }

 private:
  static constexpr int kMaxDistance = Space::kDims * (Space::kLevels - 1) * (Space::kLevels - 1);

  // A counting sort by distance. It is stable, so the indices stay in order; only the first rings are written.
  void append_neighbours(const CodeBook<Space, Size>& book, const typename Space::Point& point, int rings) {
    std::uint16_t distances[Size];
    std::uint32_t next[kMaxDistance + 1] = {};  // members at each distance, then the position of the next one
    for (int i = 0; i < Size; ++i) {
      distances[i] = static_cast<std::uint16_t>(distance<Space>(point, book[i]));
      ++next[distances[i]];
    }
    int reach = 0;
    for (int met = 0; reach <= kMaxDistance && met < rings; ++reach) {
      if (next[reach] == 0) continue;
      count_ += std::exchange(next[reach], count_);
      ++met;
    }
    for (int i = 0; i < Size; ++i)
      if (distances[i] < reach) neighbours_[next[distances[i]]++] = static_cast<std::uint16_t>(i);
  }

  std::uint32_t count_ = 0;
  std::int16_t index_[Space::kCodes];
  std::uint32_t first_[Space::kCodes + 1];
  std::uint16_t neighbours_[Neighbours];
  Lattice<Space> lattice_;
};

}  // namespace

const Lattice<Ternary>& iq1_lattice() {
  static const Lists<Ternary, 2048, kIq1Neighbours> lists(kIq1Book, 3);
  return lists.lattice();
}

const Lattice<Ternary>& iq2_xxs_lattice() {
  static const Lists<Ternary, 256, kIq2XxsNeighbours> lists(kIq2XxsBook, 2);
  return lists.lattice();
}

const Lattice<Ternary>& iq2_xs_lattice() {
  static const Lists<Ternary, 512, kIq2XsNeighbours> lists(kIq2XsBook, 2);
  return lists.lattice();
}

const Lattice<Ternary>& iq2_s_lattice() {
  static const Lists<Ternary, 1024, kIq2SNeighbours> lists(kIq2SBook, 1);
  return lists.lattice();
}

const Lattice<Octal>& iq3_xxs_lattice() {
  static const Lists<Octal, 256, kIq3XxsNeighbours> lists(kIq3XxsBook, 2);
  return lists.lattice();
}

const Lattice<Octal>& iq3_s_lattice() {
  static const Lists<Octal, 512, kIq3SNeighbours> lists(kIq3SBook, 3);
  return lists.lattice();
}

}  // namespace ggufmill::reference
