// Background I/O by blocking calls on a few threads.

#include <fmt/format.h>

#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/system/system_error.hpp>

#include "pipeline/io/blocked_signals.h"
#include "pipeline/io/services.h"

namespace ggufmill {
namespace {

// Enough to have reads and writes under way at once and to hide the latency of a network disk; more would only wait for
// the same device.
constexpr std::size_t kThreads = 4;

class ThreadService final : public IoService {
 public:
  ~ThreadService() override { pool_.join(); }  // waits for what completions start, too

  std::string name() const override { return "threads"; }

  void read(const InputFile& file, std::uint64_t offset, std::span<std::byte> into, Completion done) override {
    boost::asio::post(pool_, [&file, offset, into, done = std::move(done)] { done(file.read(offset, into)); });
  }

  void write(AtomicFile& file, std::uint64_t offset, std::span<const std::byte> from, Completion done) override {
    boost::asio::post(pool_, [&file, offset, from, done = std::move(done)] { done(file.write(offset, from)); });
  }

 private:
  boost::asio::thread_pool pool_{kThreads};
};

}  // namespace

Result<std::unique_ptr<IoService>> start_thread_service() {
  try {
    const BlockedSignals blocked;
    return std::make_unique<ThreadService>();
  } catch (const boost::system::system_error& error) {
    return Error{ExitCode::kTransient, "", fmt::format("cannot start {} threads for I/O: {}", kThreads, error.what()),
                 "", "allow more processes and threads (ulimit -u), or try again later"};
  }
}

}  // namespace ggufmill
