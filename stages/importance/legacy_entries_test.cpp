#include "pipeline/io/platform/filesystem.h"
#include "stages/importance/importance_file.h"

#include "stages/gguf/gguf.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

Result<ImportanceFile> open_legacy(const std::string& bytes) {
  const TempDir folder;
  const std::string path = folder.file("imatrix.dat");
  write_text(path, bytes);
  return open_importance(path, gguf_opener());
}

// Returns "WHAT, at byte 0x4, in PART".
std::string fault(const std::string& bytes) {
  const auto file = open_legacy(bytes);
  REQUIRE_FALSE(file);
  const Error& error = file.error();
  CHECK(error.code == ExitCode::kBadInput);
  const std::string prefix = "not a valid importance file: ";
  REQUIRE(error.what.find(prefix) == 0);
  return error.what.substr(prefix.size()) + ", " + error.detail;
}

std::string ints(std::initializer_list<std::int32_t> values) {
  GgufBytes bytes;
  for (const std::int32_t value : values) bytes.number(value);
  return bytes.bytes();
}

const std::string kEntry = legacy_entry("a", 2, {1, 2, 3});

}  // namespace

TEST_CASE("a legacy file has entries, chunks, and a data set") {
  const auto file =
      open_legacy(legacy_importance({kEntry, legacy_entry("b.weight", 0, {5})}, legacy_tail(100, "wiki.txt"))).value();
  REQUIRE(file.entries.size() == 2);
  CHECK(file.entries[0].name == "a");
  CHECK(file.entries[0].size() == 3);
  CHECK(file.entries[1].name == "b.weight");
  CHECK(file.chunks == 100);
  CHECK(file.datasets == std::vector<std::string>{"wiki.txt"});
}

TEST_CASE("older legacy files can end after the entries or the chunks") {
  const auto oldest = open_legacy(legacy_importance({kEntry})).value();
  CHECK(oldest.chunks == 0);
  CHECK(oldest.datasets.empty());
  CHECK(open_legacy(legacy_importance({kEntry}, ints({5}))).value().chunks == 5);
  CHECK(open_legacy(legacy_importance({kEntry}, legacy_tail(5, ""))).value().datasets.empty());
}

TEST_CASE("a data set name ends at a zero byte, and trailing data is ignored") {
  using namespace std::string_literals;
  CHECK(open_legacy(legacy_importance({kEntry}, legacy_tail(5, "wiki\0txt"s))).value().datasets.front() == "wiki");
  CHECK(open_legacy(legacy_importance({kEntry}, legacy_tail(5, "wiki") + "more")).value().datasets.front() == "wiki");
}

TEST_CASE("a legacy file truncated within one of its parts is refused") {
  const std::string body = legacy_importance({kEntry, legacy_entry("b", 1, {4})});
  const std::string whole = body + legacy_tail(9, "wiki");
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    CAPTURE(bytes);
    const auto file = open_legacy(whole.substr(0, bytes));
    const bool valid = bytes == body.size() || bytes == body.size() + 4;
    CHECK(file.has_value() == valid);
    if (!file) CHECK(file.error().code == ExitCode::kBadInput);
  }
}

TEST_CASE("impossible numbers of entries are refused") {
  CHECK(fault(ints({0})) == "the number of entries is 0, not 1 to 2147483647, at byte 0x0, in the beginning");
  CHECK(fault(ints({-1}) + kEntry) ==
        "the number of entries is -1, not 1 to 2147483647, at byte 0x0, in the beginning");
  CHECK(fault(ints({INT32_MAX}) + kEntry) ==
        "2147483647 entries do not fit in the remaining 25 bytes, at byte 0x0, in the beginning");
  CHECK(fault("") == "the file ends where the number of entries is expected, at byte 0x0, in the beginning");
}

TEST_CASE("impossible lengths of names are refused") {
  const std::string rest(20, 'x');
  CHECK(fault(ints({1, 0}) + rest) == "the length of the name is 0, not 1 to 65535, at byte 0x4, in entry 1 of 1");
  CHECK(fault(ints({1, -5}) + rest) == "the length of the name is -5, not 1 to 65535, at byte 0x4, in entry 1 of 1");
  CHECK(fault(ints({1, INT32_MAX}) + rest) ==
        "the length of the name is 2147483647, not 1 to 65535, at byte 0x4, in entry 1 of 1");
  CHECK(fault(ints({1, 65535}) + rest) ==
        "a string of 65535 bytes, but only 20 are left, at byte 0x8, in entry 1 of 1");
}

TEST_CASE("impossible names of entries are refused") {
  using namespace std::string_literals;
  const std::string reason = "the name is not valid UTF-8 without zero bytes, at byte 0x4, in entry 1 of 1";
  CHECK(fault(legacy_importance({legacy_entry("a\0b"s, 1, {1})})) == reason);
  CHECK(fault(legacy_importance({legacy_entry("\xff", 1, {1})})) == reason);
  CHECK(fault(legacy_importance({kEntry, kEntry})) == "duplicate entry for 'a', at byte 0x1d, in entry 2 of 2");
}

TEST_CASE("impossible numbers of values are refused") {
  const auto entry = [](std::int32_t calls, std::int32_t values) {
    return ints({1, 1}) + "a" + ints({calls, values, 0, 0});
  };
  CHECK(fault(entry(1, 0)) == "the number of values is 0, not 1 to 2147483647, at byte 0xd, in entry 1 of 1, 'a'");
  CHECK(fault(entry(1, -3)) == "the number of values is -3, not 1 to 2147483647, at byte 0xd, in entry 1 of 1, 'a'");
  CHECK(fault(entry(1, 3)) == "3 values, but only 8 bytes are left, at byte 0xd, in entry 1 of 1, 'a'");
  CHECK(fault(entry(1, INT32_MAX)) ==
        "2147483647 values, but only 8 bytes are left, at byte 0xd, in entry 1 of 1, 'a'");
  CHECK(fault(entry(-1, 2)) == "the number of calls is -1, not 0 to 2147483647, at byte 0x9, in entry 1 of 1, 'a'");
}

TEST_CASE("the data after the entries is checked") {
  const std::string body = legacy_importance({kEntry});
  CHECK(fault(body + ints({-1})) ==
        "the number of chunks is -1, not 0 to 2147483647, at byte 0x1d, in the data after the entries");
  CHECK(fault(body + ints({1, -1})) ==
        "the length of the data set name is -1, not 0 to 65535, at byte 0x21, in the data after the entries");
  CHECK(fault(body + ints({1, 9}) + "wiki") ==
        "a string of 9 bytes, but only 4 are left, at byte 0x25, in the data after the entries");
}

TEST_CASE("a file of countless entries is refused before it takes much memory") {
  std::vector<std::string> entries;
  entries.reserve(300'000);
  for (int i = 0; i < 300'000; ++i) entries.push_back(legacy_entry(std::to_string(i), 1, {1}));
  CHECK(fault(legacy_importance(entries)).find("more entries than any model has tensors") == 0);
}

TEST_CASE("opening a legacy file does not read its numbers") {
  const TempDir folder;
  const std::string path = folder.file("imatrix.dat");
  write_text(path, ints({1, 1}) + "a" + ints({1, INT32_MAX}));
  std::error_code error;
  fs::resize_file(path, 17 + 4 * std::uint64_t{INT32_MAX}, error);
  if (error) GGUFMILL_SKIP("no sparse files of 8 GB here");
  CHECK(open_importance(path, gguf_opener()).value().entries[0].size() == INT32_MAX);
}
