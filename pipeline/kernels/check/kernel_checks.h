#pragma once
// The rules of the kernel ABI (plugins/abi/ggufmill_kernels.h) as checks of one kernel, independent of what it
// computes, and the comparison with another kernel.

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/kernels/check/kernel_run.h"

namespace ggufmill::conformance {

// A kernel and what is needed to check it.
struct Subject {
  const ggufmill_kernel* kernel = nullptr;
  const ggufmill_kernel* decoder = nullptr;   // of an encoder's type; null: none is known
  const ggufmill_kernel* expected = nullptr;  // the kernel whose bytes it must have; null: none
  // Returns false if a scale of encoded rows is not finite, as the host finds them; null: not known.
  std::function<bool(std::span<const std::byte> rows, std::uint64_t cols)> scales_are_finite{};
  std::string collision{};       // why it cannot be used beside other modules; empty: it can
  std::string decoder_failed{};  // name of a check that the decoder fails; empty: it can be used
  std::uint64_t seed = 1;        // of the inputs
  std::uint64_t rounds = 2;      // of the comparison
};

// A check runs the kernel, so a defect can end the process or never return: see ask_about().
struct Check {
  std::string_view name;   // "bounds"
  std::string_view doc;    // the rule, in a few words
  std::string_view needs;  // the check without which this one finds nothing; empty: none
  // Returns why the check does not apply, or an empty string.
  std::string (*skipped)(const Subject& subject);
  // Returns how the kernel breaks the rule, or an empty string.
  std::string (*violation)(const Subject& subject);
};

// In the order in which an author would fix them.
std::span<const Check> kernel_checks();

struct Finding {
  enum class Kind { kPassed, kFailed, kSkipped };
  Kind kind = Kind::kPassed;
  std::string detail;  // why it failed or was skipped
};

// Runs a check in a child process. A crash, an exception, and a kernel that does not return are failures.
Finding ask_about(const Check& check, const Subject& subject);

struct ConformanceResult {
  std::string type, operation, encoder;  // "Q4_K", "encode", "search"; the encoder is empty for the default one
  std::string check;
  Finding finding;
};

struct CheckOptions {
  std::vector<std::string> types;           // only these, in any letter case; empty: all
  const std::atomic<bool>* stop = nullptr;  // may be null; checks no further kernel once it is true
  // Returns Subject::scales_are_finite for a kernel; null: not known.
  std::function<decltype(Subject::scales_are_finite)(const ggufmill_kernel& kernel)> scales_of{};
  // Returns Subject::collision for a kernel; null: there are no other modules.
  std::function<std::string(const ggufmill_kernel& kernel)> collision_of{};

  // Returns true if the kernel's type is one of `types`.
  bool wants(const ggufmill_kernel& kernel) const;
};

// Runs all checks on kernels. Those that they are compared with, and the decoders of types that have none among
// `kernels`, are among `expected`. Returns the results by kernel, then check.
std::vector<ConformanceResult> check_kernels(KernelList kernels, KernelList expected, const CheckOptions& options = {});

}  // namespace ggufmill::conformance
