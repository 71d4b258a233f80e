#include "pipeline/cluster/cut.h"

#include <algorithm>
#include <functional>

#include "pipeline/cluster/test_job.h"
#include "tests/support/catch.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

using Cuts = std::vector<std::size_t>;

// Cuts a plan with one unit for each cost.
Cuts cuts_of(const std::vector<double>& costs, std::size_t parts) {
  return cut_plan(plan_of_units(costs.size()), costs, parts);
}

}  // namespace

TEST_CASE("cuts divide the costs evenly") {
  CHECK(cuts_of({1, 1, 1, 1, 1, 1, 1, 1}, 2) == Cuts{0, 4, 8});
  CHECK(cuts_of({1, 1, 1, 1, 1, 1, 1, 1}, 3) == Cuts{0, 3, 5, 8});
}

TEST_CASE("a costly unit is a part of its own") { CHECK(cuts_of({7, 1, 1, 1}, 2) == Cuts{0, 1, 4}); }

TEST_CASE("one part has all units") { CHECK(cuts_of({1, 2, 3}, 1) == Cuts{0, 3}); }

TEST_CASE("no part is empty") {
  CHECK(cuts_of({1, 1, 1}, 5) == Cuts{0, 1, 2, 3});
  CHECK(cuts_of({0, 0, 9}, 3) == Cuts{0, 1, 2, 3});
}

TEST_CASE("a unit costs more if it has more rows") {
  CHECK(unit_costs(plan_of_units(1, "folder", 4000))[0] > unit_costs(plan_of_units(1, "folder", 2000))[0]);
}

TEST_CASE("every unit costs something") {
  const std::vector<double> costs = unit_costs(plan_of_units(3));
  REQUIRE(costs.size() == 3);
  CHECK(std::ranges::all_of(costs, [](double cost) { return cost > 0; }));
}

TEST_CASE("types without a kernel for an ISA cost what the fastest kernel does") {
  const Plan plan = plan_of({{"a", shape_of({256, 1 << 20}), "F32", {"Q4_K"}, false}}, "folder");
  ImaginedMachine machine{.isa = "none", .threads = 1, .bytes_per_second = 1e15};
  double fastest = 0;
  for (const KernelSpeed& speed : kernel_speeds())
    if (speed.type == "Q4_K") fastest = std::max(fastest, speed.encode);
  REQUIRE(fastest > 0);
  const double seconds = 256.0 * (1 << 20) / (fastest * 1e6);
  CHECK(unit_costs(plan, machine)[0] > seconds / static_cast<double>(plan.units.size()) * 0.9);
}

TEST_CASE("the speeds of kernels are those of types") {
  for (const KernelSpeed& speed : kernel_speeds()) {
    CAPTURE(speed.type, speed.isa);
    CHECK(Types().find(speed.type) != nullptr);
    CHECK(std::max(speed.decode, speed.encode) > 0);
  }
}

TEST_CASE("a small plan has one part") { CHECK(usual_parts(plan_of_units(8)) == 1); }

TEST_CASE("a part has at most 16 GiB of input") {
  const Plan plan = plan_of({{"a", shape_of({1 << 20, 9 << 10}), "F32", {"F16"}, false}}, "folder");  // 36 GiB
  CHECK(usual_parts(plan) == 3);
}

TEST_CASE("parts are shared by what the plans cost") {
  CHECK(share_parts({plan_of_units(8), plan_of_units(2)}, 5).value() == Cuts{4, 1});
}

TEST_CASE("a plan has no more parts than units") {
  CHECK(share_parts({plan_of_units(1), plan_of_units(2)}, 9).value() == Cuts{1, 2});
}

TEST_CASE("without a number of parts each plan has its usual ones") {
  CHECK(share_parts({plan_of_units(8), plan_of_units(2)}, 0).value() == Cuts{1, 1});
}

TEST_CASE("fewer parts than plans are an error") {
  const auto shares = share_parts({plan_of_units(1), plan_of_units(1)}, 1);
  REQUIRE_FALSE(shares);
  CHECK(shares.error().code == ExitCode::kUsage);
  CHECK(shares.error().what == "each of the 2 sources needs a part of its own, but there is only 1");
  CHECK(shares.error().help == "set cluster.parts to 2 or more");
}
