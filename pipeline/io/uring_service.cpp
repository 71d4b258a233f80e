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

// One read or write of `memory` at `offset`.
struct Operation {
  const InputFile* input = nullptr;  // one of the two
  AtomicFile* output = nullptr;
  std::uint64_t offset = 0;
  std::span<std::byte> memory;  // only read from where `output` is set
  IoService::Completion done;
  Transfer left;  // to ask the kernel for; the first bytes may be done already

  const std::string& path() const { return input ? input->path() : output->path(); }
  Status begin() {
    BOOST_OUTCOME_TRY(left, input ? input->begin_read(offset, memory) : output->begin_write(offset, memory));
    return ok();
  }
  void end() const { input ? input->end_read(offset, memory.size()) : output->end_write(offset, memory.size()); }
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
    start({&file, nullptr, offset, into, std::move(done), {}});
  }
  void write(AtomicFile& file, std::uint64_t offset, std::span<const std::byte> from, Completion done) override {
    start({nullptr, &file, offset, {const_cast<std::byte*>(from.data()), from.size()}, std::move(done), {}});
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
  Status begun = lane.operation.begin();
  if (!begun || lane.operation.left.least == 0) {
    if (begun) lane.operation.end();
    boost::asio::post(pool_, [this, &lane, begun = std::move(begun)] { finish(lane, begun); });
    return;
  }
  lane.file.assign(lane.operation.left.descriptor);
  transfer(lane);
}

void UringService::transfer(Lane& lane) {
  const Transfer& left = lane.operation.left;
  auto handler = [this, &lane](const error_code& error, std::size_t bytes) { transferred(lane, error, bytes); };
  if (lane.operation.input)
    lane.file.async_read_some_at(left.offset, boost::asio::buffer(left.data, left.bytes), handler);
  else
    lane.file.async_write_some_at(left.offset, boost::asio::const_buffer(left.data, left.bytes), handler);
}

void UringService::transferred(Lane& lane, const error_code& error, std::size_t bytes) {
  Operation& operation = lane.operation;
  Transfer& left = operation.left;
  left = left.after(bytes);
  const bool again = error == boost::asio::error::interrupted || error == boost::asio::error::try_again;
  if (left.least > 0 && (again || (!error && bytes > 0))) return transfer(lane);
  lane.file.release();
  if (left.least == 0) {
    operation.end();
    finish(lane, ok());
  } else if (operation.output) {
    finish(lane, write_failed(operation.path(), left.offset, left.least, error ? error.value() : EIO));
  } else if (!error || error == boost::asio::error::eof) {
    finish(lane, ends_early(operation.path(), left.offset, left.least));
  } else {
    finish(lane, read_failed(operation.path(), left.offset, left.least, error.value()));
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
