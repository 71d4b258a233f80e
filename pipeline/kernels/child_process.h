#pragma once
// Runs work that may crash the process in a forked copy of it.

#include <chrono>
#include <functional>
#include <string>

namespace ggufmill {

// ChildAnswer::fault of a child that used up its time.
inline constexpr const char* kUnfinished = "does not finish";

struct ChildAnswer {
  std::string text;   // what the work returned
  std::string fault;  // how the child ended without a result: "is killed by signal 11 (...)"; else empty
};

// How long a child may run.
struct ChildLimits {
  unsigned cpu_seconds = 2;
  std::chrono::seconds patience{30};  // in total
};

// Forks, runs `work` in the child with its output discarded, and waits for the result. Failure of the system to create
// a process is reported as a fault as well. Locks that other threads hold at the time of the fork stay locked in the
// child forever: `work` must not need any of them.
ChildAnswer ask_child(const std::function<std::string()>& work, const ChildLimits& limits = {});

}  // namespace ggufmill
