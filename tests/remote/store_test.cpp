// The store of objects in buckets under runs that write in every order, with as little memory as the plan needs.

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/remote/remote_stores.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <random>
#include <semaphore>

#include "pipeline/io/io_service.h"
#include "pipeline/io/remote/part_map.h"
#include "tests/remote/test_server.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"

using namespace ggufmill;
using remote::s3_store;
namespace {

// Two files with tensors, written in an order of their own: each unit's rows go to one place in each file.
struct Job {
  explicit Job(unsigned seed) : random(seed) {
    constexpr std::uint64_t kGap = 32;
    std::vector<std::uint64_t> sizes;
    for (int t = 0; t < 24; ++t) sizes.push_back(std::uniform_int_distribution<std::uint64_t>(1, 2'500)(random) * 1024);
    std::vector<std::size_t> order(sizes.size());
    std::iota(order.begin(), order.end(), 0);
    std::vector<std::uint64_t> offsets(sizes.size());
    for (std::size_t file = 0; file < 2; ++file) {
      std::ranges::shuffle(order, random);
      std::uint64_t end = header.size();
      for (const std::size_t tensor : order) {
        offsets[tensor] = end + kGap;
        end = offsets[tensor] + sizes[tensor];
      }
      contents.emplace_back(end + kGap, '\0');
      header.copy(contents[file].data(), header.size());
      for (std::size_t tensor = 0; tensor < sizes.size(); ++tensor)
        places.push_back({file, offsets[tensor], sizes[tensor], 0, sizes[tensor] / 1024});
    }
    // By unit: the rows of a tensor are those of both files.
    std::uint64_t row = 0;
    for (std::size_t tensor = 0; tensor < sizes.size(); ++tensor)
      for (std::size_t file = 0; file < 2; ++file) {
        PlannedWrite& write = places[file * sizes.size() + tensor];
        write.row = row;
        if (file == 1) row += write.rows;
      }
    std::ranges::stable_sort(places, {}, &PlannedWrite::row);
    for (const PlannedWrite& write : places)
      for (std::uint64_t i = 0; i < write.bytes; ++i)
        contents[write.file][write.offset + i] = static_cast<char>(random() >> 24);
  }

  std::vector<StoredFile> files() const {
    std::vector<StoredFile> all;
    for (std::size_t i = 0; i < contents.size(); ++i)
      all.push_back({fmt::format("s3://models/{}.bin", i), header, contents[i].size()});
    return all;
  }
  StoreOptions options(std::uint64_t memory) const {
    StoreOptions options;
    options.identity = "0123456789abcdef0123456789abcdef";
    options.memory = memory;
    options.writes = places;
    return options;
  }
  std::uint64_t most_open() const { return remote::PartMap(files(), places).most_open(); }
  std::vector<std::uint64_t> written() const {
    std::vector<std::uint64_t> bytes(contents.size());
    for (const PlannedWrite& write : places) bytes[write.file] += write.bytes;
    return bytes;
  }

  // Writes as the engine does: slabs of rows are started in order, and some of them are in flight at a time. Units that
  // `skips` returns true for are not written.
  Status write(OutputStore& store, const std::function<bool(const PlannedWrite&)>& skips = {}) {
    constexpr int kInFlight = 12;
    std::counting_semaphore<kInFlight> slabs(kInFlight);
    std::mutex mutex;
    Status status = ok();
    {
      const auto io = IoService::start(IoKind::kThreads).value();
      for (std::size_t i = 0; i < places.size(); i += 2) {
        if (skips && skips(places[i]) && skips(places[i + 1])) continue;
        constexpr std::uint64_t kSlabRows = 512;
        for (std::uint64_t first = 0; first < places[i].rows; first += kSlabRows) {
          const std::uint64_t rows = std::min(kSlabRows, places[i].rows - first);
          slabs.acquire();
          const auto left = std::make_shared<std::atomic<int>>(2);
          for (const PlannedWrite* const place : {&places[i], &places[i + 1]}) {
            const std::uint64_t at = place->offset + first * 1024;
            store.start_write(*io, place->file, at,
                              std::as_bytes(std::span(contents[place->file]).subspan(at, rows * 1024)),
                              [&, left](const Status& one) {
                                {
                                  const std::scoped_lock lock(mutex);
                                  if (!one && status) status = one;
                                }
                                if (--*left == 0) slabs.release();
                              });
          }
        }
      }
      for (int i = 0; i < kInFlight; ++i) slabs.acquire();
    }
    return status;
  }

  std::mt19937 random;
  std::string header = std::string(1000, 'h');
  std::vector<std::string> contents;
  std::vector<PlannedWrite> places;
};

// A server with the bucket `models`, and the settings of this process for it.
class Server {
 public:
  Server() {
    fs::create_directories(server.file("s3/models"));
    ::setenv("AWS_ENDPOINT_URL_S3", server.host().c_str(), 1);
    ::setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    ::setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", 1);
    ::setenv("XDG_STATE_HOME", state_.path().c_str(), 1);
    ::setenv("no_proxy", "*", 1);
  }
  void check(const Job& job) {
    for (std::size_t i = 0; i < job.contents.size(); ++i) {
      const bool same = read_text(server.file(fmt::format("s3/models/{}.bin", i))) == job.contents[i];
      CHECK(same);
    }
    check_clean();
  }
  void check_clean() {
    CHECK(read_text(server.file("uploads.txt")).empty());
    CHECK(names_in(state_.file("ggufmill/uploads")).empty());
  }
  void set_fault(const std::string& text) { write_text(server.file("fault"), text); }

  TestServer server;

 private:
  TempDir state_;
};

}  // namespace

TEST_CASE("every order of writes completes with the least memory, and gives the same bytes") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Server server;
  const unsigned seed = GENERATE(1u, 2u, 3u);
  CAPTURE(seed);
  Job job(seed);
  const TempDir spool;
  StoreOptions options = job.options(job.most_open());
  SECTION("in memory") {}
  SECTION("partly in the spool") {
    options.memory = 2 * remote::kMinPartBytes;
    options.spool = {spool.path(), job.most_open() - remote::kMinPartBytes};
  }
  auto store = s3_store().create(job.files(), options);
  if (!store) FAIL(render(store.error()));
  CHECK(store.value()->memory() <= options.memory);
  const Status written = job.write(*store.value());
  if (!written) FAIL(render(written.error()));
  const auto sealed = store.value()->seal(job.written());
  if (!sealed) FAIL(render(sealed.error()));
  const Status published = store.value()->publish();
  if (!published) FAIL(render(published.error()));
  server.check(job);
  CHECK(names_in(spool.path()).empty());
}

TEST_CASE("less memory than the open parts need is refused with numbers") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Server server;
  const Job job(1);
  const auto refused = s3_store().create(job.files(), job.options(job.most_open() - 1));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ExitCode::kUsage);
  CHECK(refused.error().help.find("spool") != std::string::npos);
  CHECK_FALSE(fs::exists(server.server.file("uploads.txt")));
}

TEST_CASE("a write fails with the error of the upload, and a store that is dropped aborts its uploads") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Server server;
  Job job(2);
  server.set_fault("full 3 1000 part");
  {
    auto store = s3_store().create(job.files(), job.options(job.most_open()));
    REQUIRE(store);
    Status status = job.write(*store.value());
    if (status)
      if (auto sealed = store.value()->seal(job.written()); !sealed) status = sealed.error();
    REQUIRE_FALSE(status);
    CHECK(status.error().what.find("the bucket is full") != std::string::npos);
  }
  server.check_clean();
}

TEST_CASE("a store that is kept holds what was uploaded, and the next run writes the rest") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Server server;
  Job job(3);
  server.set_fault("full 4 1000 part");
  {
    auto store = s3_store().create(job.files(), job.options(job.most_open()));
    REQUIRE(store);
    const Status status = job.write(*store.value());
    CHECK((!status || !store.value()->seal(job.written())));
    store.value()->keep();
  }
  server.set_fault("");
  StoreOptions options = job.options(job.most_open());
  CHECK(s3_store().why_not_attachable(job.files()[0], options.identity).empty());
  auto store = s3_store().attach(job.files(), options);
  if (!store) FAIL(render(store.error()));
  std::vector<std::uint64_t> written(2);
  std::size_t held = 0;
  const auto skips = [&](const PlannedWrite& write) {
    return store.value()->holds(write.file, write.offset, write.bytes);
  };
  for (std::size_t i = 0; i < job.places.size(); i += 2) {
    const bool skipped = skips(job.places[i]) && skips(job.places[i + 1]);
    held += skipped ? 1 : 0;
    for (const PlannedWrite* const place : {&job.places[i], &job.places[i + 1]})
      if (!skipped) written[place->file] += place->bytes;
  }
  CAPTURE(held);
  REQUIRE(job.write(*store.value(), skips));
  const auto sealed = store.value()->seal(written);
  if (!sealed) FAIL(render(sealed.error()));
  REQUIRE(store.value()->publish());
  server.check(job);
}

TEST_CASE("bytes that are missing or counted wrong are a defect") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Server server;
  Job job(1);
  auto store = s3_store().create(job.files(), job.options(job.most_open()));
  REQUIRE(store);
  const auto wrong = store.value()->seal(job.written());
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == ExitCode::kInternal);
  const auto missing = store.value()->seal(std::vector<std::uint64_t>(2));
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ExitCode::kInternal);
}
