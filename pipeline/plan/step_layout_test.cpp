#include "pipeline/plan/step_layout.h"

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/plan_maker.h"

using namespace ggufmill;
using testing::plan_of;
using testing::shape_of;

namespace {

bool has(const StepLayout& layout, BufferLayout::Use use) {
  return std::ranges::count(layout.buffers(), use, &BufferLayout::use) != 0;
}

}  // namespace

TEST_CASE("the work of an encoding depends on its type and byte order") {
  Plan plan = plan_of({{"t", shape_of({256, 4}), "F16", {"F16", "F32", "Q8_0"}, false}});
  Step& step = plan.steps[0];
  step.encodings.push_back({step.encodings[0].type, nullptr, {}, true});
  const StepLayout layout(plan, step);
  std::vector<Work> work;
  for (const EncodingLayout& encoding : layout.encodings()) work.push_back(encoding.work);
  CHECK(work == std::vector{Work::kCopy, Work::kDecode, Work::kEncode, Work::kSwap});
}

TEST_CASE("only encodings with bytes of their own have a buffer") {
  const Plan plan = plan_of({{"t", shape_of({256, 4}), "F16", {"F16", "Q8_0"}, false}});
  const StepLayout layout(plan, plan.steps[0]);
  REQUIRE(layout.buffers().size() == 2);
  CHECK(layout.buffers()[0].use == BufferLayout::kValues);
  CHECK(layout.buffers()[1].use == BufferLayout::kEncoded);
  CHECK(layout.buffers()[1].encoding == 1);
}

TEST_CASE("swapping the byte order of one extent is not a copy") {
  Plan plan = plan_of({{"t", shape_of({256, 4}), "F16", {"F16"}, false}});
  CHECK(StepLayout(plan, plan.steps[0]).copies_only());
  plan.steps[0].encodings[0].big_endian = true;
  CHECK_FALSE(StepLayout(plan, plan.steps[0]).copies_only());
}

TEST_CASE("values are decoded into an F32 encoding only if it is in the host's byte order") {
  Plan plan = plan_of({{"t", shape_of({256, 4}), "F16", {"Q8_0", "F32"}, false}});
  CHECK(StepLayout(plan, plan.steps[0]).f32_encoding() == 1u);
  plan.steps[0].encodings[1].big_endian = true;
  CHECK_FALSE(StepLayout(plan, plan.steps[0]).f32_encoding());
}

TEST_CASE("a row too long for a worker's scratch brings its F32 form, unless that is at hand anyway") {
  const std::uint64_t columns = 1 << 20;
  auto least = [&](const char* from, std::vector<std::string> to) {
    return plan_of({{"t", shape_of({columns, 2}), from, std::move(to), false}}).least_memory;
  };
  const std::uint64_t f32 = 4 * columns, f16 = 2 * columns, q8 = columns / 32 * 34;
  CHECK(least("F16", {"Q8_0"}) == f16 + q8 + f32);
  CHECK(least("F32", {"Q8_0"}) == f32 + q8);
  CHECK(least("F16", {"F32", "Q8_0"}) == f16 + q8 + f32);
  CHECK(least("F16", {"F16", ""}) == kPageBytes);
}

TEST_CASE("costs beyond 64 bits stay at the edge") {
  Plan plan = plan_of({{"t", shape_of({64, 1}), "Q8_0", {"Q4_0"}, false}});
  const auto file = std::make_shared<const SourceFile>(SourceFile{"giant", UINT64_MAX, 0, 0});
  const Shape shape = shape_of({1ull << 62, 1});
  const TypeInfo& type = type_named("Q8_0");
  plan.steps[0].expression =
      expressions::extent(type, shape, {file, 0, bytes_of(type, shape.elements()).value()}).value();
  finish_plan(plan);
  CHECK(plan.least_memory == UINT64_MAX);
}

TEST_CASE("a row that is decoded again to measure its error costs its F32 form once more, where scratch is too small") {
  const std::uint64_t columns = GENERATE(512u, 1000000u);
  Plan plan = plan_of({{"t", shape_of({columns, 4}), "F16", {"Q8_0", "F32"}, false}});
  const std::uint64_t before = StepLayout(plan, plan.steps[0]).of_rows(4);
  plan.report.error = true;
  const StepLayout layout(plan, plan.steps[0]);
  CHECK(has(layout, BufferLayout::kMeasuredRows) == (columns != 512));
  CHECK(layout.of_rows(4) - before == (columns == 512 ? 0 : (columns * 16 + kPageBytes - 1) / kPageBytes * kPageBytes));
  CHECK(layout.of_rows(layout.rows_within(layout.of_rows(4))) <= layout.of_rows(4));
}
