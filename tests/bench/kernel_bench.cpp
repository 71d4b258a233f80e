#include "tests/bench/kernel_bench.h"

#include <algorithm>
#include <cstring>
#include <set>
#include <span>
#include <stdexcept>
#include <string_view>
#include <tuple>

#include "tests/support/synth.h"

namespace ggufmill::bench {
namespace {

constexpr std::uint64_t kRows = 16, kCols = 4096;
constexpr std::uint64_t kWeights = kRows * kCols;

struct Candidate {
  const ggufmill_module* module;
  const ggufmill_kernel* kernel;
};

// A module's twin under another path (the linked-in reference and reference.so) is left out.
std::vector<Candidate> candidates(const Kernels& kernels, const std::vector<std::string>& types) {
  std::vector<Candidate> found;
  std::set<std::tuple<std::string, std::string, std::uint32_t, std::uint32_t>> seen;
  for (const ggufmill_module* module : kernels.modules()) {
    for (const ggufmill_kernel& kernel : std::span(module->kernels, module->kernel_count)) {
      const bool wanted = types.empty() || std::find(types.begin(), types.end(), kernel.name) != types.end();
      if (!wanted || kCols % kernel.block_elements != 0) continue;
      if (seen.emplace(module->name, module->isa, kernel.type_id, kernel.operation).second) {
        found.push_back({module, &kernel});
      }
    }
  }
  const auto order = [](const Candidate& c) { return std::tuple(c.kernel->type_id, c.kernel->operation); };
  std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) { return order(a) < order(b); });
  return found;
}

void run(const ggufmill_kernel& kernel, const ggufmill_call& call) {
  if (kernel.run(&call) != GGUFMILL_OK) throw std::runtime_error(std::string("a kernel failed: ") + kernel.name);
}

// Bytes a second, read and written, of a copy that moves `bytes` in all.
double memcpy_speed(std::uint64_t bytes, const Effort& effort) {
  std::vector<std::byte> from(bytes / 2, std::byte{1}), to(bytes / 2);
  const double seconds = time_of(effort, [&] {
    std::memcpy(to.data(), from.data(), to.size());
    asm volatile("" : : "r"(to.data()) : "memory");  // so that the copy is not optimized away
  });
  return static_cast<double>(bytes) / seconds;
}

class Bench {
 public:
  Bench(const Kernels& kernels, const Effort& effort) : kernels_(kernels), effort_(effort) {}

  void add(const Candidate& candidate) {
    const std::uint32_t flags = candidate.kernel->flags;
    if (candidate.kernel->operation == GGUFMILL_DECODE) return add_decode(candidate);
    if (!(flags & GGUFMILL_NEEDS_IMPORTANCE)) add_encode(candidate, "encode", nullptr);
    if (flags & (GGUFMILL_NEEDS_IMPORTANCE | GGUFMILL_ACCEPTS_IMPORTANCE)) {
      add_encode(candidate, "encode, importance", importance_.data());
    }
  }

  std::vector<KernelTime> take() { return std::move(times_); }

 private:
  std::uint64_t packed_bytes(const ggufmill_kernel& kernel) const {
    return kWeights / kernel.block_elements * kernel.block_bytes;
  }

  // Decodes what the type's encoder makes of the weights; zeros where there is no encoder.
  void add_decode(const Candidate& candidate) {
    packed_.assign(packed_bytes(*candidate.kernel), std::byte{0});
    if (const KernelChoice* encoder = kernels_.encode(candidate.kernel->type_id)) {
      const bool weighted = encoder->kernel->flags & GGUFMILL_NEEDS_IMPORTANCE;
      run(*encoder->kernel, {weights_.data(), packed_.data(), kRows, kCols, weighted ? importance_.data() : nullptr});
    }
    time(candidate, "decode", {packed_.data(), decoded_.data(), kRows, kCols, nullptr});
  }

  void add_encode(const Candidate& candidate, std::string operation, const float* importance) {
    packed_.resize(packed_bytes(*candidate.kernel));
    time(candidate, std::move(operation), {weights_.data(), packed_.data(), kRows, kCols, importance});
  }

  void time(const Candidate& candidate, std::string operation, const ggufmill_call& call) {
    const double seconds = time_of(effort_, [&] { run(*candidate.kernel, call); });
    const std::uint64_t bytes = kWeights * sizeof(float) + packed_bytes(*candidate.kernel);
    const double speed = static_cast<double>(bytes) / seconds;
    times_.push_back({candidate.kernel->name, std::move(operation), candidate.module->name, candidate.module->isa,
                      kWeights / seconds, speed, speed / memcpy_speed(bytes, effort_), 0});
  }

  const Kernels& kernels_;
  Effort effort_;
  std::vector<float> weights_ = synth::values("outliers", 1, 0, kWeights);
  std::vector<float> importance_ = synth::importance(2, kCols);
  std::vector<float> decoded_ = std::vector<float>(kWeights);
  std::vector<std::byte> packed_;
  std::vector<KernelTime> times_;
};

void relate_to_reference(std::vector<KernelTime>& times) {
  for (KernelTime& time : times) {
    for (const KernelTime& other : times) {
      const bool same = other.type == time.type && other.operation == time.operation;
      if (same && other.isa == "reference") time.of_reference = time.weights_per_second / other.weights_per_second;
    }
  }
}

}  // namespace

std::vector<KernelTime> time_kernels(const Kernels& kernels, const std::vector<std::string>& types,
                                     const Effort& effort) {
  Bench bench(kernels, effort);
  for (const Candidate& candidate : candidates(kernels, types)) bench.add(candidate);
  std::vector<KernelTime> times = bench.take();
  relate_to_reference(times);
  return times;
}

}  // namespace ggufmill::bench
