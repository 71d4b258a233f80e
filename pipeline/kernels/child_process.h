#pragma once
// Work that may bring a process down, done by a copy of this one.

#include <functional>
#include <string>

namespace ggufmill {

struct ChildAnswer {
  std::string text;   // what the work returned
  std::string fault;  // how the child came to its end without an answer: "ends with signal 11 (...)"; else empty
};

// Forks, lets the child do `work` with its output thrown away, and waits for the answer. The child has 2 s of CPU time
// and 30 s in all. The system's refusal to make a process is a fault, too. Locks that other
// threads hold at that moment stay locked in the child for ever: `work` must need none of them.
ChildAnswer ask_child(const std::function<std::string()>& work);

}  // namespace ggufmill
