#include "pipeline/plan/step_maker.h"

#include "tests/support/catch.h"
#include "tests/support/plan_maker.h"

using namespace ggufmill;
using testing::shape_of;

namespace {

constexpr std::uint64_t kRow = 256 * sizeof(float);

SourceRef source_file() {
  static const auto source = std::make_shared<const SourceFile>(SourceFile{"model", 1ull << 30, 0, 0});
  return source;
}

// A kept F32 tensor [256] at a multiple of its size.
Tensor norm(const std::string& name, std::uint64_t number) {
  Tensor tensor;
  tensor.name = name;
  tensor.type = &type_named("F32");
  tensor.expression = expressions::extent(*tensor.type, shape_of({256}), {source_file(), number * kRow, kRow}).value();
  return tensor;
}

// The tensor as a stage makes it for each output: the same values in a node of its own.
Tensor remade(Tensor tensor) {
  tensor.expression = std::make_shared<const Expression>(*tensor.expression);
  return tensor;
}

Place place_in(std::uint32_t output, std::size_t tensor) { return {output, 0, tensor, tensor * kRow}; }

std::uint64_t offset_of(const Step& step) { return step.expression->extent.offset; }

// Two steps with a place each, and what is wanted there.
struct TwoNorms {
  TwoNorms() {
    maker.add(norm("a", 0), place_in(0, 0), kRow, false);
    maker.add(norm("b", 1), place_in(0, 1), kRow, false);
    steps = maker.take();
  }
  std::string fault() const {
    const Status proof = prove_steps(steps, maker.wanted());
    return proof ? "" : proof.error().what;
  }
  Place& place_of(std::size_t step) { return steps[step].encodings[0].places[0]; }

  StepMaker maker{std::span<const Model>()};
  std::vector<Step> steps;
};

}  // namespace

TEST_CASE("tensors that every output remakes keep their own step, wherever their nodes are allocated") {
  StepMaker maker{std::span<const Model>()};
  for (std::uint32_t output = 0; output < 4; ++output)
    for (std::size_t i = 0; i < 64; ++i)
      maker.add(remade(norm("norm", i)), place_in(output, i), kRow, false);  // its node is free to be used again
  const std::vector<Step> steps = maker.take();
  REQUIRE(steps.size() == 64);
  for (const Step& step : steps)
    for (const Place& place : step.encodings[0].places) CHECK(place.offset == offset_of(step));
  CHECK(prove_steps(steps, maker.wanted()));
}

TEST_CASE("correct steps are proven") { CHECK(TwoNorms().fault().empty()); }

TEST_CASE("the proof finds places that were exchanged") {
  TwoNorms norms;
  std::swap(norms.place_of(0), norms.place_of(1));
  CHECK(norms.fault() == "tensor 'b': the plan would write the values of 'a' to it");
}

TEST_CASE("the proof finds a tensor that is not written") {
  TwoNorms norms;
  norms.steps.pop_back();
  CHECK(norms.fault() == "tensor 'b': the plan does not write it");
}

TEST_CASE("the proof finds a place that is written twice") {
  TwoNorms norms;
  norms.steps[1].encodings[0].places.push_back(norms.place_of(0));
  CHECK(norms.fault() == "tensor 'b': the plan writes it to a place that is not its own");
}

TEST_CASE("the proof finds another type") {
  TwoNorms norms;
  norms.steps[0].encodings[0].type = &type_named("F16");
  CHECK(norms.fault() == "tensor 'a': the plan would write it as F16, not as F32");
}

TEST_CASE("the proof finds another byte order") {
  TwoNorms norms;
  norms.steps[0].encodings[0].big_endian = true;
  CHECK_FALSE(norms.fault().empty());
}

TEST_CASE("the proof finds another encoder") {
  TwoNorms norms;
  norms.steps[0].encodings[0].encoder.lattice = Lattice::kAuto;
  CHECK(norms.fault() == "tensor 'a': the plan would encode it with another encoder, importance, or covariance");
}

TEST_CASE("the proof finds a place of another size") {
  StepMaker maker{std::span<const Model>()};
  maker.add(norm("a", 0), place_in(0, 0), kRow + 1, false);
  const std::vector<Step> steps = maker.take();
  const Status proof = prove_steps(steps, maker.wanted());
  REQUIRE_FALSE(proof);
  CHECK(proof.error().code == ExitCode::kInternal);
  CHECK(proof.error().what == "tensor 'a': the plan reserves 1025 bytes for it, which is not its size");
}
