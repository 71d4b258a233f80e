#pragma once
// Starting threads: many for one work, and those that take no signals.

#include <pthread.h>

#include <csignal>
#include <cstddef>
#include <functional>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// Calls `work` on so many threads at once, this one among them, and returns when all calls have. An exception of a call
// is thrown here, the first where there are several.
void on_threads(unsigned threads, const std::function<void()>& work);

// Calls `work` once for each of `count` items, with a buffer of the thread that it is called by. After an error no item
// is begun; gives the first.
Status for_each_on_threads(unsigned threads, std::size_t count,
                           const std::function<Status(std::size_t item, std::vector<std::byte>& buffer)>& work);

// While it lives, the current thread takes no signals, and threads that it starts never will: those meant for the
// process reach the program's own threads.
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
