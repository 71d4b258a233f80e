// Background I/O by io_uring, through Boost.Asio.

#include <fmt/format.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/random_access_file.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/system/system_error.hpp>
#include <deque>
#include <mutex>
#include <vector>

#include "pipeline/io/blocked_signals.h"
#include "pipeline/io/services.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {
namespace {

using boost::system::error_code;

// Completions run on these; two, so that one can hand work to the kernel while another is called.
constexpr std::size_t kThreads = 2;
// Operations under way in the kernel at once; the others wait their turn here.
constexpr std::size_t kLanes = 16;

// One read or write, of which the first bytes may be done already.
struct Operation {
  const InputFile* input = nullptr;  // one of the two
  AtomicFile* output = nullptr;
  std::uint64_t offset = 0;
  std::byte* data = nullptr;  // only read from where `output` is set
  std::size_t bytes = 0;
  std::size_t done_bytes = 0;
  IoService::Completion done;

  int descriptor() const { return input ? input->descriptor() : output->descriptor(); }
  const std::string& path() const { return input ? input->path() : output->path(); }
  Status check() const { return input ? input->check(offset, bytes) : output->check(offset, bytes); }
  std::size_t left() const { return bytes - done_bytes; }
  std::uint64_t position() const { return offset + done_bytes; }
};

// Asio runs the reads of one file object one after the other, and its writes likewise. So a lane is a file object that
// takes the descriptor of each operation for as long as that lasts: reads of one file overlap.
struct Lane {
  explicit Lane(boost::asio::thread_pool& pool) : file(pool) {}
  boost::asio::basic_random_access_file<boost::asio::thread_pool::executor_type> file;
  Operation operation;
};

class UringService final : public IoService {
 public:
  UringService() {
    for (std::size_t i = 0; i < kLanes; ++i) free_.push_back(&lanes_.emplace_back(pool_));
  }
  ~UringService() override { pool_.join(); }  // waits for what completions start, too

  std::string name() const override { return "io_uring"; }
  void read(const InputFile& file, std::uint64_t offset, std::span<std::byte> into, Completion done) override {
    start({&file, nullptr, offset, into.data(), into.size(), 0, std::move(done)});
  }
  void write(AtomicFile& file, std::uint64_t offset, std::span<const std::byte> from, Completion done) override {
    start({nullptr, &file, offset, const_cast<std::byte*>(from.data()), from.size(), 0, std::move(done)});
  }

 private:
  void start(Operation operation);
  void begin(Lane& lane);
  void transfer(Lane& lane);
  void transferred(Lane& lane, const error_code& error, std::size_t bytes);
  void finish(Lane& lane, Status status);

  boost::asio::thread_pool pool_{kThreads};
  std::deque<Lane> lanes_;
  std::mutex mutex_;               // of what follows
  std::vector<Lane*> free_;        // lanes without an operation
  std::deque<Operation> waiting_;  // while no lane is free
};

void UringService::start(Operation operation) {
  Lane* lane = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) {
      waiting_.push_back(std::move(operation));
      return;
    }
    lane = free_.back();
    free_.pop_back();
  }
  lane->operation = std::move(operation);
  begin(*lane);
}

void UringService::begin(Lane& lane) {
  Status fits = lane.operation.check();
  if (!fits || lane.operation.bytes == 0) {
    boost::asio::post(pool_, [this, &lane, fits = std::move(fits)] { finish(lane, fits); });
    return;
  }
  lane.file.assign(lane.operation.descriptor());
  transfer(lane);
}

void UringService::transfer(Lane& lane) {
  const Operation& operation = lane.operation;
  std::byte* data = operation.data + operation.done_bytes;
  auto handler = [this, &lane](const error_code& error, std::size_t bytes) { transferred(lane, error, bytes); };
  if (operation.input)
    lane.file.async_read_some_at(operation.position(), boost::asio::buffer(data, operation.left()), handler);
  else
    lane.file.async_write_some_at(operation.position(), boost::asio::const_buffer(data, operation.left()), handler);
}

void UringService::transferred(Lane& lane, const error_code& error, std::size_t bytes) {
  Operation& operation = lane.operation;
  operation.done_bytes += bytes;
  const bool again = error == boost::asio::error::interrupted || error == boost::asio::error::try_again;
  if (operation.left() > 0 && (again || (!error && bytes > 0))) return transfer(lane);
  lane.file.release();
  if (operation.left() == 0) {
    if (operation.output) operation.output->add_written(operation.bytes);
    finish(lane, ok());
  } else if (operation.output) {
    finish(lane, write_failed(operation.path(), operation.position(), operation.left(), error ? error.value() : EIO));
  } else if (!error || error == boost::asio::error::eof) {
    finish(lane, ends_early(operation.path(), operation.position(), operation.left()));
  } else {
    finish(lane, read_failed(operation.path(), operation.position(), operation.left(), error.value()));
  }
}

void UringService::finish(Lane& lane, Status status) {
  const Completion done = std::move(lane.operation.done);
  bool more = false;
  {
    const std::scoped_lock lock(mutex_);
    more = !waiting_.empty();
    if (more) {
      lane.operation = std::move(waiting_.front());
      waiting_.pop_front();
    } else {
      free_.push_back(&lane);
    }
  }
  if (more) begin(lane);
  done(std::move(status));
}

Error unavailable(const std::string& why) {
  return {ExitCode::kKernel, "", "io_uring cannot be used: " + why, "",
          "let ggufmill choose (auto), or ask for threads"};
}

}  // namespace

Result<std::unique_ptr<IoService>> start_uring_service() {
  if (const std::string why = why_no_uring(); !why.empty()) return unavailable(why);
  try {
    const BlockedSignals blocked;
    return std::make_unique<UringService>();
  } catch (const boost::system::system_error& error) {  // its ring is larger than that of the probe
    return unavailable(error.what());
  }
}

}  // namespace ggufmill
