// Background I/O using io_uring, through Boost.Asio.

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/random_access_file.hpp>
#include <boost/system/system_error.hpp>
#include <cerrno>
#include <deque>
#include <mutex>
#include <vector>

#include "pipeline/io/platform/uring.h"
#include "pipeline/io/services.h"
#include "pipeline/io/transfer.h"

namespace ggufmill {
namespace {

using boost::system::error_code;

// Number of threads that run completions; two, so that one can submit work to the kernel while the other runs a
// completion.
constexpr std::size_t kRingThreads = 2;
// Maximum number of operations in the kernel at a time; others are queued.
constexpr std::size_t kLanes = 16;

// One read or write of `memory` at `offset`.
struct Operation {
  const InputFile* input = nullptr;  // exactly one of `input` and `output` is set
  WriteTarget* output = nullptr;
  std::uint64_t offset = 0;
  std::span<std::byte> memory;  // only read from if `output` is set
  IoService::Completion done;
  Transfer left;  // remainder to request from the kernel; the first bytes may be done already

  const std::string& path() const { return input ? input->path() : output->path(); }
  Status begin() {
    BOOST_OUTCOME_TRY(left, input ? input->begin_read(offset, memory) : output->begin_write(offset, memory));
    return ok();
  }
  void end() const { input ? input->end_read(offset, memory.size()) : output->end_write(offset, memory.size()); }
};

// Asio serializes the reads of a file object, and its writes as well. A lane is a file object that is assigned the
// descriptor of one operation at a time, so that reads of one file can overlap.
struct Lane {
  explicit Lane(boost::asio::io_context& context) : file(context) {}
  boost::asio::basic_random_access_file<boost::asio::io_context::executor_type> file;
  Operation operation;
};

class UringService final : public IoService {
 public:
  UringService() {
    free_.reserve(kLanes);  // so that returning a lane never allocates
    for (std::size_t i = 0; i < kLanes; ++i) free_.push_back(&lanes_.emplace_back(threads_.context()));
  }

  ~UringService() override { threads_.join(); }  // also waits for operations started by completions; needs the lanes

  std::string name() const override { return "io_uring"; }
  void read(const InputFile& file, std::uint64_t offset, std::span<std::byte> into, Completion done) override {
    start({&file, nullptr, offset, into, std::move(done), {}});
  }
  void write(WriteTarget& file, std::uint64_t offset, std::span<const std::byte> from, Completion done) override {
    start({nullptr, &file, offset, {const_cast<std::byte*>(from.data()), from.size()}, std::move(done), {}});
  }
  void wait_for(std::function<Status()> work, Completion done) override {
    waiting_threads_.start(threads_, std::move(work), std::move(done));
  }

 private:
  void start(Operation operation);
  void begin(Lane& lane);
  void transfer(Lane& lane);
  // Only a completion could throw here, and completions must not.
  // NOLINTNEXTLINE(bugprone-exception-escape)
  void transferred(Lane& lane, const error_code& error, std::size_t bytes) noexcept;
  bool goes_on(Lane& lane, const error_code& error, std::size_t bytes);
  Status end_of(const Lane& lane, const error_code& error) const;
  void finish(Lane& lane, Status status);
  void begin_next(Lane& lane);

  WaitingThreads waiting_threads_;
  IoThreads threads_{kRingThreads};
  std::deque<Lane> lanes_;
  std::mutex mutex_;               // guards the members below
  std::vector<Lane*> free_;        // lanes without an operation
  std::deque<Operation> waiting_;  // queued while no lane is free
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
  try {
    begin(*lane);
  } catch (...) {
    begin_next(*lane);
    throw;
  }
}

// If this throws, nothing has been started.
void UringService::begin(Lane& lane) {
  Status begun = lane.operation.begin();
  if (!begun || lane.operation.left.least == 0) {
    if (begun) lane.operation.end();
    boost::asio::post(threads_.context(), [this, &lane, begun = std::move(begun)] { finish(lane, begun); });
    return;
  }
  lane.file.assign(lane.operation.left.descriptor);
  try {
    transfer(lane);
  } catch (...) {
    lane.file.release();
    throw;
  }
}

void UringService::transfer(Lane& lane) {
  const Transfer& left = lane.operation.left;
  auto handler = [this, &lane](const error_code& error, std::size_t bytes) { transferred(lane, error, bytes); };
  if (lane.operation.input)
    lane.file.async_read_some_at(left.offset, boost::asio::buffer(left.data, left.bytes), handler);
  else
    lane.file.async_write_some_at(left.offset, boost::asio::const_buffer(left.data, left.bytes), handler);
}

// NOLINTNEXTLINE(bugprone-exception-escape)
void UringService::transferred(Lane& lane, const error_code& error, std::size_t bytes) noexcept {
  Status status = ok();
  try {
    if (goes_on(lane, error, bytes)) return;
    status = end_of(lane, error);
  } catch (...) {
    status = error_of_exception();
  }
  lane.file.release();
  finish(lane, std::move(status));
}

// Requests the rest of an incomplete transfer; returns true if it did.
bool UringService::goes_on(Lane& lane, const error_code& error, std::size_t bytes) {
  Transfer& left = lane.operation.left;
  left = left.after(bytes);
  const bool again = error == boost::asio::error::interrupted || error == boost::asio::error::try_again;
  if (left.least == 0 || (!again && (error || bytes == 0))) return false;
  transfer(lane);
  return true;
}

Status UringService::end_of(const Lane& lane, const error_code& error) const {
  const Operation& operation = lane.operation;
  const Transfer& left = operation.left;
  if (left.least == 0) return operation.end(), ok();
  if (operation.output) return write_failed(operation.path(), left.offset, left.least, error ? error.value() : EIO);
  if (!error || error == boost::asio::error::eof) return ends_early(operation.path(), left.offset, left.least);
  return read_failed(operation.path(), left.offset, left.least, error.value());
}

void UringService::finish(Lane& lane, Status status) {
  const Completion done = std::move(lane.operation.done);
  begin_next(lane);
  done(std::move(status));
}

// Gives the lane to the next queued operation, or frees it.
void UringService::begin_next(Lane& lane) {
  while (true) {
    {
      const std::scoped_lock lock(mutex_);
      if (waiting_.empty()) return free_.push_back(&lane);
      lane.operation = std::move(waiting_.front());
      waiting_.pop_front();
    }
    try {
      return begin(lane);
    } catch (...) {
      const Completion done = std::move(lane.operation.done);
      done(error_of_exception());
    }
  }
}

Error unavailable(const std::string& why) {
  return {ExitCode::kKernel, "", "io_uring cannot be used: " + why, "", "let ggufmill choose (auto), or use threads"};
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
