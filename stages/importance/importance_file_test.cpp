// Tests that weights are bit-identical to those the reference computes from the same file.
#include <cmath>
#include <limits>

#include "stages/gguf/gguf.h"
#include "stages/importance/importance_file.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

Result<std::string> print_of(const ImportanceEntry& entry) {
  return fingerprint_weights(entry.size(),
                             [&](std::uint64_t first, std::span<float> into) { return entry.weights(first, into); });
}

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Floats = std::vector<float>;

// The only entry of a file, and the folder that contains the file.
struct EntryFile {
  TempDir folder;
  ImportanceEntry entry;

  explicit EntryFile(const std::string& bytes) {
    const std::string path = folder.file("imatrix");
    write_text(path, bytes);
    entry = std::move(open_importance(path, gguf_opener()).value().entries.at(0));
  }
  static EntryFile gguf(const Floats& sums, const Floats& counts, bool big_endian = false) {
    GgufBuilder file = gguf_importance();
    file.big_endian = big_endian;
    add_entry(file, "t", sums, counts);
    return EntryFile(file.build());
  }
  static EntryFile legacy(const Floats& sums, std::int32_t calls) {
    return EntryFile(legacy_importance({legacy_entry("t", calls, sums)}));
  }

  Floats weights(std::uint64_t first, std::uint64_t count) const {
    Floats weights(count);
    REQUIRE(entry.weights(first, weights));
    return weights;
  }
  Floats all() const { return weights(0, entry.size()); }
  std::string fault() const {
    const Result<std::string> print = print_of(entry);
    REQUIRE_FALSE(print);
    CHECK(print.error().code == ExitCode::kBadInput);
    return print.error().what;
  }
};

}  // namespace

TEST_CASE("sums are divided by the count of their expert") {
  CHECK(EntryFile::gguf({1, 2, 3, 10, 0, 5}, {3, 7}).all() ==
        Floats{1.0f / 3.0f, 2.0f / 3.0f, 3.0f / 3.0f, 10.0f / 7.0f, 0.0f / 7.0f, 5.0f / 7.0f});
}

TEST_CASE("an expert that saw no token weighs 1 everywhere, whatever its sums") {
  CHECK(EntryFile::gguf({1, 2, 3, kNaN, -1, 5}, {2, 0, -3}).all() == Floats{0.5f, 1, 1, 1, 1, 1});
}

TEST_CASE("counts are rounded to integers, halves away from zero") {
  CHECK(EntryFile::gguf({1, 1, 1}, {2.5f, 0.5f, 0.49f}).all() == Floats{1.0f / 3.0f, 1, 1});
}

TEST_CASE("one count can apply to all experts") {
  CHECK(EntryFile::gguf({8, 4, 2, 1}, {4}).all() == Floats{2, 1, 0.5f, 0.25f});
}

TEST_CASE("legacy sums are divided by the calls") {
  CHECK(EntryFile::legacy({1, 2, 10}, 3).all() == Floats{1.0f / 3.0f, 2.0f / 3.0f, 10.0f / 3.0f});
  CHECK(EntryFile::legacy({1, 2, 10}, 16777217).all()[2] == 10.0f / 16777216.0f);
}

TEST_CASE("legacy sums without calls are the weights") {
  CHECK(EntryFile::legacy({1, 2, 10}, 0).all() == Floats{1, 2, 10});
}

TEST_CASE("any part of the weights can be read") {
  const EntryFile file = EntryFile::gguf({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {3, 0, 7, 11});
  const Floats all = file.all();
  for (std::size_t first = 0; first <= all.size(); ++first)
    for (std::size_t count = 0; first + count <= all.size(); ++count)
      REQUIRE(file.weights(first, count) == Floats(all.begin() + first, all.begin() + first + count));
}

TEST_CASE("big-endian files give the same weights") {
  CHECK(EntryFile::gguf({1, 2, 3, 10}, {3, 7}, true).all() == EntryFile::gguf({1, 2, 3, 10}, {3, 7}).all());
}

TEST_CASE("numbers that are not valid weights are refused with their position") {
  CHECK(EntryFile::legacy({1, kNaN}, 4).fault() == "the entry of tensor 't' contains NaN: value 1");
  CHECK(EntryFile::legacy({-kInfinity}, 4).fault() == "the entry of tensor 't' contains an infinite number: value 0");
  CHECK(EntryFile::gguf({1, 2, -1e-30f}, {4}).fault() == "the entry of tensor 't' contains a negative number: value 2");
  CHECK(EntryFile::gguf({1, 2, 3}, {4, kNaN, 4}).fault() == "the entry of tensor 't' contains NaN: count 1");
  CHECK(EntryFile::gguf({1, 2}, {4, kInfinity}).fault() ==
        "the entry of tensor 't' contains an infinite number: count 1");
  CHECK(EntryFile::gguf({1, 2}, {4, 1e30f}).fault() ==
        "the entry of tensor 't' contains a number that is too large: count 1");
}

TEST_CASE("a negative zero and the largest number are weights") {
  CHECK(print_of(EntryFile::legacy({-0.0f, std::numeric_limits<float>::max()}, 1).entry));
}

TEST_CASE("numbers after the first piece are checked too") {
  Floats sums(200'000, 1.0f);
  sums[199'999] = kNaN;
  CHECK(EntryFile::legacy(sums, 1).fault() == "the entry of tensor 't' contains NaN: value 199999");
  sums[199'999] = 1.0f;
  Floats counts(100'000, 2.0f);
  counts[77'777] = kNaN;
  CHECK(EntryFile::gguf(sums, counts).fault() == "the entry of tensor 't' contains NaN: count 77777");
}

TEST_CASE("equal weights have equal fingerprints in any file") {
  const std::string print = print_of(EntryFile::gguf({2, 4, 6}, {2}).entry).value();
  CHECK(print.size() == 32);
  CHECK(print_of(EntryFile::legacy({1, 2, 3}, 0).entry).value() == print);
  CHECK(print_of(EntryFile::legacy({1, 2, 3, 0}, 0).entry).value() != print);
  CHECK(print_of(EntryFile::legacy({1, 3, 2}, 0).entry).value() != print);
}

TEST_CASE("unknown values are not recorded, and strings are truncated to 127 bytes") {
  const ImportanceSummary summary{std::string(200, 'p'), {}, 3, 0};
  const std::vector<MetadataEntry> entries = metadata_of(summary);
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].value == metadata_string(std::string(127, 'p')));
  CHECK(entries[1].value == metadata_unsigned(MetadataType::kUint32, 3));
  CHECK(metadata_of({"p", "d", 0, 5}).empty());
}

TEST_CASE("a summary counts the remaining entries") {
  const TempDir folder;
  const std::string path = folder.file("imatrix.gguf");
  GgufBuilder file = gguf_importance();
  add_entry(file, "a", {1, 2}, {1});
  add_entry(file, "b", {3, 4}, {1});
  file.write(path);
  const Selection only_b{{Pattern::compile("^b").value()}, {}};
  const ImportanceSummary summary = summarize_importance(path, only_b, gguf_opener()).value();
  CHECK(summary.file == path);
  CHECK(summary.dataset == "a.txt");
  CHECK(summary.entries == 1);
  CHECK(summary.chunks == 7);
}
