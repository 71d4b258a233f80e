#pragma once
// Running work on several threads.

#include <cstddef>
#include <functional>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// Calls `work` concurrently on `threads` threads, including the calling one, and returns when all calls have returned.
// If calls throw, the first exception is rethrown here.
void on_threads(unsigned threads, const std::function<void()>& work);

// Calls `work` once for each of `count` items, with a buffer that belongs to the calling thread. After an error no new
// item is started; returns the first error.
Status for_each_on_threads(unsigned threads, std::size_t count,
                           const std::function<Status(std::size_t item, std::vector<std::byte>& buffer)>& work);

}  // namespace ggufmill
