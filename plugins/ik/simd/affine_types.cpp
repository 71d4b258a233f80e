#include "plugins/ik/simd/llama_types.h"

#include "plugins/ik/simd/line_walk.h"
#include "plugins/simd/q2_k_encoder.h"
#include "plugins/simd/q4_k_encoder.h"
#include "plugins/simd/small_blocks.h"

namespace ggufmill::simd {
namespace {

constexpr int kWalksInFlight = 2;  // one tries levels while the other one waits for the results of divisions

template <class Walk>
void walk_all(Walk (&walks)[kWalksInFlight]) {
  for (int attempt = 0; attempt < Walk::kAttempts; ++attempt)
    for (Walk& walk : walks) walk.attempt(attempt);
  for (Walk& walk : walks) walk.walk();
}

// ---- blocks of 32 ----

template <int kLimit>
void encode_small(const Batch<kWalksInFlight>& batch, Words* halves, SmallLevels* levels) {
  using Blocks = SmallBlocks<kWalksInFlight>;
  const Blocks blocks(batch);
  LineWalk<Blocks::kCount, kLimit> walks[kWalksInFlight];
  for (int set = 0; set < kWalksInFlight; ++set) {
    const int at = set * Blocks::kCount * Blocks::kStep;
    walks[set].start(blocks.x + at, blocks.weights + at);
  }
  walk_all(walks);
  for (int set = 0; set < kWalksInFlight; ++set) {
    halves[set] = floats_to_half(walks[set].scale()) | hn::ShiftLeft<16>(floats_to_half(walks[set].minimum()));
    for (int i = 0; i < Blocks::kCount; ++i) levels[set].set(i, as_words(walks[set].level(i)));
  }
}

// ---- super-blocks of eight groups ----

// The lines of the groups as ik_llama.cpp fits them: without importance as llama.cpp does, except that nearly flat
// groups count as flat.
template <int kLimit>
class WalkedLines : public q4_k::GroupLines<kLimit> {
 public:
  static constexpr float kZero = ik::kMinScale, kMinRange = ik::kMinRange;

  using q4_k::GroupLines<kLimit>::GroupLines;

  void fit() {
    if (!this->blocks_.weighted()) return q4_k::GroupLines<kLimit>::fit();
    const Floats spread = this->spread();
    constexpr int kSize = q4_k::kGroup * static_cast<int>(kLanes);
    alignas(64) float weights[kWalksInFlight][kSize];
    LineWalk<q4_k::kGroup, kLimit> walks[kWalksInFlight];
    for (int group = 0; group < q4_k::kGroups; group += kWalksInFlight) {
      for (int g = 0; g < kWalksInFlight; ++g) {
        this->weigh(group + g, spread, weights[g]);
        walks[g].start(this->blocks_.x((group + g) * q4_k::kGroup), weights[g]);
      }
      walk_all(walks);
      for (int g = 0; g < kWalksInFlight; ++g) {
        this->lines_[group + g].scale = walks[g].scale();
        this->lines_[group + g].minimum = walks[g].minimum();
        for (int i = 0; i < q4_k::kGroup; ++i) levels_.set((group + g) * q4_k::kGroup + i, as_words(walks[g].level(i)));
      }
    }
  }

  Ints level(int group, int i) const {
    return this->blocks_.weighted() ? as_ints(levels_[i]) : q4_k::GroupLines<kLimit>::level(group, i);
  }

 private:
  LaneLevels<kSuperBlock> levels_;
};

// ---- Q2_K ----

constexpr reference::AffineSearch kPlainSearch = q2_k::plain_search(ik::kMinRange);

void fit_weighted(const SuperBlocks& blocks, q2_k::Fitted& fitted) {
  const Floats spread = floats(0.75f) * blocks.sum_of_squares(0, kSuperBlock) / floats(float{kSuperBlock});
  alignas(64) float weights[kWalksInFlight][q2_k::kGroup * kLanes];
  LineWalk<q2_k::kGroup, q2_k::kLimit> walks[kWalksInFlight];
  for (int group = 0; group < q2_k::kGroups; group += kWalksInFlight) {
    for (int g = 0; g < kWalksInFlight; ++g) {
      const int first = (group + g) * q2_k::kGroup;
      fitted.weight_sums[group + g] = blocks.weigh(first, q2_k::kGroup, spread, weights[g]);
      walks[g].start(blocks.x(first), weights[g]);
    }
    walk_all(walks);
    for (int g = 0; g < kWalksInFlight; ++g) {
      fitted.lines[group + g].scale = walks[g].scale();
      fitted.lines[group + g].minimum = walks[g].minimum();
    }
  }
}

// Computes the best levels for the scales before they are stored.
void settle_unrounded(const SuperBlocks& blocks, const q2_k::Coded& coded, q2_k::Contents& contents) {
  for (int group = 0; group < q2_k::kGroups; ++group) {
    const Floats scale = coded.d * to_floats(as_ints(coded.scales[group]));
    const Floats minimum = coded.dmin * to_floats(as_ints(coded.minimums[group]));
    const Floats inverse = inverse_of(scale);
    for (int i = group * q2_k::kGroup; i < (group + 1) * q2_k::kGroup; ++i) {
      const Ints level = clamp(nearest_ints((blocks.at(i) + minimum) * inverse), 0, q2_k::kLimit);
      contents.levels.set(i, as_words(level));
    }
  }
}

// Returns, for each of kLanes rows, its greatest magnitude m if its values are close to -m, 0 and m; otherwise a
// negative number.
Floats ternary_magnitudes(const float* const* rows, std::uint64_t cols) {
  Floats most = floats(0), squares = floats(0), errors = floats(0);
  const auto each_value = [&](const auto& use) {
    for (std::uint64_t at = 0; at < cols; at += 4) {
      Floats a = load_parts(kFloats, rows, at), b = load_parts(kFloats, rows + 1, at);
      Floats c = load_parts(kFloats, rows + 2, at), d = load_parts(kFloats, rows + 3, at);
      transpose_parts(a, b, c, d);
      use(a), use(b), use(c), use(d);
    }
  };
  each_value([&](Floats x) { most = greater(hn::Abs(x), most); });
  const Floats low = floats(-0.5f) * most, high = floats(0.5f) * most;
  each_value([&](Floats x) {
    const Floats trit = choose(x < low, floats(-1), hn::IfThenZeroElse(x < high, floats(1)));
    const Floats off = x - most * trit;
    squares = squares + x * x;
    errors = errors + off * off;
  });
  return choose(errors < floats(0.1f) * squares, most, floats(-1));
}

// Sets the contents of the blocks of ternary rows.
void set_ternary(const SuperBlocks& blocks, Floats magnitudes, q2_k::Contents& contents) {
  const Mask is_ternary = magnitudes >= floats(0);
  if (!any(is_ternary)) return;
  const Floats low = floats(-0.5f) * magnitudes, high = floats(0.5f) * magnitudes;
  for (int i = 0; i < kSuperBlock; ++i) {
    const Words level = choose(blocks.at(i) < low, words(0), choose(blocks.at(i) < high, words(1), words(2)));
    contents.levels.set(i, choose(is_ternary, level, contents.levels[i]));
  }
  for (Words& byte : contents.bytes) byte = choose(is_ternary, words(0x11), byte);
  const Words half = floats_to_half(magnitudes);
  contents.d = choose(is_ternary, half, contents.d);
  contents.dmin = choose(is_ternary, half, contents.dmin);
}

}  // namespace

void IkQ4_1::encode_weighted(const Batch<kSets>& batch, LaneBlocks<Block>* blocks) {
  Words halves[kSets];
  SmallLevels levels[kSets];
  encode_small<15>(batch, halves, levels);
  for (int set = 0; set < kSets; ++set) set_block_of_4_bits(halves[set], levels[set], blocks[set]);
}

void IkQ5_1::encode_weighted(const Batch<kSets>& batch, LaneBlocks<Block>* blocks) {
  Words halves[kSets];
  SmallLevels levels[kSets];
  encode_small<31>(batch, halves, levels);
  for (int set = 0; set < kSets; ++set) set_block_of_5_bits(halves[set], levels[set], blocks[set]);
}

void IkQ4_K::encode(const Batch<1>& batch, LaneBlocks<Block>* packed) {
  q4_k::encode_4_bits<WalkedLines>(batch, *packed);
}

void IkQ5_K::encode(const Batch<1>& batch, LaneBlocks<Block>* packed) {
  q4_k::encode_5_bits<WalkedLines>(batch, *packed);
}

std::int32_t IkQ2_K::encode_rows(const ggufmill_call* call) {
  if (call->importance) return encode_stream<IkQ2_K>(*call, 0, call->rows, nullptr);
  const auto* x = static_cast<const float*>(call->src);
  for (std::uint64_t first = 0; first < call->rows; first += kLanes) {
    const float* rows[kLanes];
    for (std::uint64_t i = 0; i < kLanes; ++i) rows[i] = x + std::min(first + i, call->rows - 1) * call->cols;
    float magnitudes[kLanes];
    hn::StoreU(ternary_magnitudes(rows, call->cols), kFloats, magnitudes);
    encode_stream<IkQ2_K>(*call, first, std::min<std::uint64_t>(kLanes, call->rows - first), magnitudes);
  }
  return GGUFMILL_OK;
}

void IkQ2_K::encode(const Batch<1>& batch, LaneBlocks<Block>* packed) {
  const SuperBlocks blocks(batch);
  q2_k::Fitted fitted;
  blocks.weighted() ? fit_weighted(blocks, fitted) : q2_k::fit_plain(blocks, kPlainSearch, fitted);
  const q2_k::Coded coded(fitted, blocks.weighted(), ik::kMinScale);
  q2_k::Contents contents(coded);
  if (blocks.weighted()) {
    settle_unrounded(blocks, coded, contents);
  } else {
    contents.settle(blocks, fitted);
    set_ternary(blocks, hn::LoadU(kFloats, batch.row_mean_square), contents);
  }
  contents.pack(*packed);
}

}  // namespace ggufmill::simd
