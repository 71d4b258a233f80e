// Cached, streaming and direct I/O produce the same bytes.
#include "pipeline/core/io_mode.h"

#include <algorithm>
#include <cstring>
#include <future>
#include <random>

#include "pipeline/io/io_service.h"
#include "pipeline/io/memory.h"
#include "pipeline/io/platform/system.h"
#include "pipeline/io/platform/uring.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

std::string mode_pattern(std::size_t bytes) {
  std::string text(bytes, 0);
  std::mt19937 random(1);
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// Returns the modes that the file system of `folder` supports.
std::vector<IoMode> modes(const TempDir& folder) {
  write_text(folder.file("probe"), "x");
  if (InputFile::open(folder.file("probe"), IoMode::kDirect))
    return {IoMode::kCached, IoMode::kStreaming, IoMode::kDirect};
  WARN("direct I/O is skipped: the file system of temporary files does not have it");
  return {IoMode::kCached, IoMode::kStreaming};
}

std::vector<IoKind> io_kinds() {
  return why_no_uring().empty() ? std::vector{IoKind::kThreads, IoKind::kUring} : std::vector{IoKind::kThreads};
}

// A range of a file, not aligned to blocks; some are short.
struct Range {
  std::size_t offset, bytes;
};
constexpr Range kRanges[] = {{0, 100000}, {100000, 32}, {100032, 5000}, {105032, 4096 * 9}, {141896, 158104}};

}  // namespace

TEST_CASE("files are read at any position in every mode") {
  const TempDir folder;
  const std::string text = mode_pattern(300000);
  write_text(folder.file("in"), text);
  for (const IoMode mode : modes(folder))
    for (const IoKind kind : io_kinds()) {
      const auto file = InputFile::open(folder.file("in"), mode).value();
      const auto service = IoService::start(kind).value();
      for (const Range& range : kRanges) {
        const Buffer into(range.bytes, range.offset % kDirectAlignment);
        std::promise<Status> done;
        service->read(*file, range.offset, into.span(), [&](Status status) { done.set_value(std::move(status)); });
        CAPTURE(mode, kind, range.offset);
        REQUIRE(done.get_future().get());
        CHECK(std::ranges::equal(into.span(), as_bytes(text).subspan(range.offset, range.bytes)));
      }
    }
}

TEST_CASE("files are written at any position in every mode") {
  const TempDir folder;
  const std::string text = mode_pattern(300000);
  for (const IoMode mode : modes(folder))
    for (const IoKind kind : io_kinds()) {
      auto file = AtomicFile::create(folder.file("out"), 300032, {true, mode}).value();
      const auto service = IoService::start(kind).value();
      for (const Range& range : kRanges) {
        const std::size_t offset = 32 + range.offset;
        // 7: not aligned like the file
        const std::size_t phase = range.offset == 105032 ? 7 : offset % kDirectAlignment;
        const Buffer from(range.bytes, phase);
        std::memcpy(from.data(), text.data() + range.offset, range.bytes);
        std::promise<Status> done;
        service->write(*file, offset, from.span(), [&](Status status) { done.set_value(std::move(status)); });
        REQUIRE(done.get_future().get());
      }
      REQUIRE(file->seal(as_bytes(mode_pattern(32)), 300000));
      CAPTURE(mode, kind);
      CHECK((read_text(folder.file("out")) == mode_pattern(32) + text));
    }
}

TEST_CASE("a file that ends too early is reported in every mode") {
  const TempDir folder;
  for (const IoMode mode : modes(folder)) {
    write_text(folder.file("in"), mode_pattern(10000));
    const auto file = InputFile::open(folder.file("in"), mode).value();
    const Buffer into(5000, 5);
    CHECK(file->read(8197, into.span()).error().what == "the file ends before the 5000 bytes at byte 0x2005");
  }
}

TEST_CASE("direct I/O is refused if the file system does not support it") {
  if (!kIsPosix) GGUFMILL_SKIP("no file is known whose file system does not support it");
  const auto file = InputFile::open("/proc/self/status", IoMode::kDirect);
  REQUIRE_FALSE(file);
  CHECK(file.error().code == ExitCode::kIo);
  CHECK(file.error().detail == "the file system does not support it");
}
