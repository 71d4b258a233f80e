#pragma once
// Running work on several threads, and threads that take no signals.

#include <pthread.h>

#include <csignal>
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

// Blocks all signals for the current thread while it exists, and permanently for threads started during that time:
// signals sent to the process are delivered to the program's own threads.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace ggufmill
