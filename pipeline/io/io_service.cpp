// Background I/O: selection of the service, and the service that makes blocking calls on a few threads.
#include "pipeline/io/io_service.h"

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "pipeline/io/services.h"

namespace ggufmill {
namespace {

// Enough to overlap reads and writes and to hide the latency of a network disk; more threads would only wait for the
// same device.
constexpr std::size_t kThreads = 4;

class ThreadService final : public IoService {
 public:
  std::string name() const override { return "threads"; }

  void read(const InputFile& file, std::uint64_t offset, std::span<std::byte> into, Completion done) override {
    start(std::move(done), [&file, offset, into] { return file.read(offset, into); });
  }

  void write(WriteTarget& file, std::uint64_t offset, std::span<const std::byte> from, Completion done) override {
    start(std::move(done), [&file, offset, from] { return file.write(offset, from); });
  }

  void wait_for(std::function<Status()> work, Completion done) override {
    waiting_.start(threads_, std::move(work), std::move(done));
  }

 private:
  template <class Work>
  void start(Completion done, Work work) {
    boost::asio::post(threads_.context(), [work, done = std::move(done)] { WaitingThreads::call(work, done); });
  }

  WaitingThreads waiting_;
  IoThreads threads_{kThreads};  // its destructor also waits for operations started by completions
};

}  // namespace

namespace {

// If TBB cannot start a thread, the system's error is available only as text: "pthread_create has failed: ...".
Error error_of_text(std::string_view what) noexcept try {
  if (what.ends_with(std::strerror(EAGAIN)) || what.ends_with(std::strerror(ENOMEM)))
    return {ExitCode::kTransient, "", std::string(what), "",
            "allow more processes and threads (ulimit -u) and more memory, or try again later"};
  return {ExitCode::kInternal, "", std::string(what), "", "this is a bug in ggufmill: please report it"};
} catch (...) {
  return {ExitCode::kTransient, "", "out of memory", "", ""};
}

}  // namespace

Error error_of_exception() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return {ExitCode::kTransient, "", "out of memory", "",
              "lower the memory limit, or run on a machine with more free memory"};
    } catch (const std::system_error& error) {  // from std::thread and Asio if the system is out of a resource
      const int number = error.code().value();
      if (number != EAGAIN && number != ENOMEM) throw;
      return {ExitCode::kTransient, "", error.what(), "",
              "allow more processes and threads (ulimit -u), or try again later"};
    }
  } catch (const std::bad_alloc&) {
    return {ExitCode::kTransient, "", "out of memory", "", ""};  // short enough not to allocate
  } catch (const std::exception& error) {
    return error_of_text(error.what());
  } catch (...) {
    return {ExitCode::kInternal, "", "exception", "", ""};
  }
}

Result<std::unique_ptr<IoService>> IoService::start(IoKind kind) {
  if (kind == IoKind::kThreads) return start_thread_service();
  Result<std::unique_ptr<IoService>> uring = start_uring_service();
  if (!uring && kind == IoKind::kAuto) return start_thread_service();
  return uring;
}

Result<std::unique_ptr<IoService>> start_thread_service() {
  try {
    const BlockedSignals blocked;
    return std::make_unique<ThreadService>();
  } catch (const std::system_error& error) {
    return Error{ExitCode::kTransient, "", fmt::format("cannot start {} threads for I/O: {}", kThreads, error.what()),
                 "", "allow more processes and threads (ulimit -u), or try again later"};
  }
}

}  // namespace ggufmill
