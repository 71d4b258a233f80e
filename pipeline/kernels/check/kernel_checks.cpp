#include "pipeline/kernels/check/kernel_checks.h"

#include <fenv.h>
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstring>
#include <ctime>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <thread>
#include <vector>

#include "pipeline/io/platform/process.h"
#include "pipeline/kernels/check/compare.h"
#include "pipeline/kernels/check/hard_inputs.h"

namespace ggufmill::conformance {
namespace {

using Side = GuardedBuffer::Side;

// A few rows of one block, a few, and enough that three rows are more than the widest kernels take at a time.
const Shapes kSmall{{3, 1}, {3, 7}, {3, 12}};

constexpr std::uint64_t kMaxRows = std::ranges::max(kNumbersOfRows);

// Small shapes, one with many rows, and long ones.
Shapes all_shapes(const ggufmill_kernel& kernel) {
  Shapes shapes = long_shapes(kernel);
  shapes.insert(shapes.begin(), kSmall.begin(), kSmall.end());
  shapes.push_back({kMaxRows, 1});
  return shapes;
}

// An input. `work` refers to the other members.
struct Sample {
  std::vector<std::byte> source;
  std::vector<float> importance;  // empty: none
  Work work;
};

bool needs_importance(const ggufmill_kernel& kernel) { return (kernel.flags & GGUFMILL_NEEDS_IMPORTANCE) != 0; }

// Values for an encoder, any bytes for a decoder.
std::vector<std::byte> source_for(const ggufmill_kernel& kernel, InputKind kind, std::uint64_t rows, std::uint64_t cols,
                                  Random& random) {
  if (kernel.operation == GGUFMILL_DECODE) return random_bytes(random, rows * source_row_bytes(kernel, cols));
  const std::vector<float> values = hard_input(kind, random, rows * cols);
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

Sample sample_of(const Subject& subject, InputKind kind, Shape shape, bool weighted, Random& random) {
  const ggufmill_kernel& kernel = *subject.kernel;
  const std::uint64_t cols = shape.blocks * kernel.block_elements;
  Sample sample;
  sample.source = source_for(kernel, kind, shape.rows, cols, random);
  if (weighted) sample.importance = hard_importance(ImportanceKind::kOrdinary, random, cols);
  sample.work = {sample.source, shape.rows, cols, sample.importance};
  return sample;
}

using Use = std::function<std::string(const Sample&)>;

// Calls `use` with samples of one kind of input, of all shapes, with and without importance as the kernel takes it.
// Returns the first violation that it returns.
std::string for_samples(const Subject& subject, InputKind kind, const Shapes& shapes, const Use& use) {
  Random random(subject.seed);
  for (const Shape shape : shapes)
    for (const bool weighted : {false, true}) {
      if (weighted ? subject.kernel->flags == 0 : needs_importance(*subject.kernel)) continue;
      const Sample sample = sample_of(subject, kind, shape, weighted, random);
      std::string violation = use(sample);
      if (!violation.empty()) return fmt::format("{} ({})", violation, describe_call(*subject.kernel, sample.work));
    }
  return {};
}

std::string for_weights(const Subject& subject, const Shapes& shapes, const Use& use) {
  return for_samples(subject, InputKind::kWeights, shapes, use);
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
  std::string violation = for_weights(subject, all_shapes(*subject.kernel), use(true, "ordinary values"));
  for (int kind = 0; kind < kInputKinds && violation.empty() && subject.kernel->operation == GGUFMILL_ENCODE; ++kind) {
    const std::string values = name_of(static_cast<InputKind>(kind)) + " values, which are finite";
    violation = for_samples(subject, static_cast<InputKind>(kind), {{3, 7}}, use(false, values));
  }
  return violation;
}

// ---- bounds ----

// Guard pages on each side end the process, so there is nothing to compare.
std::string out_of_bounds(const Subject& subject) {
  const auto use = [&](const Sample& sample) {
    for (const Side side : {Side::kEnd, Side::kFront}) try_kernel(*subject.kernel, sample.work, {side});
    return std::string();
  };
  for_samples(subject, InputKind::kWeights, all_shapes(*subject.kernel), use);
  return for_samples(subject, InputKind::kAnyFinite, kSmall, use);
}

std::string incomplete(const Subject& subject) {
  return for_weights(subject, all_shapes(*subject.kernel), [&](const Sample& sample) -> std::string {
    constexpr std::byte kFirst{0xa5}, kSecond{0x5a};
    const Bytes a = try_kernel(*subject.kernel, sample.work, {}, kFirst).bytes;
    const Bytes b = try_kernel(*subject.kernel, sample.work, {}, kSecond).bytes;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i] == kFirst && b[i] == kSecond) return fmt::format("leaves byte {} of the target as it was", i);
    return {};
  });
}

std::string depends_on_place(const Subject& subject) {
  return for_weights(subject, kSmall, [&](const Sample& sample) -> std::string {
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

Work first_rows(const ggufmill_kernel& kernel, const Work& work, std::uint64_t rows) {
  Work some = work;
  some.rows = rows;
  some.source = work.source.first(rows * source_row_bytes(kernel, work.cols));
  return some;
}

// Calls with several numbers of rows must write what calls with one row each write.
std::string depends_on_rows(const Subject& subject) {
  const ggufmill_kernel& kernel = *subject.kernel;
  const Shapes shapes{{kMaxRows, 1}, {kMaxRows, 3}, long_rows(kernel, 2, 4096)};
  const auto use = [&](const Sample& sample) -> std::string {
    const Bytes expected = row_by_row(kernel, sample.work);
    for (const std::uint64_t rows : kNumbersOfRows) {
      if (rows > sample.work.rows) break;
      const Work work = first_rows(kernel, sample.work, rows);
      const Bytes bytes = try_kernel(kernel, work).bytes;
      const auto at = static_cast<std::uint64_t>(std::ranges::mismatch(bytes, expected).in1 - bytes.begin());
      if (at != bytes.size())
        return fmt::format("writes other bytes in row {} of {} if each row is a call of its own",
                           at / target_row_bytes(kernel, work.cols), rows);
    }
    return {};
  };
  return for_weights(subject, shapes, use);
}

// Makes other calls between two that are alike.
std::string keeps_state(const Subject& subject) {
  Random random(subject.seed + 1);
  return for_weights(subject, kSmall, [&](const Sample& sample) -> std::string {
    const Bytes first = try_kernel(*subject.kernel, sample.work).bytes;
    for (const InputKind kind : {InputKind::kMixed, InputKind::kOneSided, InputKind::kConstant}) {
      const bool weighted = !sample.importance.empty();
      const Sample other = sample_of(subject, kind, {3, 1 + random.below(8)}, weighted, random);
      try_kernel(*subject.kernel, other.work);
    }
    return first == try_kernel(*subject.kernel, sample.work).bytes ? "" : "writes other bytes after other calls";
  });
}

// Runs different inputs on several threads at once. Each thread alternates between two inputs in memory of its own, and
// all begin each round together. A round is long beside the time in which threads wake up, and the rounds take enough
// processor time that the system also interrupts calls where it has fewer processors than threads.
std::string is_not_reentrant(const Subject& subject) {
  constexpr std::size_t kThreads = 4, kInputs = 2;
  constexpr int kMinRounds = 2;
  constexpr std::chrono::milliseconds kRound{2};
  constexpr double kMinSeconds = 0.1;  // of the process's processor time
  Random random(subject.seed + 2);
  const ggufmill_kernel& kernel = *subject.kernel;
  std::vector<Sample> samples;
  std::vector<Bytes> expected;
  for (std::size_t i = 0; i < kThreads * kInputs; ++i) {
    const auto kind = i % 3 == 0 ? InputKind::kWeights : i % 3 == 1 ? InputKind::kOneSided : InputKind::kMixed;
    samples.push_back(sample_of(subject, kind, long_rows(kernel, 2, 2048), kernel.flags != 0, random));
    expected.push_back(try_kernel(kernel, samples.back().work).bytes);
  }
  int rounds = 0;
  bool is_done = false;
  std::atomic<bool> differs{false};
  const std::clock_t start = std::clock();
  std::barrier round(kThreads, [&]() noexcept {
    is_done =
        differs || (rounds >= kMinRounds && static_cast<double>(std::clock() - start) >= kMinSeconds * CLOCKS_PER_SEC);
    ++rounds;
  });
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i)
    threads.emplace_back([&, i] {
      std::optional<GuardedCall> calls[kInputs];
      for (std::size_t k = 0; k < kInputs; ++k) calls[k].emplace(kernel, samples[i * kInputs + k].work);
      while (true) {
        round.arrive_and_wait();
        if (is_done) return;
        const auto end = std::chrono::steady_clock::now() + kRound;
        for (std::size_t call = 0; call < kInputs || std::chrono::steady_clock::now() < end; ++call) {
          GuardedCall& one = *calls[call % kInputs];
          one.run();
          if (!std::ranges::equal(one.target(), expected[i * kInputs + call % kInputs])) differs = true;
          if (differs) break;
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (!differs) return {};
  return fmt::format("writes other bytes while other threads call it ({})", describe_call(kernel, samples[0].work));
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
  return for_weights(subject, kSmall, [&](const Sample& sample) -> std::string {
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
  const Sample sample = sample_of(subject, InputKind::kWeights, {1, 2}, subject.kernel->flags != 0, random);
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
      const Sample sample = sample_of(subject, kind, {3, 4}, true, random);
      std::vector<float> other(sample.importance.size());
      for (float& weight : other) weight = std::ldexp(1.0F, static_cast<int>(random.below(24)) - 12);
      Work work = sample.work;
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
  if (!subject.decoder_failed.empty())
    return fmt::format("needs the decoder, which fails `{}`", subject.decoder_failed);
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
    std::string violation =
        for_samples(subject, kind, kSmall, [&, &values = values](const Sample& sample) -> std::string {
          const Outcome encoded = try_kernel(*subject.kernel, sample.work);
          return encoded.status == GGUFMILL_OK ? not_finite(subject, sample, encoded.bytes, values) : "";
        });
    if (!violation.empty()) return violation;
  }
  return {};
}

// ---- round trip ----

// Returns true if decoded values are nearer to the encoded ones than zeros are.
bool is_near(const Subject& subject, const Sample& sample) {
  const Outcome encoded = try_kernel(*subject.kernel, sample.work);
  if (encoded.status != GGUFMILL_OK) return false;
  const Bytes decoded = try_kernel(*subject.decoder, {encoded.bytes, sample.work.rows, sample.work.cols, {}}).bytes;
  double error = 0, energy = 0;
  for (std::size_t i = 0; i < decoded.size(); i += sizeof(float)) {
    float x = 0, y = 0;
    std::memcpy(&x, sample.source.data() + i, sizeof x);
    std::memcpy(&y, decoded.data() + i, sizeof y);
    error += (static_cast<double>(x) - y) * (static_cast<double>(x) - y);
    energy += static_cast<double>(x) * x;
  }
  return error < energy;
}

// One of two inputs is enough: small integers lose ordinary weights, and types of signs lose zeros.
std::string loses_values(const Subject& subject) {
  Random random(subject.seed + 4);
  for (const InputKind kind : {InputKind::kWeights, InputKind::kTernary}) {
    Sample sample = sample_of(subject, kind, {3, 12}, false, random);
    const std::vector<float> ones(sample.work.cols, 1.0f);
    if (needs_importance(*subject.kernel)) sample.work.importance = ones;
    if (is_near(subject, sample)) return {};
  }
  return "decoding its output gives values no closer to the input than zeros";
}

// ---- other modules ----

std::string collides(const Subject& subject) { return subject.collision; }

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
    {"collisions", "no other module has the id, the name, or the kernel", "", always, collides},
    {"bounds",
     "returns, reads and writes nothing outside of its memory, and nothing of the source and the importance is written",
     "", always, out_of_bounds},
    {"status", "returns GGUFMILL_OK, or the status for values that the type cannot represent", "bounds", always,
     wrong_status},
    {"complete", "writes every byte of the target", "status", always, incomplete},
    {"state", "the bytes do not depend on earlier calls", "status", always, keeps_state},
    {"alignment", "needs no more alignment than that of elements", "state", always, depends_on_place},
    {"rows", "the bytes of a row do not depend on the other rows of the call", "state", always, depends_on_rows},
    {"threads", "several threads may call it at once", "state", always, is_not_reentrant},
    {"floats", "the floating-point environment remains", "status", always, changes_settings},
    {"heap", "no allocation remains", "status", without_heap_statistics, leaks},
    {"importance", "the importance changes the bytes", "state", takes_no_importance, ignores_importance},
    {"values", "what it writes decodes to finite values", "status", not_decodable, bad_values},
    {"round trip", "what it writes decodes to values nearer to the encoded ones than zeros are", "values",
     not_decodable, loses_values},
    {"reference", "the bytes are those of the reference", "state", has_no_expected, differs},
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

constexpr const char* kHangs = "does not return";

// Runs the checks of one kernel, in order. Those that need the result of one that failed are skipped, and so are all
// after one that does not return: they would wait as long.
std::vector<Finding> check_kernel(const Subject& subject) {
  std::vector<Finding> findings;
  std::map<std::string_view, std::string_view> failed;  // checks that failed or are skipped for it, with the failed one
  std::string_view hangs;
  for (const Check& check : kernel_checks()) {
    const auto cause = failed.find(check.needs);
    const std::string_view needed = !hangs.empty() ? hangs : cause == failed.end() ? "" : cause->second;
    std::string why = check.skipped(subject);
    if (why.empty() && !needed.empty()) {
      why = fmt::format("needs `{}`, which failed", needed);
      failed.emplace(check.name, needed);
    }
    findings.push_back(why.empty() ? ask_about(check, subject) : Finding{Finding::Kind::kSkipped, why});
    if (findings.back().kind != Finding::Kind::kFailed) continue;
    failed.emplace(check.name, check.name);
    if (findings.back().detail.starts_with(kHangs)) hangs = check.name;
  }
  return findings;
}

// Returns the name of the check that `findings` fail and that every use of the kernel's results needs; empty if none.
std::string failed_use(const std::vector<Finding>& findings) {
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const std::string_view name = kernel_checks()[i].name;
    if (findings[i].kind == Finding::Kind::kFailed && (name == "bounds" || name == "status")) return std::string(name);
  }
  return {};
}

}  // namespace

std::span<const Check> kernel_checks() { return kChecks; }

bool CheckOptions::wants(const ggufmill_kernel& kernel) const {
  const auto is_asked = [&](const std::string& type) { return same_letters(type, kernel.name); };
  return types.empty() || std::ranges::any_of(types, is_asked);
}

std::vector<ConformanceResult> check_kernels(KernelList kernels, KernelList expected, const CheckOptions& options) {
  std::vector<std::vector<Finding>> findings(kernels.size());
  std::map<std::string_view, std::string> failed_decoders;  // by the name of the type
  for (const std::uint32_t operation : {GGUFMILL_DECODE, GGUFMILL_ENCODE})
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      if (kernels[i].operation != operation || !options.wants(kernels[i]) || (options.stop && *options.stop)) continue;
      Subject subject = subject_of(kernels[i], kernels, expected);
      if (options.scales_of) subject.scales_are_finite = options.scales_of(kernels[i]);
      if (options.collision_of) subject.collision = options.collision_of(kernels[i]);
      if (operation == GGUFMILL_ENCODE) subject.decoder_failed = failed_decoders[kernels[i].name];
      findings[i] = check_kernel(subject);
      if (operation == GGUFMILL_DECODE) failed_decoders[kernels[i].name] = failed_use(findings[i]);
    }
  std::vector<ConformanceResult> results;
  for (std::size_t i = 0; i < kernels.size(); ++i)
    for (std::size_t k = 0; k < findings[i].size(); ++k)
      results.push_back({kernels[i].name, operation_of(kernels[i]), std::string(encoder_of(kernels[i])),
                         std::string(kernel_checks()[k].name), std::move(findings[i][k])});
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
  const std::string place = access.text(), call = access.call();
  std::string fault = !place.empty() ? place : answer.fault == kOutOfTime ? kHangs : "the process " + answer.fault;
  if (!call.empty()) fault += fmt::format(" ({})", call);
  return {Kind::kFailed, std::move(fault)};
}

}  // namespace ggufmill::conformance
