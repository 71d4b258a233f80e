#include "pipeline/graph/slab.h"

#include "tests/support/catch.h"
#include "tests/support/plan_maker.h"

using namespace ggufmill;
using testing::plan_of;
using testing::shape_of;

namespace {

// Makes a slab of all rows of the first step with a planned cost of `cost`.
Result<std::unique_ptr<Slab>> slab_of(const Plan& plan, std::uint64_t cost) {
  const auto kernels = Kernels::load({{}, "reference"}).value();
  const std::vector<StepLayout> layouts = layouts_of(plan);
  const std::vector<BoundStep> steps = bind_kernels(plan, layouts, *kernels).value();
  ImportanceWeights weights;
  return make_slab({{testing::slabs_of(plan, 1ull << 30).at(0)}, cost}, 0, steps, weights, false);
}

Plan plan_of_rows() { return plan_of({{"rows", shape_of({256, 64}), "F32", {"F16"}}}); }

}  // namespace

TEST_CASE("a slab takes the memory that it was planned with, to the last page") {
  const Plan plan = plan_of_rows();
  const std::uint64_t cost = testing::slabs_of(plan, 1ull << 30).at(0).cost;
  CHECK(slab_of(plan, cost));
  CHECK_FALSE(slab_of(plan, cost - kPageBytes));
}

TEST_CASE("a slab that was planned with too little memory is an internal error, and no piece goes beyond it") {
  const Plan plan = plan_of_rows();
  const Error error = slab_of(plan, 88 << 10).error();
  CHECK(error.code == ExitCode::kInternal);
  CHECK(error.what == "tensor 'rows' needs at least 98304 bytes for a slab that was planned with 90112");
}

// Every kind of work and of values in one plan: copies, both byte orders, F32 for the decoded values, several
// encodings, importance, rows that are longer than a tile, and rows that have to be assembled.
TEST_CASE("the cost of a step is enough for its buffers, whatever its work") {
  const std::uint64_t columns = GENERATE(256u, 1u << 17);
  const char* const from = GENERATE("F32", "F16", "Q8_0");
  const bool is_reordered = GENERATE(false, true);
  const auto source = std::make_shared<const SourceFile>(SourceFile{"/source.gguf", 1ull << 40, 0, 0});
  Model model = testing::source_model({{"t", shape_of({columns, 12}), from, {}, true, GENERATE(false, true)}}, source);
  ExpressionRef& values = model.tensors[0].expression;
  if (is_reordered) values = expressions::reorder_rows(values, {4, 3}, {1, 0}).value();
  Plan plan = testing::plan_for(std::move(model), {{from}, {"F32"}, {"Q8_0"}, {"Q4_K"}}, "", 64 << 20);
  for (std::size_t i = 1; i < plan.steps[0].encodings.size(); i += 2) plan.steps[0].encodings[i].big_endian = true;
  plan.report.error = GENERATE(false, true);
  if (GENERATE(false, true)) plan.limits.io = IoMode::kDirect;
  const auto kernels = Kernels::load({{}, "reference"}).value();
  const std::vector<StepLayout> layouts = layouts_of(plan);
  const std::vector<BoundStep> steps = bind_kernels(plan, layouts, *kernels).value();
  for (std::uint64_t slab_bytes = 1; slab_bytes < (32 << 20); slab_bytes = slab_bytes * 8 + 4096)
    for (const SlabRows& rows : testing::slabs_of(plan, slab_bytes)) {
      ImportanceWeights weights;
      const auto slab = make_slab({{rows}, rows.cost}, 0, steps, weights, is_direct(plan));
      CHECK(slab.has_value());
    }
}
