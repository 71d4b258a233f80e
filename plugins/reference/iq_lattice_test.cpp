#include "plugins/reference/iq_lattice.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/support/catch.h"

using namespace ggufmill::reference;

namespace {

// Implements the definition without a counting sort: sorts by distance, then index, and stops at the change of distance
// number `rings`.
template <class Space>
std::vector<std::uint16_t> sorted_neighbours(const Lattice<Space>& lattice, int size, int code, int rings) {
  const auto point = Space::point_of(code);
  std::vector<std::pair<int, std::uint16_t>> members;
  for (int i = 0; i < size; ++i) {
    int sum = 0;
    for (int k = 0; k < Space::kDims; ++k) {
      const int difference = lattice.book[i][k] - point[k];
      sum += difference * difference;
    }
    members.emplace_back(sum, static_cast<std::uint16_t>(i));
  }
  std::sort(members.begin(), members.end());
  std::vector<std::uint16_t> neighbours;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i > 0 && members[i].first != members[i - 1].first && --rings == 0) break;
    neighbours.push_back(members[i].second);
  }
  return neighbours;
}

template <class Space>
void check_lists(const Lattice<Space>& lattice, int size, int rings) {
  int members = 0;
  for (int code = 0; code < Space::kCodes; ++code) {
    if (lattice.index[code] >= 0) {
      ++members;
      REQUIRE(Space::code_of(lattice.book[lattice.index[code]].data()) == code);
      REQUIRE(lattice.first[code] == lattice.first[code + 1]);
    } else if (code % 41 == 0) {
      const std::vector<std::uint16_t> neighbours(lattice.neighbours + lattice.first[code],
                                                  lattice.neighbours + lattice.first[code + 1]);
      CAPTURE(code);
      REQUIRE(neighbours == sorted_neighbours(lattice, size, code, rings));
    }
  }
  CHECK(members == size);
  CHECK(lattice.index[0] == 0);  // the encoders start from levels 0
}

}  // namespace

TEST_CASE("neighbours are the members on the nearest spheres, in order", "[lattice]") {
  check_lists(iq1_lattice(), 2048, 3);
  check_lists(iq2_xxs_lattice(), 256, 2);
  check_lists(iq2_xs_lattice(), 512, 2);
  check_lists(iq2_s_lattice(), 1024, 1);
  check_lists(iq3_xxs_lattice(), 256, 2);
  check_lists(iq3_s_lattice(), 512, 3);
}

TEST_CASE("the lists fill their storage", "[lattice]") {
  CHECK(iq1_lattice().first[Ternary::kCodes] == kIq1Neighbours);
  CHECK(iq2_xxs_lattice().first[Ternary::kCodes] == kIq2XxsNeighbours);
  CHECK(iq2_xs_lattice().first[Ternary::kCodes] == kIq2XsNeighbours);
  CHECK(iq2_s_lattice().first[Ternary::kCodes] == kIq2SNeighbours);
  CHECK(iq3_xxs_lattice().first[Octal::kCodes] == kIq3XxsNeighbours);
  CHECK(iq3_s_lattice().first[Octal::kCodes] == kIq3SNeighbours);
}
