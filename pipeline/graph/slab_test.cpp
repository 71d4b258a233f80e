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
  const std::vector<BoundStep> steps = bind_kernels(plan, *kernels).value();
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
