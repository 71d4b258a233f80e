#pragma once

#include <functional>

namespace ggufmill {

// Calls `work` on so many threads at once, this one among them, and returns when all calls have. An exception of a call
// is thrown here, the first where there are several.
void on_threads(unsigned threads, const std::function<void()>& work);

}  // namespace ggufmill
