#include "pipeline/graph/slab_feed.h"

#include <algorithm>

#include "tests/support/catch.h"
#include "tests/support/plan_maker.h"

using namespace ggufmill;

namespace {

std::vector<std::uint64_t> first_rows(const Plan& plan, std::uint64_t seed) {
  std::vector<std::uint64_t> rows;
  SlabFeed feed(plan, 1 << 16, seed);
  while (const std::optional<Slab> slab = feed.next()) rows.push_back(slab->first_row);
  return rows;
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
