#include "pipeline/io/write_gate.h"

#include <array>
#include <atomic>
#include <cmath>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

// Throughputs of 1, 2, 4, 8 and 16 writers.
using Throughputs = std::array<double, 5>;

double of(const Throughputs& throughputs, unsigned writers) {
  return throughputs[static_cast<std::size_t>(std::lround(std::log2(writers)))];
}

// Returns how many of `rounds` measurements, made with +-3 % of noise, each number of writers got.
std::array<int, 5> used(const Throughputs& throughputs, int rounds) {
  std::mt19937 random(57);
  std::uniform_real_distribution<> noise(.97, 1.03);
  std::array<int, 5> counts{};
  WriterCount count;
  for (int i = 0; i < rounds; ++i) {
    ++counts[static_cast<std::size_t>(std::lround(std::log2(count.value())))];
    count.measured(of(throughputs, count.value()) * noise(random));
  }
  return counts;
}

// Calls completions when it is told to, so that a test decides what is written at a time.
class HeldService final : public IoService {
 public:
  std::string name() const override { return "held"; }
  void read(const InputFile&, std::uint64_t, std::span<std::byte>, Completion) override {}
  void write(WriteTarget&, std::uint64_t offset, std::span<const std::byte>, Completion done) override {
    if (offset == refused) throw std::bad_alloc();
    started.emplace_back(offset, std::move(done));
  }
  void wait_for(std::function<Status()>, Completion) override {}
  // Ends the write that began first.
  void end_one(Status status = ok()) {
    auto [offset, done] = std::move(started.front());
    started.erase(started.begin());
    done(std::move(status));
  }

  std::vector<std::pair<std::uint64_t, Completion>> started;
  std::uint64_t refused = 1;  // the offset at which write() throws; 1: none
};

class NoFile final : public WriteTarget {
 public:
  const std::string& path() const override { return path_; }
  Result<Transfer> begin_write(std::uint64_t, std::span<const std::byte>) override {
    throw std::logic_error("written");
  }
  void end_write(std::uint64_t, std::size_t) override {}

 private:
  const std::string path_ = "no file";
};

}  // namespace

TEST_CASE("one writer stays alone where more only wait for one another") {
  CHECK(used({3.0, 3.0, 2.9, 2.5, 2.3}, 1000)[0] > 970);
}

TEST_CASE("as many writers are used as raise the throughput by a tenth each time") {
  CHECK(used({1.5, 2.8, 3.8, 4.0, 4.1}, 1000)[2] > 960);
  CHECK(used({.2, .4, .8, 1.6, 3.2}, 1000)[4] > 960);
}

TEST_CASE("a file system that changes is noticed") {
  WriterCount count;
  const Throughputs alone{2, 2, 2, 2, 2}, together{1, 2, 4, 8, 16};
  for (int i = 0; i < 100; ++i) count.measured(of(alone, count.value()));
  CHECK(count.value() == 1);
  for (int i = 0; i < 100; ++i) count.measured(of(together, count.value()));
  CHECK(count.value() == 16);
  for (int i = 0; i < 1000; ++i) count.measured(of(alone, count.value()));
  CHECK(count.value() == 1);
}

TEST_CASE("writes of a file start in order, as one ends, and each ends once") {
  HeldService io;
  NoFile file;
  WriteGate gate;
  std::vector<std::uint64_t> ended;
  const std::vector<std::byte> bytes(8);
  for (std::uint64_t i = 0; i < 5; ++i)
    gate.start(io, file, i * 8, bytes, [&ended, i](const Status& status) {
      CHECK(status.has_value() == (i != 2));
      ended.push_back(i);
    });
  for (std::uint64_t i = 0; i < 5; ++i) {
    REQUIRE(io.started.size() == 1);
    CHECK(io.started.front().first == i * 8);
    io.end_one(i == 2 ? Status(Error{ExitCode::kIo, "", "no", "", ""}) : ok());
  }
  CHECK(io.started.empty());
  CHECK(ended == std::vector<std::uint64_t>{0, 1, 2, 3, 4});
}

TEST_CASE("a write that cannot start fails, and the next one starts") {
  HeldService io;
  NoFile file;
  WriteGate gate;
  std::vector<bool> results;
  const std::vector<std::byte> bytes(8);
  const auto start = [&](std::uint64_t offset) {
    gate.start(io, file, offset, bytes, [&](const Status& status) { results.push_back(status.has_value()); });
  };
  io.refused = 0;
  CHECK_THROWS_AS(start(0), std::bad_alloc);  // the caller's: nothing has been started
  CHECK(results.empty());
  io.refused = 8;
  for (const std::uint64_t offset : {24, 8, 16}) start(offset);
  io.end_one();
  CHECK(results == std::vector<bool>{false, true});  // the waiting one is told before the one that made room
  io.end_one();
  CHECK(results == std::vector<bool>{false, true, true});
  CHECK(io.started.empty());
}

TEST_CASE("work in the place of a write waits for all writes, and lets those after it wait") {
  HeldService io;
  NoFile file;
  WriteGate gate;
  const std::vector<std::byte> bytes(8);
  const auto start = [&](std::uint64_t offset) { gate.start(io, file, offset, bytes, [](const Status&) {}); };
  start(0);
  start(8);
  std::atomic<bool> is_done{false};
  std::thread worker([&] {
    CHECK(gate.when_idle([&] {
      CHECK(io.started.empty());
      start(16);
      CHECK(io.started.empty());
      is_done = true;
    }));
  });
  io.end_one();
  CHECK_FALSE(is_done);
  CHECK(io.started.size() == 1);
  io.end_one();
  worker.join();
  CHECK(is_done);
  REQUIRE(io.started.size() == 1);
  CHECK(io.started.front().first == 16);
  io.end_one();
}

TEST_CASE("work that waits for a write that never ends can be cancelled") {
  HeldService io;
  NoFile file;
  WriteGate gate;
  const std::vector<std::byte> bytes(8);
  gate.start(io, file, 0, bytes, [](const Status&) {});
  std::thread worker([&] { CHECK_FALSE(gate.when_idle([] { FAIL("the work was done"); })); });
  gate.cancel();
  worker.join();
  CHECK_FALSE(gate.when_idle([] { FAIL("the work was done"); }));
  io.end_one();
}
