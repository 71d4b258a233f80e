#include "tests/bench/scaling/no_io.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "pipeline/io/io_service.h"
#include "pipeline/io/source_scheme.h"
#include "pipeline/io/store_scheme.h"

namespace ggufmill::bench {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<double> file_rate{0};

class NoSource final : public ByteSource {
 public:
  explicit NoSource(const SourceFile& described) : description_(std::make_shared<const SourceFile>(described)) {}

  const SourceRef& describe() const override { return description_; }
  Status check_unchanged() const override { return ok(); }
  std::size_t request_bytes() const override { return 2 << 20; }  // as a local file
  Status read(std::uint64_t, std::span<std::byte>) const override { return ok(); }
  bool read_if_cached(std::uint64_t, std::span<std::byte>) const override { return true; }
  void start_read(IoService& io, std::uint64_t, std::span<std::byte>, Completion done) const override {
    io.wait_for([] { return ok(); }, std::move(done));
  }

 private:
  SourceRef description_;
};

class NoSourceScheme final : public SourceScheme {
 public:
  std::span<const std::string_view> names() const override {
    static constexpr std::array<std::string_view, 1> kNames{"nothing"};
    return kNames;
  }
  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    return open({path, 0, 0, 0}, IoMode::kCached, nullptr);
  }
  Result<std::shared_ptr<const ByteSource>> open(const SourceFile& described, IoMode,
                                                 const std::atomic<bool>*) const override {
    return std::shared_ptr<const ByteSource>(std::make_shared<NoSource>(described));
  }
  bool is_file(const std::string&) const override { return true; }
  Result<std::vector<std::string>> paths_in(const std::string&) const override { return std::vector<std::string>(); }
};

class NoFiles final : public OutputStore {
 public:
  explicit NoFiles(std::size_t files) : files_(files), free_at_(files) {}

  Status write(std::size_t, std::uint64_t, std::span<const std::byte>) override { return ok(); }
  void start_write(IoService& io, std::size_t file, std::uint64_t, std::span<const std::byte> from,
                   Completion done) override {
    const Clock::time_point end = end_of_write(file, from.size());
    io.wait_for(
        [end] {
          std::this_thread::sleep_until(end);
          return ok();
        },
        std::move(done));
  }
  bool is_readable() const override { return false; }
  Status read(std::size_t, std::uint64_t, std::span<std::byte>) const override { return ok(); }
  Result<std::vector<FileId>> seal(std::span<const std::uint64_t>) override { return std::vector<FileId>(files_); }
  Status publish() override { return ok(); }
  void keep() override {}
  Status leave() override { return ok(); }

 private:
  Clock::time_point end_of_write(std::size_t file, std::size_t bytes) {
    const Clock::time_point now = Clock::now();
    if (file_rate == 0) return now;
    const std::chrono::duration<double> length(static_cast<double>(bytes) / file_rate);
    const std::scoped_lock lock(mutex_);
    return free_at_[file] = std::max(now, free_at_[file]) + std::chrono::duration_cast<Clock::duration>(length);
  }

  std::size_t files_;
  std::mutex mutex_;
  std::vector<Clock::time_point> free_at_;  // when the writes so far have ended; guarded by the mutex
};

class NoStoreScheme final : public StoreScheme {
 public:
  explicit NoStoreScheme(std::string journals) : journals_(std::move(journals)) {}

  std::string_view name() const override { return "nothing"; }
  Result<std::unique_ptr<OutputStore>> create(std::vector<StoredFile> files, const StoreOptions&) const override {
    return std::unique_ptr<OutputStore>(std::make_unique<NoFiles>(files.size()));
  }
  Status check_target(const std::string&, bool) const override { return ok(); }
  std::string journal_path(const std::string&, const std::string& identity) const override {
    return journals_ + "/" + identity;
  }

 private:
  std::string journals_;
};

}  // namespace

void set_file_rate(double rate) { file_rate = rate; }

void add_no_io(const std::string& journals) {
  static const NoSourceScheme sources;
  static const NoStoreScheme stores(journals);
  source_schemes().push_back(&sources);
  store_schemes().push_back(&stores);
}

}  // namespace ggufmill::bench
