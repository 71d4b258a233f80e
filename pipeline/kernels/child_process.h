#pragma once
// Runs work that may crash the process in a forked copy of it.

#include <functional>
#include <string>

namespace ggufmill {

struct ChildAnswer {
  std::string text;   // what the work returned
  std::string fault;  // how the child ended without a result: "is killed by signal 11 (...)"; else empty
};

// Forks, runs `work` in the child with its output discarded, and waits for the result. The child may use 2 s of CPU
// time and 30 s in total. Failure of the system to create a process is reported as a fault as well. Locks that other
// threads hold at the time of the fork stay locked in the child forever: `work` must not need any of them.
ChildAnswer ask_child(const std::function<std::string()>& work);

}  // namespace ggufmill
