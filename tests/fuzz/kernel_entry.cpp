#include "tests/fuzz/kernel_entry.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <string_view>

#include "pipeline/kernels/check/compare.h"
#include "pipeline/kernels/check/hard_inputs.h"
#include "pipeline/kernels/check/kernel_run.h"
#include "plugins/reference/reference.h"
#include "tests/fuzz/fuzz.h"

namespace ggufmill {
namespace {

// The input of a kernel, decoded from the bytes of a fuzzer.
struct KernelInput {
  std::uint64_t rows = 1;
  std::uint64_t cols = 0;
  conformance::Placement placement;
  std::vector<std::byte> source;
  std::vector<float> importance;  // empty: none
  std::uint32_t weights = 0;      // of a search
  bool finite = true;             // true if all weights are finite
};

// Number of kinds of weights that the last byte of the head selects from; its top bit selects importance.
inline constexpr unsigned kWeightKinds = 5;

using conformance::source_row_bytes;

// The data as an endless stream: repeated, shifted by one byte each time; zeros if there is no data.
class Stream {
 public:
  explicit Stream(std::span<const std::byte> data) : data_(data) {}

  std::uint8_t byte() {
    if (data_.empty()) return 0;
    const std::size_t at = (next_ + next_ / data_.size()) % data_.size();
    ++next_;
    return static_cast<std::uint8_t>(data_[at]);
  }
  std::uint32_t word() {
    std::uint32_t bits = 0;
    for (int shift = 0; shift < 32; shift += 8) bits |= std::uint32_t{byte()} << shift;
    return bits;
  }

 private:
  std::span<const std::byte> data_;
  std::size_t next_ = 0;
};

// Returns the float with these bits, or a finite one if they encode an infinity or a NaN.
float finite(std::uint32_t bits) {
  const float value = std::bit_cast<float>(bits);
  return std::isfinite(value) ? value : std::bit_cast<float>(bits ^ 0x40000000u);
}

float scaled(int level, int exponent) { return std::ldexp(static_cast<float>(level), exponent); }

int signed_byte(Stream& stream) { return static_cast<std::int8_t>(stream.byte()); }

// Kinds: arbitrary bits; arbitrary finite bits; small integers, which produce ties; levels whose magnitude changes
// within a row; bfloat16 values.
float weight(unsigned kind, std::size_t at, Stream& stream) {
  switch (kind) {
    case 0:
      return std::bit_cast<float>(stream.word());
    case 1:
      return finite(stream.word());
    case 2:
      return scaled(signed_byte(stream), -6);
    case 3:
      return scaled(signed_byte(stream), at % 16 == 0 ? signed_byte(stream) / 2 : -8);
    default: {
      const std::uint32_t low = stream.byte(), high = stream.byte();
      return finite(low << 16 | high << 24);
    }
  }
}

std::vector<float> weights(unsigned kind, std::size_t count, Stream& stream) {
  std::vector<float> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = weight(kind, i, stream);
  return all;
}

std::vector<float> importance(unsigned kind, std::size_t count, Stream& stream) {
  std::vector<float> all(count);
  for (float& each : all) each = kind == 1 ? std::fabs(finite(stream.word())) : scaled(stream.byte(), -5);
  return all;
}

std::vector<std::byte> any_bytes(std::size_t count, Stream& stream) {
  std::vector<std::byte> all(count);
  for (std::byte& each : all) each = std::byte{stream.byte()};
  return all;
}

// One input in four has at least as many blocks as the widest kernels process at a time; the others run faster.
std::uint64_t blocks_of(const ggufmill_kernel& kernel, unsigned byte) {
  if (byte < 192) return 1 + byte % 4;
  return 1 + (kernel.block_elements >= 256 ? byte % 24 : byte);
}

// `head` has the three bytes that follow the kernel's.
KernelInput kernel_input(const ggufmill_kernel& kernel, std::span<const std::byte, 3> head,
                         std::span<const std::byte> data) {
  const auto [shape, blocks, kinds] =
      std::array{static_cast<unsigned>(head[0]), static_cast<unsigned>(head[1]), static_cast<unsigned>(head[2])};
  Stream stream(data);
  KernelInput input;
  input.rows = 1 + shape % 3;
  input.placement = {shape & 0x80 ? GuardedBuffer::Side::kFront : GuardedBuffer::Side::kEnd, (shape & 0x40) != 0};
  input.cols = blocks_of(kernel, blocks) * kernel.block_elements;
  if (kernel.operation == GGUFMILL_DECODE || kernel.block_elements == 1) {
    input.source = any_bytes(input.rows * source_row_bytes(kernel, input.cols), stream);
    return input;
  }
  const std::vector<float> values = weights((kinds & 0x7f) % kWeightKinds, input.rows * input.cols, stream);
  const auto bytes = std::as_bytes(std::span(values));
  input.source.assign(bytes.begin(), bytes.end());
  input.finite = std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
  input.weights = (kinds & 0x7f) % (GGUFMILL_WEIGHTS_PLAIN + 1);
  const bool weighted = kernel.flags & GGUFMILL_NEEDS_IMPORTANCE || (kernel.flags != 0 && kinds & 0x80);
  if (weighted) input.importance = importance((kinds & 0x7f) % kWeightKinds, input.cols, stream);
  return input;
}

using conformance::Bytes;
using conformance::Outcome;

std::string name_of(const ggufmill_module& module) { return fmt::format("{} {}", module.name, module.isa); }

std::string describe(const ggufmill_kernel& kernel, const KernelInput& input) {
  return fmt::format("{}, {} rows of {}{}", conformance::describe(kernel), input.rows, input.cols,
                     input.importance.empty() ? "" : ", with importance");
}

Outcome outcome(const ggufmill_kernel& kernel, const KernelInput& input) {
  return conformance::try_kernel(kernel, {input.source, input.rows, input.cols, input.importance, 1, input.weights},
                                 input.placement);
}

}  // namespace

KernelFuzz::KernelFuzz() {
  auto loaded = Kernels::load({});
  if (!loaded) throw std::runtime_error(render(loaded.error()));
  kernels_ = loaded.value();
  for (const auto& each : kernels_->modules())
    if (each.module != &ggufmill_reference_module && std::string_view(each.module->isa) != "reference")
      modules_.push_back(each);
  if (modules_.empty()) throw std::runtime_error("no module but the reference: build ggufmill_modules; " + refused());
}

std::string KernelFuzz::modules() const {
  std::string all;
  for (const auto& each : modules_) all += (all.empty() ? "" : ", ") + name_of(*each.module);
  return all;
}

std::string KernelFuzz::refused() const {
  std::string all;
  for (const ModuleReport& report : kernels_->reports())
    if (!report.loaded) all += fmt::format("{}: {}\n", report.path, report.refusal);
  return all;
}

std::string KernelFuzz::run(std::span<const std::byte> input) const {
  if (input.size() < kKernelFuzzHead) return {};
  const auto kernels = conformance::kernels_of(ggufmill_reference_module);
  const ggufmill_kernel& kernel = kernels[static_cast<std::size_t>(input[0]) % kernels.size()];
  const KernelInput work = kernel_input(kernel, input.subspan<1, 3>(), input.subspan(kKernelFuzzHead));
  const Outcome expected = outcome(kernel, work);
  for (const auto& [module, own] : modules_) {
    const ggufmill_kernel* tested = conformance::find_counterpart(own, kernel);
    if (tested == nullptr) continue;
    const Outcome found = outcome(*tested, work);
    const std::string difference = work.finite ? conformance::difference(kernel, expected, found) : "";
    if (!difference.empty()) return fmt::format("{}: {}: {}", name_of(*module), describe(kernel, work), difference);
  }
  return {};
}

std::vector<Bytes> KernelFuzz::seeds(std::uint64_t seed) const {
  constexpr std::size_t kDataBytes = 600;
  conformance::Random random(seed);
  std::vector<Bytes> all;
  const std::size_t count = conformance::kernels_of(ggufmill_reference_module).size();
  for (std::size_t kernel = 0; kernel < count; ++kernel) {
    for (unsigned kind = 0; kind < 2 * kWeightKinds; ++kind) {
      Bytes input = conformance::random_bytes(random, kKernelFuzzHead + kDataBytes);
      input[0] = static_cast<std::byte>(kernel);
      input[3] = static_cast<std::byte>(kind / 2 | (kind % 2 ? 0x80u : 0u));
      all.push_back(std::move(input));
    }
  }
  return all;
}

std::string fuzz_kernel(std::string_view bytes) {
  static const KernelFuzz fuzz;
  return fuzz.run(std::as_bytes(std::span(bytes)));
}

std::vector<std::string> kernel_seeds() {
  std::vector<std::string> all;
  for (const Bytes& seed : KernelFuzz().seeds(1))
    all.emplace_back(reinterpret_cast<const char*>(seed.data()), seed.size());
  return all;
}

}  // namespace ggufmill
