// Background I/O by blocking calls on a few threads.

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <system_error>

#include "pipeline/io/blocked_signals.h"
#include "pipeline/io/services.h"

namespace ggufmill {
namespace {

// Enough to have reads and writes under way at once and to hide the latency of a network disk; more would only wait for
// the same device.
constexpr std::size_t kThreads = 4;

class ThreadService final : public IoService {
 public:
  std::string name() const override { return "threads"; }

  void read(const InputFile& file, std::uint64_t offset, std::span<std::byte> into, Completion done) override {
    start(std::move(done), [&file, offset, into] { return file.read(offset, into); });
  }

  void write(AtomicFile& file, std::uint64_t offset, std::span<const std::byte> from, Completion done) override {
    start(std::move(done), [&file, offset, from] { return file.write(offset, from); });
  }

 private:
  template <class Work>
  void start(Completion done, Work work) {
    boost::asio::post(threads_.context(), [work, done = std::move(done)] {
      Status status = ok();
      try {
        status = work();
      } catch (...) {
        status = error_of_exception();
      }
      done(std::move(status));
    });
  }

  IoThreads threads_{kThreads};  // whose destruction waits for what completions start, too
};

}  // namespace

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
