#pragma once
// The two implementations of IoService, and the threads of both.

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "pipeline/io/io_service.h"
#include "pipeline/io/threads.h"

namespace ggufmill {

// Threads that call what is posted to the context. (Asio's own thread_pool waits for ever where it can start the first
// of its threads alone.)
class IoThreads {
 public:
  // Throws std::system_error or std::bad_alloc where the system has no more threads or memory.
  explicit IoThreads(std::size_t threads) : context_(static_cast<int>(threads)), work_(context_.get_executor()) {
    try {
      for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { context_.run(); });
    } catch (...) {
      context_.stop();
      throw;
    }
  }
  ~IoThreads() { join(); }
  // Waits until nothing is left to be called.
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

// The threads of IoService::wait_for(), which are started when they are first needed.
class WaitingThreads {
 public:
  // The service's own `threads` live until `done` has been called.
  void start(IoThreads& threads, std::function<Status()> work, IoService::Completion done) {
    std::call_once(started_, [&] {
      const BlockedSignals blocked;
      threads_.emplace(kThreads);
    });
    boost::asio::post(threads_->context(), [lives = boost::asio::make_work_guard(threads.context()),
                                            work = std::move(work), done = std::move(done)] { call(work, done); });
  }
  // `work`, and then `done` with what it gives or the error that its exception comes to. Allocates nothing itself: the
  // caller is a thread that no exception may leave.
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
  // Enough that the latency of a server does not count.
  static constexpr std::size_t kThreads = 8;
  std::once_flag started_;
  std::optional<IoThreads> threads_;
};

// Exit code 75 where the system has no threads left.
Result<std::unique_ptr<IoService>> start_thread_service();

// Exit code 5, saying why, where this build or this system has no io_uring.
Result<std::unique_ptr<IoService>> start_uring_service();

// Empty: io_uring works here for what we ask of it (a write and a read back in memory are tried). Else the reason.
std::string why_no_uring();

}  // namespace ggufmill
