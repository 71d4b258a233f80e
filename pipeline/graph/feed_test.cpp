#include "pipeline/graph/feed.h"

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/plan_maker.h"

using namespace ggufmill;

namespace {

std::vector<std::uint64_t> first_rows(const Plan& plan, std::uint64_t seed) {
  std::vector<std::uint64_t> rows;
  const std::vector<StepLayout> layouts = layouts_of(plan);
  Feed feed(plan, layouts, 1 << 16, seed, [](std::size_t) { return true; });
  while (const std::optional<SlabBatch> batch = feed.next())
    for (const SlabRows& slab : batch->rows) rows.push_back(slab.first_row);
  return rows;
}

// Returns the number of slabs in each batch.
std::vector<std::size_t> batches(const Plan& plan, std::uint64_t slab_bytes) {
  std::vector<std::size_t> sizes;
  const std::vector<StepLayout> layouts = layouts_of(plan);
  Feed feed(plan, layouts, slab_bytes, 0, [](std::size_t) { return true; });
  while (const std::optional<SlabBatch> batch = feed.next()) {
    sizes.push_back(batch->rows.size());
    CHECK(batch->cost == slab_bytes);
  }
  return sizes;
}

testing::TensorRecipe small(const std::string& name) {
  return {name, testing::shape_of({256, 4}), "F32", {"F16"}, false};  // one page of source, one of output
}

}  // namespace

TEST_CASE("slabs come in the order of the file, or with a seed in another order, all of them") {
  const Plan plan = testing::plan_of({{"t", testing::shape_of({256, 1000}), "F32", {"F16"}, false}});
  const std::vector<std::uint64_t> in_order = first_rows(plan, 0);
  CHECK(in_order.size() > 10);
  CHECK(std::is_sorted(in_order.begin(), in_order.end()));
  std::vector<std::uint64_t> shuffled = first_rows(plan, 1);
  CHECK(shuffled != in_order);
  CHECK(shuffled != first_rows(plan, 2));
  std::sort(shuffled.begin(), shuffled.end());
  CHECK(shuffled == in_order);
}

TEST_CASE("adjacent small tensors form one batch, up to the size of a slab") {
  const Plan plan = testing::plan_of({small("a"), small("b"), small("c"), small("d"), small("e")});
  CHECK(batches(plan, 1 << 20) == std::vector<std::size_t>{5});
  CHECK(batches(plan, 32 << 10) == std::vector<std::size_t>{4, 1});
  CHECK(batches(plan, 24 << 10) == std::vector<std::size_t>{3, 2});
}

TEST_CASE("a large tensor is not part of a batch") {
  const Plan plan = testing::plan_of(
      {small("a"), {"b", testing::shape_of({256, 300}), "F32", {"F16"}, false}, small("c"), small("d")});
  CHECK(batches(plan, 1 << 20) == std::vector<std::size_t>{1, 1, 2});
}

TEST_CASE("tensors far from each other are not read together") {
  const Plan plan = testing::plan_of({small("a"), {"left out", testing::shape_of({32}), "F32", {""}}, small("b")});
  CHECK(batches(plan, 1 << 20) == std::vector<std::size_t>{1, 1});
}

TEST_CASE("a slab that is larger than wished costs what it takes") {
  const Plan plan = testing::plan_of({{"t", testing::shape_of({1 << 16, 2}), "F32", {"F16"}, false}});
  const std::vector<StepLayout> layouts = layouts_of(plan);
  Feed feed(plan, layouts, 1 << 16, 0, [](std::size_t) { return true; });
  CHECK(feed.next()->cost == (256 << 10) + (128 << 10));
}

TEST_CASE("units that are not wanted are skipped") {
  const Plan plan = testing::plan_of({small("a"), {"b", testing::shape_of({256, 300}), "F32", {"F16"}}, small("c")});
  const std::vector<StepLayout> layouts = layouts_of(plan);
  Feed feed(plan, layouts, 1 << 16, GENERATE(0u, 1u), [](std::size_t unit) { return unit != 1; });
  std::vector<std::size_t> units;
  while (const std::optional<SlabBatch> batch = feed.next())
    for (const SlabRows& rows : batch->rows) units.push_back(rows.unit);
  std::ranges::sort(units);
  CHECK(units == std::vector<std::size_t>{0, 2});
}

TEST_CASE("a small tensor that is not aligned in its file is read alone, so that it is in memory") {
  const auto source = std::make_shared<const SourceFile>(SourceFile{"/source.safetensors", 1 << 20, 0, 0});
  Model model = testing::source_model({small("a"), small("b"), small("c")}, source);
  const Extent extent = *model.tensors[1].expression->as_extent();
  model.tensors[1].expression =
      expressions::extent(type_named("F32"), model.tensors[1].shape(), {source, extent.offset + 2, extent.bytes, false})
          .value();
  const Plan plan = testing::plan_for(std::move(model), {{"F16", "F16", "F16"}}, "", 64 << 20);
  CHECK(batches(plan, 1 << 20) == std::vector<std::size_t>{1, 1, 1});
}
