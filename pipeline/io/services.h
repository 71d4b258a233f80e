#pragma once
// The two implementations of IoService, and the threads that both use.

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "pipeline/io/io_service.h"
#include "pipeline/io/platform/process.h"

namespace ggufmill {

// Threads that run the handlers posted to the context. (Asio's own thread_pool hangs if the system starts only the
// first of its threads.)
class IoThreads {
 public:
  // Throws std::system_error or std::bad_alloc if the system is out of threads or memory.
  explicit IoThreads(std::size_t threads) : context_(static_cast<int>(threads)), work_(context_.get_executor()) {
    try {
      for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { context_.run(); });
    } catch (...) {
      context_.stop();
      throw;
    }
  }
  ~IoThreads() { join(); }
  // Waits until all posted handlers have run.
  void join() {
    work_.reset();
    threads_.clear();
  }

  boost::asio::io_context& context() { return context_; }

 private:
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::vector<std::jthread> threads_;  // destroyed first, which waits for them
};

// The threads of IoService::wait_for(), started on first use.
class WaitingThreads {
 public:
  // The service's own `threads` are kept running until `done` has been called.
  void start(IoThreads& threads, std::function<Status()> work, IoService::Completion done) {
    std::call_once(started_, [&] {
      const BlockedSignals blocked;
      threads_.emplace(kThreads);
    });
    boost::asio::post(threads_->context(), [lives = boost::asio::make_work_guard(threads.context()),
                                            work = std::move(work), done = std::move(done)] { call(work, done); });
  }
  // Calls `work`, then `done` with its result, or with the error for its exception. Allocates nothing itself, since no
  // exception may leave the calling thread.
  template <class Work>
  static void call(const Work& work, const IoService::Completion& done) {
    Status status = ok();
    try {
      status = work();
    } catch (...) {
      status = error_of_exception();
    }
    done(std::move(status));
  }

 private:
  // Enough to hide the latency of a server.
  static constexpr std::size_t kThreads = 8;
  std::once_flag started_;
  std::optional<IoThreads> threads_;
};

// Exit code 75 if the system is out of threads.
Result<std::unique_ptr<IoService>> start_thread_service();

// Exit code 5, with the reason, if this build or this system does not support io_uring.
Result<std::unique_ptr<IoService>> start_uring_service();

}  // namespace ggufmill
