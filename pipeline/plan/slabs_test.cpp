#include "pipeline/plan/slabs.h"

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/plan_maker.h"

using namespace ggufmill;
using testing::plan_of;
using testing::shape_of;
using testing::slabs_of;

namespace {

// Checks what must be true of any division into slabs: those of each unit are contiguous and cover it.
void check_cover(const Plan& plan, const std::vector<SlabRows>& slabs) {
  std::vector<std::uint64_t> bytes(plan.steps.size());
  std::size_t unit = 0;
  for (const SlabRows& slab : slabs) {
    CHECK(slab.unit >= unit);
    unit = slab.unit;
    CHECK(slab.step == plan.units[unit].step);
    CHECK(slab.first_byte == bytes[slab.step]);
    CHECK(slab.first_row == slab.first_byte / plan.steps[slab.step].expression->row_bytes());
    CHECK(slab.first_row >= plan.units[unit].first_row);
    CHECK(slab.first_row + slab.rows <= plan.units[unit].first_row + plan.units[unit].rows);
    CHECK(slab.bytes > 0);
    bytes[slab.step] += slab.bytes;
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) CHECK(bytes[i] == plan.steps[i].expression->bytes());
}

std::uint64_t costliest(const std::vector<SlabRows>& slabs) {
  std::uint64_t most = 0;
  for (const SlabRows& slab : slabs) most = std::max(most, slab.cost);
  return most;
}

Plan mixed_plan() {
  return plan_of({{"a", shape_of({256, 1000}), "BF16", {"Q4_K", "F16"}, false},
                  {"norm", shape_of({4096}), "F32", {"F32", "F32"}, false},
                  {"empty", shape_of({256, 0}), "F32", {"Q4_K", "F32"}, false},
                  {"experts", shape_of({512, 7, 5}), "F16", {"Q8_0", ""}, true},
                  {"copied", shape_of({256, 4096}), "Q6_K", {"Q6_K", "Q6_K"}, false}});
}

}  // namespace

TEST_CASE("slabs cover every route and keep to their size, from the least budget upward") {
  const Plan plan = mixed_plan();
  const std::uint64_t least = plan.least_memory;
  const std::uint64_t slab_bytes = least * GENERATE(1, 2, 3, 10, 100, 100000);
  const std::vector<SlabRows> slabs = slabs_of(plan, slab_bytes);
  check_cover(plan, slabs);
  CHECK(costliest(slabs) <= slab_bytes);
}

TEST_CASE("a slab with importance stays within its matrix") {
  const Plan plan = mixed_plan();
  std::size_t count = 0;
  for (const SlabRows& slab : slabs_of(plan, 1 << 20)) {
    if (plan.steps[slab.step].name != "experts") continue;
    ++count;
    CHECK(slab.first_row / 7 == (slab.first_row + slab.rows - 1) / 7);
  }
  CHECK(count == 5);
}

TEST_CASE("without importance one slab takes many small matrices") {
  const Plan plan = plan_of({{"conv", shape_of({32, 1, 8192}), "F16", {"Q8_0"}, false}});
  CHECK(slabs_of(plan, 8 << 20).size() == 1);
}

TEST_CASE("a slab costs its source, every converted target, in whole pages, and its importance") {
  const Plan plan = plan_of({{"t", shape_of({256, 16}), "F16", {"F16", "Q8_0"}, true}});
  const std::vector<SlabRows> slabs = slabs_of(plan, 1 << 20);
  REQUIRE(slabs.size() == 1);
  CHECK(slabs[0].bytes == 8192);
  CHECK(slabs[0].cost == 8192 + 8192 /* 16 * 272 = 4352 of Q8_0 */ + 4096 /* 256 weights */);
}

TEST_CASE("a copy is cut at blocks") {
  const Plan plan = plan_of({{"t", shape_of({256, 4096}), "Q6_K", {"Q6_K"}, false}});
  const std::vector<SlabRows> slabs = slabs_of(plan, 65536);
  check_cover(plan, slabs);
  CHECK(slabs.size() == 14);  // 860,160 bytes; 312 blocks fit
  for (const SlabRows& slab : slabs) CHECK(slab.bytes % 210 == 0);
}

TEST_CASE("pieces of a tensor are about equal") {
  const Plan plan = plan_of({{"t", shape_of({1024, 1025}), "F32", {"F16"}, false}});
  const std::vector<SlabRows> slabs = slabs_of(plan, (4096 + 2048) * 1024);
  REQUIRE(slabs.size() == 2);
  CHECK(slabs[0].rows == 513);
  CHECK(slabs[1].rows == 512);
}

TEST_CASE("a model of 5 trillion weights is cut one slab at a time") {
  const Plan plan = plan_of({{"huge", shape_of({1 << 14, 1 << 14, 1 << 14}), "BF16", {"Q4_K"}, false}});
  const std::vector<StepLayout> layouts = layouts_of(plan);
  SlabCutter cutter(plan, layouts, 8 << 20);
  std::uint64_t bytes = 0;
  while (std::optional<SlabRows> slab = cutter.next()) bytes += slab->bytes;
  CHECK(bytes == plan.steps[0].expression->bytes());
}
