#include "pipeline/graph/convert.h"

#include <cstring>
#include <numeric>

#include "pipeline/plan/slabs.h"
#include "tests/support/catch.h"
#include "tests/support/plan_maker.h"

using namespace ggufmill;
using testing::plan_of;
using testing::shape_of;

namespace {

// Kernels that remember how they were called. F16 is "decoded" to its own bits, any type "encoded" to zeros.
struct Calls {
  std::uint64_t decoded_rows = 0, decodes = 0, encodes = 0;
  const float* encoded_from = nullptr;
  std::int32_t status = GGUFMILL_OK;
} calls;

std::int32_t decode(const ggufmill_call* call) {
  calls.decoded_rows += call->rows;
  ++calls.decodes;
  for (std::uint64_t i = 0; i < call->rows * call->cols; ++i)
    static_cast<float*>(call->dst)[i] = static_cast<const std::uint16_t*>(call->src)[i];
  return GGUFMILL_OK;
}

std::int32_t encode(const ggufmill_call* call) {
  ++calls.encodes;
  calls.encoded_from = static_cast<const float*>(call->src);
  return calls.status;
}

constexpr ggufmill_kernel kDecode{GGUFMILL_DECODE, 1, 1, 2, 0, 0, "F16", decode};
constexpr ggufmill_kernel kEncode{GGUFMILL_ENCODE, 8, 32, 34, 0, 0, "Q8_0", encode};
constexpr ggufmill_module kModule{0, 0, 0, 0, 0, 0, "test", "", "", "", nullptr};

// The work of the only route of a plan, with the kernels above.
RouteWork work_of(const Plan& plan) {
  const Route& route = plan.routes[0];
  RouteWork work;
  work.route = &route;
  work.row_bytes = route.source.bytes / route.shape.rows();
  work.tile_rows = std::max<std::uint64_t>(kTileBytes / 4 / route.shape.columns(), 1);
  work.long_row_bytes = RouteCost(plan, route).long_row_bytes();
  work.converts = true;
  if (route.source.type->name == "F16") work.decode = {&kDecode, &kModule};
  for (const Target& target : route.targets) {
    const Tensor& tensor = tensor_of(plan, target);
    const bool f32 = tensor.type->name == "F32";
    if (f32) work.f32_target = work.targets.size();
    TargetWork bound{f32 ? TargetKind::kDecode : TargetKind::kEncode, &target, &tensor, 0, {&kEncode, &kModule}, {}};
    bound.row_bytes = route.shape.columns() / tensor.type->block_elements * tensor.type->block_bytes;
    work.targets.push_back(bound);
  }
  return work;
}

struct Fixture {
  explicit Fixture(const std::vector<testing::TensorRecipe>& tensors) : plan(plan_of(tensors)), works{work_of(plan)} {
    calls = {};
    const Slab slab = cut_slabs(plan, 1ull << 30).at(0);
    flight = make_flight({{slab}, slab.cost}, 0, works, false).value();
  }
  Status convert_all() {
    for (std::uint32_t tile = 0; tile < flight->tiles; ++tile) {
      BOOST_OUTCOME_TRY(convert_tile(*flight, tile, scratch, plan.source.files));
    }
    return ok();
  }

  Plan plan;
  std::vector<RouteWork> works;
  std::unique_ptr<Flight> flight;
  std::vector<float> scratch = std::vector<float>(kTileBytes / sizeof(float));
};

}  // namespace

TEST_CASE("all targets are fed from one decoding") {
  Fixture fixture({{"t", shape_of({256, 1000}), "F16", {"Q8_0", "Q8_0", "Q8_0"}, nullptr}});
  CHECK(fixture.flight->tiles == 4);  // of 256 rows: 64 Ki values
  REQUIRE(fixture.convert_all());
  CHECK(calls.decodes == 4);
  CHECK(calls.decoded_rows == 1000);
  CHECK(calls.encodes == 12);
  CHECK(calls.encoded_from == fixture.scratch.data());
}

TEST_CASE("an F32 target is decoded to its place, and the others are made from it") {
  Fixture fixture({{"t", shape_of({256, 10}), "F16", {"Q8_0", "F32"}, nullptr}});
  std::memset(fixture.flight->source.data(), 1, fixture.flight->source.size());
  REQUIRE(fixture.convert_all());
  const auto* made = reinterpret_cast<const float*>(fixture.flight->legs[0].target_bytes(1).data());
  CHECK(calls.encoded_from == made);
  CHECK(std::accumulate(made, made + 2560, 0.0) == 2560 * 257.0);
}

TEST_CASE("an F32 source is encoded from where it was read to") {
  Fixture fixture({{"t", shape_of({256, 10}), "F32", {"Q8_0"}, nullptr}});
  REQUIRE(fixture.convert_all());
  CHECK(calls.decodes == 0);
  CHECK(static_cast<const void*>(calls.encoded_from) == fixture.flight->source.data());
}

TEST_CASE("rows longer than the scratch are decoded into the slab's own memory") {
  Fixture fixture({{"t", shape_of({131072, 3}), "F16", {"Q8_0"}, nullptr}});
  CHECK(fixture.flight->tiles == 3);
  REQUIRE(fixture.convert_all());
  CHECK(calls.encoded_from == reinterpret_cast<const float*>(fixture.flight->legs[0].long_rows.data()) + 2 * 131072);
}

TEST_CASE("a kernel that fails is named with its module") {
  Fixture fixture({{"t", shape_of({256, 10}), "F32", {"Q8_0"}, nullptr}});
  calls.status = 7;
  const Status status = fixture.convert_all();
  REQUIRE(!status);
  CHECK(status.error().code == ExitCode::kInternal);
  CHECK(status.error().what == "tensor 't': kernel Q8_0 of module 'test' failed with status 7");
}

TEST_CASE("weights that a kernel cannot represent are an error of the input") {
  Fixture fixture({{"t", shape_of({256, 10}), "F32", {"Q8_0"}, nullptr}});
  calls.status = GGUFMILL_CANNOT_REPRESENT;
  const Status status = fixture.convert_all();
  REQUIRE(!status);
  CHECK(status.error().code == ExitCode::kBadInput);
  CHECK(status.error().what == "tensor 't': values are too large for Q8_0");
}
