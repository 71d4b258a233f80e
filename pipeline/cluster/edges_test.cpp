#include "pipeline/cluster/edges.h"

#include "pipeline/cluster/test_job.h"
#include "tests/support/catch.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

// One output with a header of 64 bytes and two tensors of 1,228,800 bytes, each of which is a unit and a part: part 0
// has the bytes [64, 1228864) of the file, and part 1 has [1228864, 2457664).
const Plan& plan() {
  static const Plan plan = plan_of(
      {{"a", shape_of({1024, 300}), "F32", {"F32"}, false}, {"b", shape_of({1024, 300}), "F32", {"F32"}, false}},
      "folder");
  return plan;
}

const PartPlaces& places(std::size_t part) {
  static const std::vector<PartPlaces> both = places_of(plan(), {0, 1, 2}, 0, 2);
  return both[part];
}

}  // namespace

TEST_CASE("bytes in a chunk that is shared with the header or another part are edges") {
  REQUIRE(places(0).edges.size() == 2);
  CHECK(places(0).edges[0].offset == 64);
  CHECK(places(0).edges[0].bytes == kChunkBytes - 64);
  CHECK(places(0).edges[1].offset == kChunkBytes);
  CHECK(places(0).edges[1].bytes == 1228864 - kChunkBytes);
  REQUIRE(places(1).edges.size() == 1);
  CHECK(places(1).edges[0].offset == 1228864);
  CHECK(places(1).edges[0].bytes == 2 * kChunkBytes - 1228864);
}

TEST_CASE("edges follow one another in the file of edges") {
  CHECK(places(0).edges[0].at == 0);
  CHECK(places(0).edges[1].at == places(0).edges[0].bytes);
  CHECK(places(0).edge_bytes == 1228800);
}

TEST_CASE("places of one part are those of all parts") {
  const PartPlaces one = places_of(plan(), {0, 1, 2}, 1, 1).front();
  CHECK(one.edge_bytes == places(1).edge_bytes);
  CHECK(one.files == std::vector<std::size_t>{0});
}

TEST_CASE("a part that shares no chunk except with the header has that edge only") {
  const PartPlaces all = places_of(plan(), {0, 2}, 0, 1).front();
  REQUIRE(all.edges.size() == 1);
  CHECK(all.edge_bytes == kChunkBytes - 64);
}

TEST_CASE("a part writes what is not in its edges") {
  const std::vector<PlannedWrite> writes = writes_outside_edges(plan(), {1, 2}, places(1));
  REQUIRE(writes.size() == 1);
  CHECK(writes[0].file == 0);
  CHECK(writes[0].offset == 2 * kChunkBytes);
  CHECK(writes[0].bytes == 2457664 - 2 * kChunkBytes);
}

TEST_CASE("a part whose bytes are all in edges writes nothing") {
  CHECK(writes_outside_edges(plan(), {0, 1}, places(0)).empty());
}

TEST_CASE("outputs that are files are not uploads") { CHECK(uploads_of(plan()) == nullptr); }

TEST_CASE("the padding between tensors is a gap") {
  const Plan padded =
      plan_of({{"a", shape_of({3}), "F32", {"F32"}, false}, {"b", shape_of({8}), "F32", {"F32"}, false}}, "folder");
  const std::vector<Gap> gaps = gaps_of(padded);
  REQUIRE(gaps.size() == 1);
  CHECK(gaps[0].offset == 64 + 12);
  CHECK(gaps[0].bytes == 20);
}

TEST_CASE("tensors without padding have no gaps") { CHECK(gaps_of(plan()).empty()); }
