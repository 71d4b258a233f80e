#include "pipeline/kernels/check/module_conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "pipeline/io/platform/process.h"
#include "pipeline/kernels/check/hard_inputs.h"

namespace ggufmill::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kTimedRows = 8;
constexpr int kSamples = 5;
constexpr std::chrono::milliseconds kMin{40};  // of a sample

std::uint64_t columns_of(const ggufmill_kernel& kernel) {
  constexpr std::uint64_t kAbout = 4096;
  return std::max<std::uint64_t>(kAbout / kernel.block_elements, 1) * kernel.block_elements;
}

// Returns the median rate of a kernel; 0 if it fails.
double rate_of(const ggufmill_kernel& kernel, const Bytes& source, const std::vector<float>& importance,
               std::uint64_t cols) {
  Bytes target(kTimedRows * target_row_bytes(kernel, cols));
  ggufmill_call call{source.data(),
                     target.data(),
                     kTimedRows,
                     cols,
                     importance.empty() ? nullptr : importance.data(),
                     sizeof(ggufmill_call),
                     0,
                     0,
                     0};
  if (is_search(kernel)) {
    call.effort = 2;
    call.weights = importance.empty() ? GGUFMILL_WEIGHTS_PLAIN : GGUFMILL_WEIGHTS_QUARTER;
  }
  std::vector<double> rates;
  for (int sample = 0; sample < kSamples; ++sample) {
    std::uint64_t calls = 0;
    const Clock::time_point begin = Clock::now();
    std::chrono::duration<double> taken{};
    do {
      if (kernel.run(&call) != GGUFMILL_OK) return 0;
      ++calls;
      taken = Clock::now() - begin;
    } while (taken < kMin);
    rates.push_back(static_cast<double>(calls * kTimedRows * cols * sizeof(float)) / taken.count());
  }
  std::ranges::nth_element(rates, rates.begin() + kSamples / 2);
  return rates[kSamples / 2];
}

// Encoded values for a decoder, if there is an encoder; else any bytes.
Bytes source_of(const ggufmill_kernel& kernel, KernelList kernels, KernelList expected, std::uint64_t cols,
                const std::vector<float>& importance) {
  Random random(1);
  const std::vector<float> values = hard_input(InputKind::kWeights, random, kTimedRows * cols);
  const auto bytes = std::as_bytes(std::span(values));
  if (kernel.operation == GGUFMILL_ENCODE) return {bytes.begin(), bytes.end()};
  for (const KernelList list : {kernels, expected})
    if (const ggufmill_kernel* encoder = find_kernel(list, GGUFMILL_ENCODE, kernel.name))
      return try_kernel(*encoder, {bytes, kTimedRows, cols, importance}).bytes;
  return random_bytes(random, kTimedRows * source_row_bytes(kernel, cols));
}

}  // namespace

std::vector<KernelTime> time_kernels(KernelList kernels, KernelList expected, const CheckOptions& options) {
  std::vector<KernelTime> times;
  for (const ggufmill_kernel& kernel : kernels) {
    if (!options.wants(kernel)) continue;
    const ggufmill_kernel* counterpart = find_counterpart(expected, kernel);
    if (counterpart == &kernel) counterpart = nullptr;
    for (const bool weighted : {false, true}) {
      if (weighted ? kernel.flags == 0 : (kernel.flags & GGUFMILL_NEEDS_IMPORTANCE) != 0) continue;
      if (options.stop && *options.stop) return times;
      constexpr ChildLimits kLimits{60, std::chrono::minutes(10)};
      const ChildAnswer answer = ask_child(
          [&] {
            const std::uint64_t cols = columns_of(kernel);
            Random random(2);
            const std::vector<float> importance = hard_importance(ImportanceKind::kOrdinary, random, cols);
            const Bytes source = source_of(kernel, kernels, expected, cols, importance);
            const std::vector<float>& given = weighted ? importance : std::vector<float>();
            return fmt::format("{} {}", rate_of(kernel, source, given, cols),
                               counterpart ? rate_of(*counterpart, source, given, cols) : 0.0);
          },
          kLimits);
      KernelTime& time = times.emplace_back(
          KernelTime{kernel.name, operation_of(kernel), std::string(encoder_of(kernel)), weighted, 0, 0});
      char* rest = nullptr;
      time.rate = std::strtod(answer.text.c_str(), &rest);
      time.reference = std::strtod(rest, nullptr);
    }
  }
  return times;
}

}  // namespace ggufmill::conformance
