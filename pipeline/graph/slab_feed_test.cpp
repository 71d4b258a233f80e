#include "pipeline/graph/slab_feed.h"

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/plan_maker.h"

using namespace ggufmill;

namespace {

std::vector<std::uint64_t> first_rows(const Plan& plan, std::uint64_t seed) {
  std::vector<std::uint64_t> rows;
  SlabFeed feed(plan, 1 << 16, seed);
  while (const std::optional<SlabBatch> batch = feed.next())
    for (const Slab& slab : batch->slabs) rows.push_back(slab.first_row);
  return rows;
}

// How many slabs each batch has.
std::vector<std::size_t> batches(const Plan& plan, std::uint64_t slab_bytes) {
  std::vector<std::size_t> sizes;
  SlabFeed feed(plan, slab_bytes, 0);
  while (const std::optional<SlabBatch> batch = feed.next()) {
    sizes.push_back(batch->slabs.size());
    CHECK(batch->cost == slab_bytes);
  }
  return sizes;
}

testing::TensorRecipe small(const std::string& name) {
  return {name, testing::shape_of({256, 4}), "F32", {"F16"}, nullptr};  // a page of source, one of output
}

}  // namespace

TEST_CASE("slabs come in the order of the file, or with a seed in another order, all of them") {
  const Plan plan = testing::plan_of({{"t", testing::shape_of({256, 1000}), "F32", {"F16"}, nullptr}});
  const std::vector<std::uint64_t> in_order = first_rows(plan, 0);
  CHECK(in_order.size() > 10);
  CHECK(std::is_sorted(in_order.begin(), in_order.end()));
  std::vector<std::uint64_t> shuffled = first_rows(plan, 1);
  CHECK(shuffled != in_order);
  CHECK(shuffled != first_rows(plan, 2));
  std::sort(shuffled.begin(), shuffled.end());
  CHECK(shuffled == in_order);
}

TEST_CASE("small tensors that lie side by side are one batch, as far as a slab goes") {
  const Plan plan = testing::plan_of({small("a"), small("b"), small("c"), small("d"), small("e")});
  CHECK(batches(plan, 1 << 20) == std::vector<std::size_t>{5});
  CHECK(batches(plan, 32 << 10) == std::vector<std::size_t>{4, 1});
  CHECK(batches(plan, 24 << 10) == std::vector<std::size_t>{3, 2});
}

TEST_CASE("a large tensor is no part of a batch") {
  const Plan plan = testing::plan_of(
      {small("a"), {"b", testing::shape_of({256, 300}), "F32", {"F16"}, nullptr}, small("c"), small("d")});
  CHECK(batches(plan, 1 << 20) == std::vector<std::size_t>{1, 1, 2});
}

TEST_CASE("tensors far from each other are not read together") {
  Plan plan = testing::plan_of({small("a"), small("b")});
  plan.routes[1].source.offset += 1;
  CHECK(batches(plan, 1 << 20) == std::vector<std::size_t>{1, 1});
}

TEST_CASE("a slab that is larger than wished costs what it takes") {
  const Plan plan = testing::plan_of({{"t", testing::shape_of({1 << 16, 2}), "F32", {"F16"}, nullptr}});
  SlabFeed feed(plan, 1 << 16, 0);
  CHECK(feed.next()->cost == (256 << 10) + (128 << 10));
}
