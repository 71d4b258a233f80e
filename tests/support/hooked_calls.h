#pragma once
// Injects faults into system calls, for tests of what happens if the k-th one fails.

#include <atomic>
#include <functional>

#include "pipeline/io/platform/files.h"

namespace ggufmill {

// Called before each call of the table, from any thread. 0 lets the call through; kHalf makes a read or write transfer
// half of its bytes, but at least one; an errno makes the call fail with it.
using CallHook = std::function<int()>;
constexpr int kHalf = -1;

// Installs the hook; restores the kernel's calls when destroyed. Only one instance may exist at a time.
class HookedCalls {
 public:
  explicit HookedCalls(CallHook hook);
  HookedCalls(const HookedCalls&) = delete;
  HookedCalls& operator=(const HookedCalls&) = delete;
  ~HookedCalls();
};

// Makes the k-th call (from 1) end with `outcome`, and lets all others through.
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
