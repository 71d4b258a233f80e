#include "pipeline/graph/convert.h"

#include <cstring>
#include <new>
#include <numeric>

#include "pipeline/plan/slabs.h"
#include "tests/support/catch.h"
#include "tests/support/plan_maker.h"

using namespace ggufmill;
using testing::plan_of;
using testing::shape_of;

namespace {

// Kernels that record how they were called. They "decode" F16 to its own bits and "encode" any type to zeros.
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

constexpr ggufmill_kernel kDecode{GGUFMILL_DECODE, 1, 1, 2, 0, 0, "F16", decode, nullptr, nullptr, 0, 0};
constexpr ggufmill_kernel kEncode{GGUFMILL_ENCODE, 8, 32, 34, 0, 0, "Q8_0", encode, nullptr, nullptr, 0, 0};
constexpr ggufmill_module kModule{0, 0, 0, 0, 0, 0, "test", "", "", "", nullptr};

// Binds the only step of a plan to the kernels above.
BoundStep bound_step(const StepLayout& layout) {
  const Step& step = layout.step();
  BoundStep bound;
  bound.layout = &layout;
  bound.step = &step;
  bound.tile_rows = layout.tile_rows();
  bound.computes = true;
  if (step.expression->type->name == "F16") bound.decode = {&kDecode, &kModule};
  for (std::size_t i = 0; i < step.encodings.size(); ++i) {
    BoundEncoding& encoding = bound.encodings.emplace_back();
    encoding.layout = &layout.encodings()[i];
    encoding.encoding = &step.encodings[i];
    encoding.name = &step.name;
    encoding.encode = {&kEncode, &kModule};
  }
  return bound;
}

struct Fixture {
  explicit Fixture(const std::vector<testing::TensorRecipe>& tensors)
      : plan(plan_of(tensors)),
        layouts(layouts_of(plan)),
        steps{bound_step(layouts[0])},
        kernels(Kernels::load({{}, "reference"}).value()) {
    calls = {};
    const SlabRows rows = testing::slabs_of(plan, 1ull << 30).at(0);
    slab = make_slab({{rows}, rows.cost}, 0, steps, weights, false).value();
    std::memset(slab->reads[0].into.data(), 0, slab->reads[0].into.size());
  }
  Status convert_all() {
    for (std::uint32_t tile = 0; tile < slab->tiles; ++tile) {
      BOOST_OUTCOME_TRY(convert_tile(*slab, tile, scratch, *kernels));
    }
    return ok();
  }

  Plan plan;
  std::vector<StepLayout> layouts;
  std::vector<BoundStep> steps;
  std::shared_ptr<const Kernels> kernels;
  ImportanceWeights weights;
  std::unique_ptr<Slab> slab;
  std::vector<float> scratch = std::vector<float>(kTileBytes / sizeof(float));
};

}  // namespace

TEST_CASE("a kernel without memory is not taken for a defective one") {
  constexpr ggufmill_run kNoMemory = [](const ggufmill_call*) -> std::int32_t { return GGUFMILL_NO_MEMORY; };
  constexpr ggufmill_kernel kKernel{GGUFMILL_ENCODE, 8, 32, 34, 0, 0, "Q8_0", kNoMemory, nullptr, nullptr, 0, 0};
  CHECK_THROWS_AS(run_kernel({&kKernel, &kModule}, {}, "t"), std::bad_alloc);
}

TEST_CASE("all encodings are made of one decoding, and one that goes to two places is made once") {
  Fixture fixture({{"t", shape_of({256, 1000}), "F16", {"Q8_0", "Q8_0", "Q8_0"}, false}});
  CHECK(fixture.slab->tiles == 4);  // of 256 rows, which are 64 Ki values
  REQUIRE(fixture.convert_all());
  CHECK(calls.decodes == 4);
  CHECK(calls.decoded_rows == 1000);
  CHECK(calls.encodes == 4);
  CHECK(calls.encoded_from == fixture.scratch.data());
}

TEST_CASE("an F32 target is decoded to its place, and the others are made from it") {
  Fixture fixture({{"t", shape_of({256, 10}), "F16", {"Q8_0", "F32"}, false}});
  std::memset(fixture.slab->reads[0].into.data(), 1, fixture.slab->reads[0].into.size());
  REQUIRE(fixture.convert_all());
  const auto* made = reinterpret_cast<const float*>(fixture.slab->parts[0].encoded_bytes(1).data());
  CHECK(calls.encoded_from == made);
  CHECK(std::accumulate(made, made + 2560, 0.0) == 2560 * 257.0);
}

TEST_CASE("an F32 source is encoded from where it was read to") {
  Fixture fixture({{"t", shape_of({256, 10}), "F32", {"Q8_0"}, false}});
  REQUIRE(fixture.convert_all());
  CHECK(calls.decodes == 0);
  CHECK(static_cast<const void*>(calls.encoded_from) == fixture.slab->reads[0].into.data());
}

TEST_CASE("rows longer than the scratch are decoded into the slab's own memory") {
  Fixture fixture({{"t", shape_of({131072, 3}), "F16", {"Q8_0"}, false}});
  CHECK(fixture.slab->tiles == 3);
  REQUIRE(fixture.convert_all());
  CHECK(calls.encoded_from == reinterpret_cast<const float*>(fixture.slab->parts[0].long_rows.data()) + 2 * 131072);
}

TEST_CASE("a kernel that fails is named with its module") {
  Fixture fixture({{"t", shape_of({256, 10}), "F32", {"Q8_0"}, false}});
  calls.status = 7;
  const Status status = fixture.convert_all();
  REQUIRE(!status);
  CHECK(status.error().code == ExitCode::kInternal);
  CHECK(status.error().what == "tensor 't': kernel Q8_0 of module 'test' failed with status 7");
}

TEST_CASE("a defect of a loaded module is not one of ggufmill") {
  Fixture fixture({{"t", shape_of({256, 10}), "F32", {"Q8_0"}, false}});
  calls.status = 7;
  fixture.steps[0].encodings[0].encode.path = "mods/a.so";
  const Status status = fixture.convert_all();
  REQUIRE(!status);
  CHECK(status.error().code == ExitCode::kKernel);
  CHECK(status.error().what == "tensor 't': kernel Q8_0 of module 'test' failed with status 7");
  CHECK(status.error().detail == "nothing was written");
  CHECK(status.error().help == "the module has a defect; `ggufmill kernels --check mods/a.so` looks for it");
}

TEST_CASE("weights that a kernel cannot represent are an error of the input") {
  Fixture fixture({{"t", shape_of({256, 10}), "F32", {"Q8_0"}, false}});
  calls.status = GGUFMILL_CANNOT_REPRESENT;
  const Status status = fixture.convert_all();
  REQUIRE(!status);
  CHECK(status.error().code == ExitCode::kBadInput);
  CHECK(status.error().what == "tensor 't': values are too large for Q8_0");
}
