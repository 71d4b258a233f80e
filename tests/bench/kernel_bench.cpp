#include "tests/bench/kernel_bench.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <span>

#include "pipeline/io/memory.h"
#include "plugins/abi/ggufmill_kernels.h"
#include "tests/bench/contenders.h"
#include "tests/support/synth.h"

namespace ggufmill::bench {
namespace {

// Number of rows that one kernel call converts.
constexpr std::uint64_t kRows = 16, kCols = 4096, kWeights = kRows * kCols;

// Size of the last-level cache, or 32 MiB if the system does not report it.
std::size_t last_cache_bytes() {
  const long bytes = ::sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : std::size_t{32} << 20;
}

// Number of windows; outside the cache, enough that the floats alone take twice the last-level cache.
std::size_t windows_of(Place place) {
  if (place == Place::kCache) return 1;
  return std::max<std::size_t>(2, 2 * last_cache_bytes() / (kWeights * sizeof(float)));
}

// Offsets of the buffers in a page, fixed so that a kernel's speed does not depend on earlier allocations: x86
// processors delay a load at the same place in a page as an earlier store.
constexpr std::size_t kSourcePhase = 0, kTargetPhase = 2048, kImportancePhase = 1024;

// Memory shared by the contenders of one benchmark row, which use it one at a time.
class Workspace {
 public:
  // `source` is the input of one call.
  Workspace(std::span<const std::byte> source, std::size_t target_bytes, Place place);

  // Returns the next call. Its source holds the given bytes; the content of its target is unspecified.
  ggufmill_call next(const float* importance);
  // Target of the latest call.
  std::span<std::byte> target() { return targets_[at_].span(); }

 private:
  std::size_t at_ = 0;
  std::vector<Buffer> sources_, targets_;  // by window
};

Workspace::Workspace(std::span<const std::byte> source, std::size_t target_bytes, Place place) {
  for (std::size_t windows = windows_of(place); windows > 0; --windows) {
    std::ranges::copy(source, sources_.emplace_back(source.size(), kSourcePhase).data());
    std::ranges::fill(targets_.emplace_back(target_bytes, kTargetPhase).span(), std::byte{0});
  }
}

ggufmill_call Workspace::next(const float* importance) {
  at_ = (at_ + 1) % sources_.size();
  return KernelCall{sources_[at_].data(), target().data(), kRows, kCols, importance}.abi();
}

constexpr double kDecoding = 0.8;  // of memcpy

// Targets for x86-64-v4 on one thread; 0: none.
struct TypeTarget {
  std::string_view type;
  double plain;
  double importance;
};

constexpr TypeTarget kEncoding[] = {
    {"Q4_K", 20, 20},   {"Q5_K", 20, 20},  {"Q2_K", 15, 15}, {"Q3_K", 8, 12},   {"Q6_K", 12, 12}, {"Q4_0", 3, 15},
    {"Q5_0", 3, 15},    {"Q4_1", 2, 15},   {"Q5_1", 2, 15},  {"Q8_0", 10, 0},   {"F16", 4, 0},    {"IQ4_NL", 20, 20},
    {"IQ4_XS", 20, 20}, {"IQ3_XXS", 8, 8}, {"IQ3_S", 8, 8},  {"IQ2_XXS", 0, 8}, {"IQ2_XS", 0, 8}, {"IQ2_S", 8, 8},
    {"IQ1_S", 0, 8},    {"IQ1_M", 8, 8},   {"TQ1_0", 6, 0},  {"TQ2_0", 6, 0},   {"MXFP4", 6, 0},  {"NVFP4", 6, 0},
    {"Q1_0", 6, 0},     {"Q2_0", 6, 0},
};

double part_of(std::string_view isa) { return isa == "x86-64-v4" ? 1 : isa == "x86-64-v3" ? 0.5 : 0; }

double of_v4(const Job& job) {
  if (job.kernel->operation == GGUFMILL_DECODE) return kDecoding;
  const std::string_view type = job.kernel->name;
  const auto* found = std::find_if(std::begin(kEncoding), std::end(kEncoding),
                                   [&](const TypeTarget& each) { return each.type == type; });
  if (found == std::end(kEncoding)) return 0;
  return job.importance ? found->importance : found->plain;
}

// Returns the target: for an encoder, the speedup over ggml's kernel; for a decoder, the fraction of memcpy's speed on
// the bytes that it writes. A search of effort 2 is to take no longer than ggml's encoder on any ISA with a kernel for
// it but x86-64-v2, one of effort 1 a third of that. x86-64-v3 has half the targets of x86-64-v4. Returns nullopt if no
// target is set, as for all other ISAs and some types.
std::optional<double> target(std::string_view isa, const Job& job) {
  if (job.effort != 0) {
    const bool has_target = part_of(isa) > 0 && job.effort < 3;
    return has_target ? std::optional(job.effort == 1 ? 3.0 : 1.0) : std::nullopt;
  }
  const double value = part_of(isa) * of_v4(job);
  return value > 0 ? std::optional(value) : std::nullopt;
}

using Bytes = std::vector<std::byte>;
using Seconds = std::vector<double>;  // by round

constexpr std::size_t kFloatBytes = kWeights * sizeof(float);

bool is_decoder(const Job& job) { return job.kernel->operation == GGUFMILL_DECODE; }

std::size_t packed_bytes(const ggufmill_kernel& kernel) {
  return kRows * (kernel.row_header_bytes + kCols / kernel.block_elements * kernel.block_bytes);
}

const std::vector<float>& weights() {
  static const std::vector<float> all = synth::values("outliers", 1, 0, kWeights);
  return all;
}

const float* importance() {
  static const Buffer all = [] {
    const std::vector<float> values = synth::importance(2, kCols);
    Buffer copy(kCols * sizeof(float), kImportancePhase);
    std::memcpy(copy.data(), values.data(), copy.size());
    return copy;
  }();
  return reinterpret_cast<const float*>(all.data());
}

// Encodes the weights in the decoder's type; returns zeros if there is no encoder.
Bytes packed_weights(const Kernels& kernels, const ggufmill_kernel& decoder) {
  Bytes packed(packed_bytes(decoder));
  if (const KernelChoice* encoder = kernels.encode(decoder.type_id)) {
    const bool weighted = encoder->kernel->flags & GGUFMILL_NEEDS_IMPORTANCE;
    call_kernel(*encoder, {weights().data(), packed.data(), kRows, kCols, weighted ? importance() : nullptr});
  }
  return packed;
}

// Copies as many bytes as a decoder writes, into the same target.
class Copy {
 public:
  explicit Copy(Place place) : from_(std::as_bytes(std::span(weights())), 0, place) {}
  void run(void* target) {
    std::memcpy(target, from_.next(nullptr).src, kFloatBytes);
    asm volatile("" : : "r"(target) : "memory");  // keeps the copy from being optimized away
  }

 private:
  Workspace from_;
};

bool writes_the_same(const Contender& expected, const Contender& tested, Workspace& space, const float* weighted) {
  expected.run(space.next(weighted));
  const auto written = space.target();
  const Bytes bytes(written.begin(), written.end());
  const ggufmill_call call = space.next(weighted);
  std::ranges::fill(space.target(), std::byte{0xa5});
  tested.run(call);
  return std::ranges::equal(bytes, space.target());
}

// Times that ratios are computed against; null if there are none.
struct Bases {
  const Seconds* reference = nullptr;
  const Seconds* ggml = nullptr;
  const Seconds* memcpy = nullptr;
};

Bases bases_of(const Job& job, const std::vector<Seconds>& seconds) {
  Bases bases;
  for (std::size_t i = 0; i < job.contenders.size(); ++i) {
    if (job.contenders[i].isa == "reference") bases.reference = &seconds[i];
    if (job.contenders[i].name == "ggml") bases.ggml = &seconds[i];
  }
  if (is_decoder(job)) bases.memcpy = &seconds.back();
  return bases;
}

double ratio(const Seconds* base, const Seconds& seconds) { return base ? speed_ratio(*base, seconds) : 0; }

KernelTime result_of(const Job& job, const Contender& contender, const Seconds& seconds, const Bases& bases) {
  const double calls = 1 / median(seconds);
  KernelTime time;
  time.name = contender.name;
  time.weights_per_second = calls * static_cast<double>(kWeights);
  time.bytes_per_second = calls * static_cast<double>(kFloatBytes + packed_bytes(*job.kernel));
  time.of_reference = ratio(bases.reference, seconds);
  time.of_ggml = ratio(bases.ggml, seconds);
  time.of_memcpy = ratio(bases.memcpy, seconds);
  time.target = target(contender.isa, job);
  const double reached = is_decoder(job) ? time.of_memcpy : bases.ggml ? time.of_ggml : time.of_reference;
  time.met = time.target && reached >= *time.target;
  return time;
}

KernelTime copy_result(const Seconds& seconds) {
  KernelTime time;
  time.name = "memcpy";
  time.bytes_per_second = 2 * static_cast<double>(kFloatBytes) / median(seconds);
  time.of_memcpy = 1;
  return time;
}

KernelRow measure(const Job& job, Workspace& space, Place place, const Effort& effort) {
  const float* weighted = job.importance ? importance() : nullptr;
  Copy copy(place);
  std::vector<std::function<void()>> works;
  for (const Contender& each : job.contenders) works.emplace_back([&] { each.run(space.next(weighted)); });
  if (is_decoder(job)) works.emplace_back([&] { copy.run(space.next(nullptr).dst); });
  const std::vector<Seconds> seconds = time_in_turn(works, effort);
  KernelRow row{job.kernel->name, operation_of(job), name_of(place), {}};
  for (std::size_t i = 0; i < job.contenders.size(); ++i) {
    row.times.push_back(result_of(job, job.contenders[i], seconds[i], bases_of(job, seconds)));
    const bool may_differ = job.effort != 0 && job.contenders[i].name == "ggml";
    row.times.back().same_bytes =
        may_differ || writes_the_same(job.contenders.front(), job.contenders[i], space, weighted);
  }
  if (is_decoder(job)) row.times.push_back(copy_result(seconds.back()));
  return row;
}

void measure_all(const Kernels& kernels, const Job& job, const KernelJobs& jobs, std::vector<KernelRow>& rows) {
  const auto floats = std::as_bytes(std::span(weights()));
  const Bytes packed = packed_weights(kernels, *job.kernel);
  for (const Place place : jobs.places) {
    const std::string label = std::string(job.kernel->name) + " " + operation_of(job) + " " + name_of(place);
    if (!std::regex_search(label, jobs.filter)) continue;
    Workspace space(is_decoder(job) ? std::span<const std::byte>(packed) : floats,
                    is_decoder(job) ? floats.size() : packed.size(), place);
    rows.push_back(measure(job, space, place, jobs.effort));
  }
}

}  // namespace

std::string name_of(Place place) { return place == Place::kCache ? "L2" : "memory"; }

std::vector<KernelRow> time_kernels(const Kernels& kernels, const KernelJobs& jobs) {
  std::vector<KernelRow> rows;
  for (const Job& job : jobs_of(kernels, jobs.isa, jobs.ggml))
    if (kCols % job.kernel->block_elements == 0) measure_all(kernels, job, jobs, rows);
  return rows;
}

}  // namespace ggufmill::bench
