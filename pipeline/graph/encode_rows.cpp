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
      : type_(type), decode_(decode), f16_(f16), tensor_(tensor) {}

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
        std::byte* scales = row + block * type_.block_bytes + type_.scales.offset;
        std::array<std::uint16_t, kMostScales> halves;
        std::array<float, kMostScales> values;
        const std::uint64_t count = type_.scales.count;
        std::memcpy(halves.data(), scales, count * sizeof(std::uint16_t));
        BOOST_OUTCOME_TRY(run_kernel(f16_.decode, {halves.data(), values.data(), 1, count, nullptr}, tensor_));
        for (std::uint64_t i = 0; i < count; ++i) {
          values[i] = static_cast<float>(double{values[i]} * factor);
          if (!(std::abs(values[i]) <= kMostHalf)) return ok();
        }
        if (!writes) continue;
        BOOST_OUTCOME_TRY(run_kernel(f16_.encode, {values.data(), halves.data(), 1, count, nullptr}, tensor_));
        std::memcpy(scales, halves.data(), count * sizeof(std::uint16_t));
      }
    return ok();
  }

  static constexpr std::size_t kMostScales = 2;
  static constexpr float kMostHalf = 65504;

  const TypeInfo& type_;
  const KernelChoice& decode_;
  const HalfKernels& f16_;
  const std::string& tensor_;
};

Status run_search(const BoundEncoding& encoding, const ggufmill_call& call) {
  const Encoder& encoder = encoding.encoding->encoder;
  const ggufmill_search_call search{call, encoder.effort, static_cast<std::uint32_t>(encoder.weights.value())};
  const SearchChoice& choice = *encoding.search;
  return kernel_status(choice.kernel->run(&search), encoding.encoding->type->name, choice.module->name, *encoding.name);
}

}  // namespace

Status apply_row_gain(const TypeInfo& type, const KernelChoice& decode, const HalfKernels& f16,
                      const ggufmill_call& call, const float* weights, const std::string& tensor) {
  const RowGain gain(type, decode, f16, tensor);
  const auto* x = static_cast<const float*>(call.src);
  auto* row = static_cast<std::byte*>(call.dst);
  const std::uint64_t row_bytes = call.cols / type.block_elements * type.block_bytes;
  for (std::uint64_t i = 0; i < call.rows; ++i) {
    BOOST_OUTCOME_TRY(gain.apply(x + i * call.cols, weights, row + i * row_bytes, call.cols));
  }
  return ok();
}

Status encode_rows(const BoundEncoding& encoding, const ggufmill_call& call, const float* weights) {
  BOOST_OUTCOME_TRY(encoding.search ? run_search(encoding, call) : run_kernel(encoding.encode, call, *encoding.name));
  if (encoding.encoding->encoder.gain == Gain::kNone) return ok();
  const HalfKernels f16{encoding.decode_half, encoding.encode_half};
  return apply_row_gain(*encoding.encoding->type, encoding.decode, f16, call, weights, *encoding.name);
}

}  // namespace ggufmill
