#include "plugins/simd/iq3_types.h"

#include "plugins/simd/lattice_codec.h"

namespace ggufmill::simd {
namespace {

// The reference formats, with weights in lanes.
struct Iq3XxsLanes : reference::Iq3XxsFormat {
  static Floats plain_weight(Floats x, Floats) { return x * x; }
  static LatticeView<reference::Octal> view() {
    static const LatticeTable<reference::Octal, reference::kIq3XxsNeighbours, Keep::kNearestToRounded> table(lattice());
    return table.view();
  }
};

struct Iq3SLanes : reference::Iq3SFormat {
  static Floats plain_weight(Floats x, Floats) { return x * x; }
  static LatticeView<reference::Octal> view() {
    static const LatticeTable<reference::Octal, reference::kIq3SNeighbours, Keep::kNearestToRounded> table(lattice());
    return table.view();
  }
};

}  // namespace

template <>
std::int32_t Iq3Xxs::encode(const Batch<1>& batch, Block* block, std::size_t count) {
  return encode_lattice<Iq3XxsLanes>(batch, block, count);
}

template <>
std::int32_t Iq3S::encode(const Batch<1>& batch, Block* block, std::size_t count) {
  return encode_lattice<Iq3SLanes>(batch, block, count);
}

}  // namespace ggufmill::simd
