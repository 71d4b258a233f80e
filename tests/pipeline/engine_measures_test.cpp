// Checks the measurements in a report: they must match the values of the source and the outputs, and must not depend on
// engine, threads, budget or order.
#include <fmt/format.h>

#include <cstring>

#include "tests/pipeline/engine_fixture.h"
#include "tests/support/catch.h"

using namespace ggufmill;
using testing::EngineFixture;
using testing::options_for;
using testing::shape_of;

namespace {

std::vector<testing::TensorRecipe> recipes() {
  return {
      {"embedding", shape_of({512, 300}), "BF16", {"Q8_0", "IQ4_NL", "F32"}, false},
      {"carried", shape_of({512}), "F32", {"F32", "F32", "F32"}, false},
      {"empty", shape_of({256, 0}), "F32", {"Q8_0", "F16", "F32"}, false},
      {"up", shape_of({512, 700}), "F32", {"Q4_0", "Q8_0", ""}, true},
      {"experts", shape_of({256, 33, 7}), "F16", {"Q4_0", "IQ2_XXS", "F16"}, true},
      {"long", shape_of({100000 / 32 * 32, 5}), "F16", {"Q8_0", "Q4_1", ""}, false},
      {"swapped", shape_of({256, 500}), "BF16", {"BF16", "Q8_0", "F32"}, false, true},
  };
}

EngineFixture& fixture() {
  static EngineFixture made(recipes());
  made.plan.report.error = made.plan.report.matrices = true;
  return made;
}

using Results = std::vector<StepResult>;

Results run(const EngineOptions& options) {
  const Result<RunReport> report = fixture().run(options);
  if (!report) FAIL(render(report.error()));
  fixture().take_outputs();
  return report.value().steps;
}

// Returns all bits of the sums as text, so that any difference is visible.
std::string text_of(const ErrorSums& sums) {
  return fmt::format("{} {} {:a} {:a} {:a} {:a} {:a} {:a} {:a}\n", sums.count, sums.not_finite, sums.difference,
                     sums.reference, sums.value, sums.product, sums.weighted_difference, sums.weighted_reference,
                     sums.largest);
}

std::string text_of(const Results& results) {
  std::string text;
  for (const StepResult& step : results)
    for (const TargetResult& encoding : step.encodings) {
      text += encoding.error ? text_of(*encoding.error) : "-\n";
      for (const ErrorSums& matrix : encoding.matrices) text += text_of(matrix);
    }
  return text;
}

const std::string& expected() {
  static const std::string text = [] {
    fixture().plan.limits = {64 << 20, 1};
    return text_of(run(options_for(EngineKind::kSimple)));
  }();
  return text;
}

}  // namespace

TEST_CASE("what is encoded is measured, what is copied or only decoded is not") {
  fixture().plan.limits = {64 << 20, 2};
  const Results results = run(options_for(EngineKind::kGraph));
  const std::vector<Step>& steps = fixture().plan.steps;
  REQUIRE(results.size() == steps.size());
  for (std::size_t s = 0; s < results.size(); ++s)
    for (std::size_t e = 0; e < results[s].encodings.size(); ++e) {
      const Encoding& encoding = steps[s].encodings[e];
      const std::optional<ErrorSums>& error = results[s].encodings[e].error;
      INFO(steps[s].name << " " << encoding.type->name);
      CHECK(error.has_value() == (encoding.type != steps[s].expression->type && encoding.type->name != "F32"));
      if (!error) continue;
      CHECK(error->count == steps[s].expression->shape.elements());
      CHECK(error->weighted == (encoding.importance != nullptr));
      CHECK(error->difference > 0);
    }
}

TEST_CASE("the figures of all experts are together those of their tensor") {
  fixture().plan.limits = {64 << 20, 2};
  const Results results = run(options_for(EngineKind::kGraph));
  std::size_t measured = 0;
  for (std::size_t s = 0; s < results.size(); ++s)
    for (const TargetResult& encoding : results[s].encodings) {
      const Shape& shape = fixture().plan.steps[s].expression->shape;
      CHECK(encoding.matrices.size() == (encoding.error && shape.rank == 3 ? shape.dims[2] : 0));
      if (encoding.matrices.empty()) continue;
      ++measured;
      ErrorSums all = encoding.matrices.front();
      for (std::size_t m = 1; m < encoding.matrices.size(); ++m) all.add(encoding.matrices[m]);
      CHECK(all.count == encoding.error->count);
      CHECK(all.largest == encoding.error->largest);
      CHECK(all.reference == Approx(encoding.error->reference).epsilon(1e-14));
      CHECK(all.difference == Approx(encoding.error->difference).epsilon(1e-14));
      CHECK(all.weighted_difference == Approx(encoding.error->weighted_difference).epsilon(1e-14));
      CHECK(all.weighted_reference == Approx(encoding.error->weighted_reference).epsilon(1e-14));
    }
  CHECK(measured == 2);
}

TEST_CASE("the figures are those of the values, computed plainly") {
  EngineFixture plain({{"t", shape_of({64, 50}), "F32", {"Q8_0"}, true}});
  plain.plan.report.error = true;
  const RunReport report = plain.run().value();
  const std::string out = plain.take_outputs()[0];
  std::vector<float> a(64 * 50), b(64 * 50);
  std::FILE* source = std::fopen(plain.path("source.gguf").c_str(), "rb");
  std::fseek(source, static_cast<long>(plain.source_offset(0)), SEEK_SET);
  REQUIRE(std::fread(a.data(), sizeof(float), a.size(), source) == a.size());
  std::fclose(source);
  const KernelCall call{out.data() + plain.plan.steps[0].encodings[0].places[0].offset, b.data(), 50, 64, nullptr};
  REQUIRE(call_kernel(*testing::reference_kernels().decode(type_named("Q8_0").id), call) == GGUFMILL_OK);
  const std::vector<float> weights = [] {
    std::vector<float> all(64);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = testing::importance_value(0, i);
    return all;
  }();
  DifferenceSums sums;
  sums.add_rows(a, b, 64, weights.data());
  const ErrorSums expected_sums = sums.rounded(), measured = *report.steps[0].encodings[0].error;
  CHECK(measured.difference == expected_sums.difference);
  CHECK(measured.product == expected_sums.product);
  CHECK(measured.weighted_difference == expected_sums.weighted_difference);
  CHECK(measured.weighted_reference == expected_sums.weighted_reference);
  CHECK(measured.largest == expected_sums.largest);
}

TEST_CASE("any number of threads, any budget: the same figures") {
  const std::string& text = expected();
  const double factor = GENERATE(1.0, 1.7, 5.0);
  fixture().plan.limits.memory =
      static_cast<std::uint64_t>(static_cast<double>(least_budget(layouts_of(fixture().plan))) * factor);
  fixture().plan.limits.threads = GENERATE(1u, 2u, 8u);
  CHECK(text_of(run(options_for(EngineKind::kGraph))) == text);
}

TEST_CASE("either engine, any slabs, any order: the same figures") {
  const std::string& text = expected();
  fixture().plan.limits = {16 << 20, 2};
  EngineOptions options = options_for(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
  options.shuffle_seed = GENERATE(0u, 1u, 2u);
  options.slab_bytes = GENERATE(1u, 2000000u, 16000000u);
  CHECK(text_of(run(options)) == text);
}

TEST_CASE("the bytes are the same with and without measuring") {
  fixture().plan.limits = {16 << 20, 2};
  const std::vector<std::string> expected_bytes = fixture().expected_outputs();
  fixture().plan.report.error = GENERATE(true, false);
  const RunReport report = fixture().run().value();
  const bool same = fixture().take_outputs() == expected_bytes;
  CHECK(same);
  CHECK(report.steps.empty() != fixture().plan.report.error);
}
