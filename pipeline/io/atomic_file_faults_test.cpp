// What SQLite does: for every k, the k-th system call fails.

#include <atomic>
#include <filesystem>

#include "pipeline/io/atomic_file.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/hooked_calls.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

using Names = std::vector<std::string>;

Status write_file(const std::string& path, const AtomicFile::Options& options) {
  BOOST_OUTCOME_TRY(std::unique_ptr<AtomicFile> file, AtomicFile::create(path, 10, options));
  BOOST_OUTCOME_TRY(file->write(2, as_bytes("data")));
  BOOST_OUTCOME_TRY(file->write(6, as_bytes("more")));
  return file->seal(as_bytes("HH"), 8);
}

}  // namespace

TEST_CASE("whichever call fails, the old file is whole and no temporary is left") {
  const int errno_value = GENERATE(EIO, ENOSPC);
  int k = 1, sealed = 0;
  for (bool reached = true; reached; ++k) {
    const TempDir folder;
    write_text(folder.file("in"), "weights");
    write_text(folder.file("out"), "old");
    Status status = ok();
    {
      FaultAt fault(k, errno_value);
      status = write_file(folder.file("out"), {true});
      reached = fault.reached();
    }
    CAPTURE(k, errno_value);
    CHECK(status.has_error() == reached);
    if (!status) CHECK(status.error().code == ExitCode::kIo);
    CHECK(names_in(folder.path()) == Names{"in", "out"});
    const std::string text = read_text(folder.file("out"));
    if (reached && text != "old") CHECK(++sealed == 1);  // only the last call, the fsync of the folder
    CHECK((text == "old" || text == "HHdatamore"));
  }
  CHECK(k > 12);
}

TEST_CASE("whichever call fails, no new file and no new folder is left") {
  int k = 1, sealed = 0;
  for (bool reached = true; reached; ++k) {
    const TempDir folder;
    Status status = ok();
    {
      FaultAt fault(k, EIO);
      status = write_file(folder.file("a/b/out"), {});
      reached = fault.reached();
    }
    CAPTURE(k);
    CHECK(status.has_error() == reached);
    if (!status) CHECK(status.error().code == ExitCode::kIo);
    const bool empty = names_in(folder.path()).empty();
    if (reached && !empty) CHECK(++sealed == 1);
    if (!empty) CHECK(names_in(folder.file("a/b")) == Names{"out"});
    if (!empty) CHECK(read_text(folder.file("a/b/out")) == "HHdatamore");
  }
  CHECK(k > 15);
}

TEST_CASE("whichever call is interrupted or short, the file is written") {
  const int outcome = GENERATE(EINTR, kHalf);
  int k = 1;
  for (bool reached = true; reached; ++k) {
    const TempDir folder;
    FaultAt fault(k, outcome);
    const Status status = write_file(folder.file("a/out"), {});
    reached = fault.reached();
    CAPTURE(k, outcome);
    CHECK(status);
    CHECK(read_text(folder.file("a/out")) == "HHdatamore");
  }
}

TEST_CASE("an interrupted removal is made again: no temporary and no new folder is left") {
  const TempDir folder;
  auto file = AtomicFile::create(folder.file("a/b/out"), 10, {});
  REQUIRE(file);
  {
    std::atomic<unsigned> calls{0};
    const HookedCalls interrupted([&] { return ++calls % 2 == 1 ? EINTR : 0; });
    file.value().reset();
  }
  CHECK(names_in(folder.path()).empty());
}
