#include "pipeline/graph/encode_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "pipeline/graph/assemble.h"

namespace ggufmill {
namespace {

constexpr std::size_t kLanes = 8;

// Sums of eight columns at a time.
struct GainSums {
  std::array<double, kLanes> xx{}, xy{};

  // `count` is a multiple of kLanes.
  void add(const float* x, const float* y, const float* weights, std::size_t count) {
    for (std::size_t i = 0; i < count; i += kLanes)
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const double weight = weights ? double{weights[i + lane]} : 1.0;
        const double weighted = weight * double{x[i + lane]};
        xx[lane] += weighted * double{x[i + lane]};
        xy[lane] += weighted * double{y[i + lane]};
      }
  }
  static double total(const std::array<double, kLanes>& sums) {
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  }
  // Returns 1 if there is no usable factor.
  double factor() const {
    const double above = total(xx), below = total(xy);
    const double factor = below > 0 ? above / below : 1;
    return factor >= 0.5 && factor <= 2 ? factor : 1;
  }
};

// Corrects one encoding's rows.
class RowGain {
 public:
  RowGain(const TypeInfo& type, const KernelChoice& decode, const HalfKernels& f16, const std::string& tensor)
      : type_(type), scales_(type.scales()), decode_(decode), f16_(f16), tensor_(tensor) {}

  Status apply(const float* x, const float* weights, std::byte* row, std::uint64_t columns) const {
    GainSums sums;
    for (std::uint64_t at = 0; at < columns; at += kAtOnce) {
      std::array<float, kAtOnce> y;
      const std::uint64_t count = std::min<std::uint64_t>(kAtOnce, columns - at);
      const std::byte* blocks = row + at / type_.block_elements * type_.block_bytes;
      BOOST_OUTCOME_TRY(run_kernel(decode_, {blocks, y.data(), 1, count, nullptr}, tensor_));
      sums.add(x + at, y.data(), weights ? weights + at : nullptr, count);
    }
    const double factor = sums.factor();
    return factor == 1 ? ok() : scale(row, columns / type_.block_elements, factor);
  }

 private:
  static constexpr std::size_t kAtOnce = 1024;  // whole blocks of every type with a gain

  // Two passes: nothing changes if one of the scales would not be finite.
  Status scale(std::byte* row, std::uint64_t blocks, double factor) const {
    for (const bool writes : {false, true})
      for (std::uint64_t block = 0; block < blocks; ++block) {
        std::byte* scales = row + block * type_.block_bytes + scales_.offset;
        Halves halves = load(scales);
        std::array<float, kMostScales> values;
        const std::uint64_t count = scales_.count;
        BOOST_OUTCOME_TRY(run_kernel(f16_.decode, {halves.data(), values.data(), 1, count, nullptr}, tensor_));
        for (std::uint64_t i = 0; i < count; ++i) {
          values[i] = static_cast<float>(double{values[i]} * factor);
          if (!(std::abs(values[i]) <= kMostHalf)) return ok();
        }
        if (!writes) continue;
        BOOST_OUTCOME_TRY(run_kernel(f16_.encode, {values.data(), halves.data(), 1, count, nullptr}, tensor_));
        store(halves, scales);
      }
    return ok();
  }

  static constexpr std::size_t kMostScales = 2;
  using Halves = std::array<std::uint16_t, kMostScales>;

  // The nibbles of the scale of IQ1_M are the upper ones of four words, lowest first.
  static constexpr std::size_t kNibbles = 4;
  bool is_in_nibbles() const { return scales_.format == FieldFormat::kIq1m; }

  Halves load(const std::byte* scales) const {
    Halves halves{};
    if (is_in_nibbles())
      for (std::size_t i = 0; i < kNibbles; ++i)
        halves[0] |= static_cast<std::uint16_t>(std::to_integer<unsigned>(scales[2 * i + 1]) >> 4 << (4 * i));
    else
      std::memcpy(halves.data(), scales, scales_.count * sizeof(std::uint16_t));
    return halves;
  }
  void store(const Halves& halves, std::byte* scales) const {
    if (is_in_nibbles())
      for (std::size_t i = 0; i < kNibbles; ++i)
        scales[2 * i + 1] =
            (scales[2 * i + 1] & std::byte{15}) | static_cast<std::byte>((halves[0] >> (4 * i) & 15) << 4);
    else
      std::memcpy(scales, halves.data(), scales_.count * sizeof(std::uint16_t));
  }

  static constexpr float kMostHalf = 65504;

  const TypeInfo& type_;
  const BlockField scales_;
  const KernelChoice& decode_;
  const HalfKernels& f16_;
  const std::string& tensor_;
};

static_assert(Encoder::kRowsTogether == GGUFMILL_ROWS_TOGETHER);

Status encode_plainly(const BoundEncoding& encoding, KernelCall call, const float* weights) {
  const Encoder& encoder = encoding.encoding->encoder;
  if (encoder.is_search()) {
    call.effort = encoder.effort;
    call.weights = static_cast<std::uint32_t>(encoder.weights.value());
    call.compensate = encoder.compensation == Compensation::kRows ? 1 : 0;
  }
  BOOST_OUTCOME_TRY(run_kernel(encoding.encode, call, *encoding.name));
  if (encoder.gain == Gain::kNone) return ok();
  const HalfKernels f16{encoding.decode_half, encoding.encode_half};
  return apply_row_gain(encoding.rows_type(), encoding.decode, f16, call, weights, *encoding.name);
}

// Rows of a call, those that are recognised encoded by the lattice kernel.
class LatticeRows {
 public:
  LatticeRows(const BoundEncoding& encoding, const KernelCall& call, const float* weights)
      : encoding_(encoding), type_(encoding.rows_type()), call_(call), weights_(weights) {}

  // Encodes rows that are not recognised in runs.
  Status encode() const {
    std::uint64_t first = 0;  // of the run
    for (std::uint64_t row = 0; row < call_.rows; ++row) {
      const std::int32_t found = recognise(row);
      if (found == GGUFMILL_LATTICE_NONE) continue;
      BOOST_OUTCOME_TRY(encode_others(first, row));
      first = row + 1;
      if (found != GGUFMILL_LATTICE_EXACT) {
        BOOST_OUTCOME_TRY(encode_others(row, row + 1));
      }
      BOOST_OUTCOME_TRY(replace(row, found));
    }
    return encode_others(first, call_.rows);
  }

  // Encodes all rows first, so that those that are recognised do not divide rows that are compensated together.
  Status encode_together() const {
    BOOST_OUTCOME_TRY(encode_others(0, call_.rows));
    for (std::uint64_t row = 0; row < call_.rows; ++row)
      if (const std::int32_t found = recognise(row); found != GGUFMILL_LATTICE_NONE) {
        BOOST_OUTCOME_TRY(replace(row, found));
      }
    return ok();
  }

 private:
  static constexpr std::size_t kAtOnce = 1024;            // whole blocks of every type with a lattice
  static constexpr std::size_t kMostBytes = 2 * kAtOnce;  // of as many values

  const float* values(std::uint64_t row) const { return static_cast<const float*>(call_.src) + row * call_.cols; }
  std::byte* bytes(std::uint64_t row) const {
    return static_cast<std::byte*>(call_.dst) + row * row_bytes(type_, call_.cols);
  }

  std::int32_t recognise(std::uint64_t row) const { return encoding_.lattice->run(values(row), call_.cols, nullptr); }

  // Writes a recognised row if it is exact, or better than what is encoded.
  Status replace(std::uint64_t row, std::int32_t found) const {
    bool is_better = found == GGUFMILL_LATTICE_EXACT;
    if (!is_better) {
      BOOST_OUTCOME_TRY(is_better, beats_plain(row));
    }
    if (is_better) encoding_.lattice->run(values(row), call_.cols, bytes(row));
    return ok();
  }

  Status encode_others(std::uint64_t first, std::uint64_t end) const {
    if (first == end) return ok();
    return encode_plainly(encoding_, {values(first), bytes(first), end - first, call_.cols, call_.importance},
                          weights_);
  }

  // Compares the weighted errors of a row that is encoded plainly and of what the lattice kernel makes of it.
  Result<bool> beats_plain(std::uint64_t row) const {
    double plain = 0, lattice = 0;
    for (std::uint64_t at = 0; at < call_.cols; at += kAtOnce) {
      const std::uint64_t count = std::min<std::uint64_t>(kAtOnce, call_.cols - at);
      std::array<std::byte, kMostBytes> blocks;
      encoding_.lattice->run(values(row) + at, count, blocks.data());
      BOOST_OUTCOME_TRY(add_error(row, at, count, bytes(row) + at / type_.block_elements * type_.block_bytes, plain));
      BOOST_OUTCOME_TRY(add_error(row, at, count, blocks.data(), lattice));
    }
    return lattice < plain;
  }

  Status add_error(std::uint64_t row, std::uint64_t at, std::uint64_t count, const std::byte* blocks,
                   double& error) const {
    std::array<float, kAtOnce> y;
    BOOST_OUTCOME_TRY(run_kernel(encoding_.decode, {blocks, y.data(), 1, count, nullptr}, *encoding_.name));
    for (std::uint64_t i = 0; i < count; ++i) {
      const double off = double{values(row)[at + i]} - double{y[i]};
      error += (weights_ ? double{weights_[at + i]} : 1.0) * off * off;
    }
    return ok();
  }

  const BoundEncoding& encoding_;
  const TypeInfo& type_;
  const KernelCall& call_;
  const float* weights_;
};

}  // namespace

Status apply_row_gain(const TypeInfo& type, const KernelChoice& decode, const HalfKernels& f16, const KernelCall& call,
                      const float* weights, const std::string& tensor) {
  const RowGain gain(type, decode, f16, tensor);
  const auto* x = static_cast<const float*>(call.src);
  auto* row = static_cast<std::byte*>(call.dst);
  for (std::uint64_t i = 0; i < call.rows; ++i) {
    BOOST_OUTCOME_TRY(gain.apply(x + i * call.cols, weights, row + i * row_bytes(type, call.cols), call.cols));
  }
  return ok();
}

Status encode_rows(const BoundEncoding& encoding, const KernelCall& call, const float* weights) {
  if (!encoding.lattice) return encode_plainly(encoding, call, weights);
  if (encoding.encoding->encoder.compensation == Compensation::kNone)
    return LatticeRows(encoding, call, weights).encode();
  // Each group is encoded on its own, so that the bytes do not depend on the tile.
  for (std::uint64_t first = 0; first < call.rows; first += Encoder::kRowsTogether) {
    KernelCall group = call;
    group.rows = std::min(Encoder::kRowsTogether, call.rows - first);
    group.src = static_cast<const float*>(call.src) + first * call.cols;
    group.dst = static_cast<std::byte*>(call.dst) + first * row_bytes(encoding.rows_type(), call.cols);
    BOOST_OUTCOME_TRY(LatticeRows(encoding, group, weights).encode_together());
  }
  return ok();
}

}  // namespace ggufmill
