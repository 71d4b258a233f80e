#include "pipeline/kernels/check/kernel_checks.h"

#include <fenv.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <cstring>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "pipeline/io/platform/process.h"
#include "pipeline/kernels/check/compare.h"
#include "pipeline/kernels/check/hard_inputs.h"

namespace ggufmill::conformance {
namespace {

using Side = GuardedBuffer::Side;

constexpr std::uint64_t kRows = 3;
// Numbers of blocks in a row: one, a few, and enough that three rows are more than the widest kernels take at a time.
constexpr std::uint64_t kBlocks[] = {1, 7, 12};

// An input and its description.
struct Sample {
  std::vector<std::byte> source;
  std::vector<float> importance;  // empty: none
  Work work;
  std::string text;  // "3 rows of 224, with importance"
};

bool needs_importance(const ggufmill_kernel& kernel) { return (kernel.flags & GGUFMILL_NEEDS_IMPORTANCE) != 0; }

// Encodes values for a decoder if its type has an encoder; else any bytes must do.
std::vector<std::byte> source_for(const ggufmill_kernel& kernel, InputKind kind, std::uint64_t cols, Random& random) {
  if (kernel.operation == GGUFMILL_DECODE) return random_bytes(random, kRows * source_row_bytes(kernel, cols));
  const std::vector<float> values = hard_input(kind, random, kRows * cols);
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

Sample sample_of(const Subject& subject, InputKind kind, std::uint64_t blocks, bool weighted, Random& random) {
  const ggufmill_kernel& kernel = *subject.kernel;
  const std::uint64_t cols = blocks * kernel.block_elements;
  Sample sample;
  sample.source = source_for(kernel, kind, cols, random);
  if (weighted) sample.importance = hard_importance(ImportanceKind::kOrdinary, random, cols);
  sample.work = {sample.source, kRows, cols, sample.importance};
  sample.text = fmt::format("{} rows of {}{}", kRows, cols, weighted ? ", with importance" : "");
  return sample;
}

using Use = std::function<std::string(const Sample&)>;

// Calls `use` with samples of one kind of input, of all lengths, with and without importance as the kernel takes it.
// Returns the first violation that it returns.
std::string for_samples(const Subject& subject, InputKind kind, const Use& use,
                        std::span<const std::uint64_t> lengths = kBlocks) {
  Random random(subject.seed);
  for (const std::uint64_t blocks : lengths)
    for (const bool weighted : {false, true}) {
      if (weighted ? subject.kernel->flags == 0 : needs_importance(*subject.kernel)) continue;
      const Sample sample = sample_of(subject, kind, blocks, weighted, random);
      std::string violation = use(sample);
      if (!violation.empty()) return fmt::format("{} ({})", violation, sample.text);
    }
  return {};
}

std::string for_weights(const Subject& subject, const Use& use) {
  return for_samples(subject, InputKind::kWeights, use);
}

std::string always(const Subject&) { return {}; }

// ---- status ----

// Ordinary values can be represented; others may be refused, but with the status for it.
std::string wrong_status(const Subject& subject) {
  const auto use = [&](bool is_ordinary, const std::string& values) {
    return [&subject, is_ordinary, values](const Sample& sample) -> std::string {
      const std::int32_t status = try_kernel(*subject.kernel, sample.work).status;
      if (status == GGUFMILL_OK || (!is_ordinary && status == GGUFMILL_CANNOT_REPRESENT)) return {};
      return fmt::format("returns status {} for {}", status, values);
    };
  };
  std::string violation = for_weights(subject, use(true, "ordinary values"));
  for (int kind = 0; kind < kInputKinds && violation.empty() && subject.kernel->operation == GGUFMILL_ENCODE; ++kind) {
    const std::string values = name_of(static_cast<InputKind>(kind)) + " values, which are finite";
    violation =
        for_samples(subject, static_cast<InputKind>(kind), use(false, values), std::span(kBlocks).subspan(1, 1));
  }
  return violation;
}

// ---- bounds ----

// Guard pages on each side end the process, so what is left to compare is that the place does not matter.
std::string out_of_bounds(const Subject& subject) {
  for (const InputKind kind : {InputKind::kWeights, InputKind::kAnyFinite})
    if (std::string violation = for_samples(subject, kind,
                                            [&](const Sample& sample) {
                                              for (const Side side : {Side::kEnd, Side::kFront})
                                                try_kernel(*subject.kernel, sample.work, {side});
                                              return std::string();
                                            });
        !violation.empty())
      return violation;
  return {};
}

std::string incomplete(const Subject& subject) {
  return for_weights(subject, [&](const Sample& sample) -> std::string {
    const Bytes a = try_kernel(*subject.kernel, sample.work, {}, std::byte{0xa5}).bytes;
    const Bytes b = try_kernel(*subject.kernel, sample.work, {}, std::byte{0x5a}).bytes;
    const auto differs = std::ranges::mismatch(a, b).in1;
    if (differs == a.end()) return {};
    return fmt::format("leaves byte {} of the target as it was", differs - a.begin());
  });
}

std::string depends_on_place(const Subject& subject) {
  return for_weights(subject, [&](const Sample& sample) -> std::string {
    const Bytes at_end = try_kernel(*subject.kernel, sample.work).bytes;
    if (at_end != try_kernel(*subject.kernel, sample.work, {Side::kFront}).bytes)
      return "writes other bytes if the memory is somewhere else";
    if (at_end != try_kernel(*subject.kernel, sample.work, {Side::kEnd, true}).bytes)
      return "writes other bytes if the memory is aligned for elements only";
    return {};
  });
}

// ---- calls ----

Bytes row_by_row(const ggufmill_kernel& kernel, const Work& work) {
  const std::uint64_t step = source_row_bytes(kernel, work.cols);
  Bytes all;
  for (std::uint64_t row = 0; row < work.rows; ++row) {
    const Bytes one = try_kernel(kernel, {work.source.subspan(row * step, step), 1, work.cols, work.importance}).bytes;
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

std::string depends_on_rows(const Subject& subject) {
  return for_weights(subject, [&](const Sample& sample) -> std::string {
    return try_kernel(*subject.kernel, sample.work).bytes == row_by_row(*subject.kernel, sample.work)
               ? ""
               : "writes other bytes if each row is a call of its own";
  });
}

// Makes other calls between two that are alike.
std::string keeps_state(const Subject& subject) {
  Random random(subject.seed + 1);
  return for_weights(subject, [&](const Sample& sample) -> std::string {
    const Bytes first = try_kernel(*subject.kernel, sample.work).bytes;
    for (const InputKind kind : {InputKind::kMixed, InputKind::kOneSided, InputKind::kConstant}) {
      const bool weighted = !sample.importance.empty();
      const Sample other = sample_of(subject, kind, 1 + random.below(8), weighted, random);
      try_kernel(*subject.kernel, other.work);
    }
    return first == try_kernel(*subject.kernel, sample.work).bytes ? "" : "writes other bytes after other calls";
  });
}

// Runs different inputs on several threads at once.
std::string is_not_reentrant(const Subject& subject) {
  constexpr int kThreads = 4, kCalls = 12;
  Random random(subject.seed + 2);
  std::vector<Sample> samples(kThreads);
  std::vector<Bytes> expected;
  for (int i = 0; i < kThreads; ++i) {
    const auto kind = i % 2 == 0 ? InputKind::kWeights : InputKind::kOneSided;
    Sample& sample = samples[static_cast<std::size_t>(i)];
    sample = sample_of(subject, kind, 4, subject.kernel->flags != 0, random);
    sample.work.source = sample.source;
    sample.work.importance = sample.importance;
    expected.push_back(try_kernel(*subject.kernel, sample.work).bytes);
  }
  std::atomic<int> ready{0};
  std::atomic<bool> differs{false};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      for (int call = 0; call < kCalls && !differs; ++call)
        if (try_kernel(*subject.kernel, samples[i].work).bytes != expected[i]) differs = true;
    });
  for (std::thread& thread : threads) thread.join();
  return differs ? fmt::format("writes other bytes while other threads call it ({})", samples[0].text) : "";
}

// ---- what is left behind ----

// Rounding, trapped exceptions, and whether subnormals count as zero: not the flags of past exceptions.
struct FloatSettings {
  std::uint64_t control = 0, vector_control = 0;
  int rounding = fegetround();

  FloatSettings() {
    fenv_t environment;
    fegetenv(&environment);
#if defined(__x86_64__)
    constexpr std::uint32_t kPastExceptions = 0x3f;
    control = environment.__control_word;
    vector_control = environment.__mxcsr & ~kPastExceptions;
#elif defined(__aarch64__)
    control = environment.__fpcr;
#endif
  }
  bool operator==(const FloatSettings&) const = default;
};

std::string changes_settings(const Subject& subject) {
  return for_weights(subject, [&](const Sample& sample) -> std::string {
    const FloatSettings before;
    try_kernel(*subject.kernel, sample.work);
    return FloatSettings() == before ? "" : "changes the floating-point environment (rounding, exceptions, subnormals)";
  });
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
std::string without_heap_statistics(const Subject&) { return "the heap has no statistics in this build"; }
std::size_t heap_bytes() { return 0; }
#else
std::string without_heap_statistics(const Subject&) { return {}; }
std::size_t heap_bytes() { return mallinfo2().uordblks + mallinfo2().hblkhd; }
#endif

// The first calls may fill tables that are kept. The heap counts memory that it caches for reuse as allocated, which
// can change from call to call, but only within kCached.
std::string leaks(const Subject& subject) {
  constexpr int kCalls = 512;
  constexpr std::size_t kCached = 1024;
  Random random(subject.seed);
  const Sample sample = sample_of(subject, InputKind::kWeights, 2, subject.kernel->flags != 0, random);
  for (int i = 0; i < 4; ++i) try_kernel(*subject.kernel, sample.work);
  const std::size_t before = heap_bytes();
  for (int i = 0; i < kCalls; ++i) try_kernel(*subject.kernel, sample.work);
  const std::size_t after = heap_bytes();
  return after > before + kCached ? fmt::format("leaves {} bytes on the heap after {} calls", after - before, kCalls)
                                  : "";
}

// ---- importance ----

std::string takes_no_importance(const Subject& subject) {
  if (subject.kernel->operation == GGUFMILL_DECODE) return "a decoder";
  return subject.kernel->flags == 0 ? "takes no importance" : "";
}

// Some of several different importances must give other bytes.
std::string ignores_importance(const Subject& subject) {
  Random random(subject.seed + 3);
  for (const InputKind kind : {InputKind::kWeights, InputKind::kMixed, InputKind::kOneSided})
    for (int attempt = 0; attempt < 4; ++attempt) {
      const Sample sample = sample_of(subject, kind, 4, true, random);
      std::vector<float> other(sample.importance.size());
      for (float& weight : other) weight = std::ldexp(1.0F, static_cast<int>(random.below(24)) - 12);
      Work work = sample.work;
      work.source = sample.source;
      work.importance = sample.importance;
      if (is_search(*subject.kernel)) work.weights = GGUFMILL_WEIGHTS_IMPORTANCE;
      const Bytes bytes = try_kernel(*subject.kernel, work).bytes;
      work.importance = other;
      if (try_kernel(*subject.kernel, work).bytes != bytes) return {};
    }
  return "writes the same bytes whatever the importance is, although its flags announce it";
}

// ---- values ----

std::string not_decodable(const Subject& subject) {
  if (subject.kernel->operation == GGUFMILL_DECODE) return "a decoder";
  return subject.decoder ? "" : "there is no decoder of the type";
}

std::string not_finite(const Subject& subject, const Sample& sample, const Bytes& encoded, const char* values) {
  const Work& work = sample.work;
  if (subject.scales_are_finite && !subject.scales_are_finite(encoded, work.cols))
    return fmt::format("writes a scale that is not finite for {}, as the fields describe it", values);
  const Outcome decoded = try_kernel(*subject.decoder, {encoded, work.rows, work.cols, {}});
  if (decoded.status != GGUFMILL_OK)
    return fmt::format("the decoder returns status {} for what it writes", decoded.status);
  for (std::size_t i = 0; i < decoded.bytes.size() / sizeof(float); ++i) {
    float value = 0;
    std::memcpy(&value, decoded.bytes.data() + i * sizeof value, sizeof value);
    if (!std::isfinite(value)) return fmt::format("{} come back as {} at column {}", values, value, i % work.cols);
  }
  return {};
}

std::string bad_values(const Subject& subject) {
  for (const auto& [kind, values] :
       {std::pair(InputKind::kWeights, "ordinary values"), std::pair(InputKind::kAlmostZero, "values near zero"),
        std::pair(InputKind::kSparse, "mostly zeros")}) {
    std::string violation = for_samples(subject, kind, [&, &values = values](const Sample& sample) -> std::string {
      const Outcome encoded = try_kernel(*subject.kernel, sample.work);
      return encoded.status == GGUFMILL_OK ? not_finite(subject, sample, encoded.bytes, values) : "";
    });
    if (!violation.empty()) return violation;
  }
  return {};
}

std::string has_no_expected(const Subject& subject) {
  return subject.expected ? "" : "there is nothing to compare with";
}

std::string describe_rows(const ggufmill_kernel& kernel) {
  return fmt::format("{} bytes for {} elements after a row header of {} bytes", kernel.block_bytes,
                     kernel.block_elements, kernel.row_header_bytes);
}

std::string differs(const Subject& subject) {
  const std::string rows = describe_rows(*subject.kernel), expected_rows = describe_rows(*subject.expected);
  if (rows != expected_rows) return fmt::format("has {}, but the reference has {}", rows, expected_rows);
  CompareResult result;
  compare_kernels(*subject.expected, *subject.kernel, {subject.seed, subject.rounds, ""}, result, 1);
  return result.differences.empty() ? "" : result.differences.front();
}

constexpr Check kChecks[] = {
    {"status", "returns GGUFMILL_OK, or the status for values that the type cannot represent", always, wrong_status},
    {"bounds",
     "reads and writes nothing outside of its memory, and nothing of the source and the importance is written", always,
     out_of_bounds},
    {"complete", "writes every byte of the target", always, incomplete},
    {"alignment", "needs no more alignment than that of elements", always, depends_on_place},
    {"rows", "the bytes of a row do not depend on the other rows of the call", always, depends_on_rows},
    {"state", "the bytes do not depend on earlier calls", always, keeps_state},
    {"threads", "several threads may call it at once", always, is_not_reentrant},
    {"floats", "the floating-point environment remains", always, changes_settings},
    {"heap", "no allocation remains", without_heap_statistics, leaks},
    {"importance", "the importance changes the bytes", takes_no_importance, ignores_importance},
    {"values", "what it writes decodes to finite values", not_decodable, bad_values},
    {"reference", "the bytes are those of the reference", has_no_expected, differs},
};

Subject subject_of(const ggufmill_kernel& kernel, KernelList kernels, KernelList expected) {
  Subject subject;
  subject.kernel = &kernel;
  subject.expected = find_counterpart(expected, kernel);
  if (subject.expected == &kernel) subject.expected = nullptr;
  if (kernel.operation != GGUFMILL_ENCODE) return subject;
  subject.decoder = find_kernel(kernels, GGUFMILL_DECODE, kernel.name);
  if (!subject.decoder) subject.decoder = find_kernel(expected, GGUFMILL_DECODE, kernel.name);
  return subject;
}

bool same_letters(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

constexpr const char* kHangs = "does not return; its other checks were not made";

}  // namespace

std::span<const Check> kernel_checks() { return kChecks; }

bool CheckOptions::wants(const ggufmill_kernel& kernel) const {
  const auto is_asked = [&](const std::string& type) { return same_letters(type, kernel.name); };
  return types.empty() || std::ranges::any_of(types, is_asked);
}

std::vector<ConformanceResult> check_kernels(KernelList kernels, KernelList expected, const CheckOptions& options) {
  std::vector<ConformanceResult> results;
  for (const ggufmill_kernel& kernel : kernels) {
    if (!options.wants(kernel)) continue;
    if (options.stop && *options.stop) break;
    Subject subject = subject_of(kernel, kernels, expected);
    if (options.scales_of) subject.scales_are_finite = options.scales_of(kernel);
    for (const Check& check : kernel_checks()) {
      results.push_back({kernel.name, operation_of(kernel), std::string(encoder_of(kernel)), std::string(check.name),
                         ask_about(check, subject)});
      if (results.back().finding.detail == kHangs) break;  // the others would wait as long
    }
  }
  return results;
}

Finding ask_about(const Check& check, const Subject& subject) {
  using Kind = Finding::Kind;
  if (std::string why = check.skipped(subject); !why.empty()) return {Kind::kSkipped, std::move(why)};
  constexpr ChildLimits kLimits{60, std::chrono::minutes(10)};
  AccessReport access;
  const ChildAnswer answer = ask_child(
      [&]() -> std::string {
        access.watch();
        try {
          return check.violation(subject);
        } catch (const std::bad_alloc&) {
          throw;
        } catch (const std::exception& error) {
          return fmt::format("throws an exception: {}", error.what());
        } catch (...) {
          return "throws an exception";
        }
      },
      kLimits);
  if (answer.fault.empty() && answer.text.empty()) return {};
  if (answer.fault.empty()) return {Kind::kFailed, answer.text};
  const std::string place = access.text();
  if (place.empty() && answer.fault == kOutOfTime) return {Kind::kFailed, kHangs};
  return {Kind::kFailed, place.empty() ? "the process " + answer.fault : place};
}

}  // namespace ggufmill::conformance
