#include "pipeline/io/remote/part_map.h"

#include "tests/support/catch.h"

using namespace ggufmill;
using namespace ggufmill::remote;

namespace {

constexpr std::uint64_t kPart = kMinPartBytes;

StoredFile file_of(std::uint64_t bytes, std::string_view header = "") { return {"s3://bucket/key", header, bytes}; }

}  // namespace

TEST_CASE("a file has at most 10,000 parts, of one size that is a whole number of MiB") {
  CHECK(part_bytes(1) == kPart);
  CHECK(part_bytes(kMaxParts * kPart) == kPart);
  CHECK(part_bytes(kMaxParts * kPart + 1) == kPart + (1 << 20));
  for (const std::uint64_t bytes : {std::uint64_t{100} << 30, std::uint64_t{1} << 40, kMaxObjectBytes}) {
    CHECK((bytes + part_bytes(bytes) - 1) / part_bytes(bytes) <= kMaxParts);
    CHECK(part_bytes(bytes) % (1 << 20) == 0);
  }
}

TEST_CASE("parts without a plan are filled from the beginning of each file to its end") {
  const std::string header(10, 'h');
  const StoredFile files[] = {file_of(2 * kPart + 5, header), file_of(10, header), file_of(7)};
  const PartMap map(files, {});
  REQUIRE(map.parts().size() == 4);  // none for the file that is nothing but a header
  CHECK(map.parts()[0] == PartSpan{0, 1, 0, kPart, kPart - 10, 0, kPart - 11});
  CHECK(map.parts()[2] == PartSpan{0, 3, 2 * kPart, 5, 5, 2 * kPart - 10, 2 * kPart - 6});
  CHECK(map.parts()[3].file == 2);
  CHECK(map.of_file(1).empty());
  CHECK(map.find(0, 2 * kPart) == 2);
  CHECK(map.most_open() == kPart);
  CHECK(map.largest() == kPart);
}

TEST_CASE("parts are ordered by the rows that begin them") {
  const StoredFile files[] = {file_of(2 * kPart), file_of(kPart)};
  // The first rows go to the end of the first file, and to the second.
  const PlannedWrite writes[] = {
      {0, kPart, kPart, 0, 8}, {1, 0, kPart / 2, 0, 8}, {0, 0, kPart, 8, 8}, {1, kPart / 2, kPart / 2, 8, 8}};
  const PartMap map(files, writes);
  REQUIRE(map.parts().size() == 3);
  CHECK(map.parts()[0] == PartSpan{0, 2, kPart, kPart, kPart, 0, 7});
  CHECK(map.parts()[1] == PartSpan{1, 1, 0, kPart, kPart, 0, 15});
  CHECK(map.parts()[2] == PartSpan{0, 1, 0, kPart, kPart, 8, 15});
  CHECK(map.find(0, 0) == 2);
  CHECK(map.most_open() == 2 * kPart);
}

TEST_CASE("small tensors in another order than they are read keep many parts open") {
  const StoredFile files[] = {file_of(4 * kPart)};
  std::vector<PlannedWrite> writes;
  for (std::uint64_t i = 0; i < 8; ++i) writes.push_back({0, i % 4 * kPart + i / 4 * kPart / 2, kPart / 2, i, 1});
  CHECK(PartMap(files, writes).most_open() == 4 * kPart);
}

TEST_CASE("parts without data come last") {
  const std::string header(2 * kPart, 'h');
  const StoredFile files[] = {file_of(3 * kPart, header)};
  const PlannedWrite writes[] = {{0, 2 * kPart, kPart, 0, 4}};
  const PartMap map(files, writes);
  REQUIRE(map.parts().size() == 3);
  CHECK(map.parts()[0].number == 3);
  CHECK(map.parts()[1].data == 0);
  CHECK(map.most_open() == kPart);
}
