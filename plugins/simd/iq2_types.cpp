#include "plugins/simd/iq2_types.h"

#include "plugins/simd/lattice_codec.h"

namespace ggufmill::simd {
namespace {

// The reference formats, with weights in lanes.
struct Iq2XxsLanes : reference::Iq2XxsFormat {
  static LatticeView<reference::Ternary> view() {
    static const LatticeTable<reference::Ternary, reference::kIq2XxsNeighbours, Keep::kNearestToRounded> table(
        lattice());
    return table.view();
  }
};

struct Iq2XsLanes : reference::Iq2XsFormat {
  static LatticeView<reference::Ternary> view() {
    static const LatticeTable<reference::Ternary, reference::kIq2XsNeighbours, Keep::kSteps> table(lattice());
    return table.view();
  }
};

struct Iq2SLanes : reference::Iq2SFormat {
  static Floats plain_weight(Floats x, Floats mean_square) { return floats(0.25f) * mean_square + x * x; }
  static LatticeView<reference::Ternary> view() {
    static const LatticeTable<reference::Ternary, reference::kIq2SNeighbours, Keep::kSteps> table(lattice());
    return table.view();
  }
};

}  // namespace

template <>
std::int32_t Iq2Xxs::encode(const Batch<1>& batch, Block* block, std::size_t count) {
  return encode_lattice<Iq2XxsLanes>(batch, block, count);
}

template <>
std::int32_t Iq2Xs::encode(const Batch<1>& batch, Block* block, std::size_t count) {
  return encode_lattice<Iq2XsLanes>(batch, block, count);
}

template <>
std::int32_t Iq2S::encode(const Batch<1>& batch, Block* block, std::size_t count) {
  return encode_lattice<Iq2SLanes>(batch, block, count);
}

}  // namespace ggufmill::simd
