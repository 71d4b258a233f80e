#pragma once
// Keeps signals away from service threads.

#include <pthread.h>
#include <csignal>

namespace ggufmill {

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
