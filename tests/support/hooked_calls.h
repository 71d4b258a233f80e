#pragma once
// Faults at system calls, for tests: what happens when the k-th one fails?

#include <atomic>
#include <functional>

#include "pipeline/io/system_calls.h"

namespace ggufmill {

// Asked before each call of the table, from any thread: 0 lets it through, kHalf makes a read or write transfer half of
// its bytes (one at least), an errno makes the call fail with it.
using CallHook = std::function<int()>;
constexpr int kHalf = -1;

// One at a time; restores the kernel's calls when destroyed.
class HookedCalls {
 public:
  explicit HookedCalls(CallHook hook);
  HookedCalls(const HookedCalls&) = delete;
  HookedCalls& operator=(const HookedCalls&) = delete;
  ~HookedCalls();
};

// Lets the k-th call (from 1) end in `outcome`, and all others through.
class FaultAt {
 public:
  FaultAt(int k, int outcome) : k_(k), calls_([this, outcome] { return ++count_ == k_ ? outcome : 0; }) {}
  bool reached() const { return count_ >= k_; }

 private:
  const int k_;
  std::atomic<int> count_{0};
  HookedCalls calls_;
};

}  // namespace ggufmill
