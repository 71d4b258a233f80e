// The figures of a report: those of the source's and the outputs' values, whatever the engine, threads, budget and
// order.
#include <cstring>

#include "pipeline/plan/slabs.h"
#include "tests/pipeline/engine_fixture.h"
#include "tests/support/catch.h"

using namespace ggufmill;
using testing::EngineFixture;
using testing::options_for;
using testing::shape_of;
using testing::SteppedImportance;

namespace {

std::vector<testing::TensorRecipe> recipes() {
  const auto weights = [](std::uint64_t columns) { return std::make_shared<SteppedImportance>(columns); };
  return {
      {"embedding", shape_of({512, 300}), "BF16", {"Q8_0", "IQ4_NL", "F32"}, nullptr},
      {"carried", shape_of({512}), "F32", {"F32", "F32", "F32"}, nullptr},
      {"empty", shape_of({256, 0}), "F32", {"Q8_0", "F16", "F32"}, nullptr},
      {"up", shape_of({512, 700}), "F32", {"Q4_0", "Q8_0", ""}, weights(512)},
      {"experts", shape_of({256, 33, 7}), "F16", {"Q4_0", "IQ2_XXS", "F16"}, weights(256)},
      {"long", shape_of({100000 / 32 * 32, 5}), "F16", {"Q8_0", "Q4_1", ""}, nullptr},
      {"swapped", shape_of({256, 500}), "BF16", {"BF16", "Q8_0", "F32"}, nullptr, true},
  };
}

EngineFixture& fixture() {
  static EngineFixture made(recipes());
  made.plan.report.error = true;
  return made;
}

using Results = std::vector<std::vector<TargetResult>>;

Results run(const RunOptions& options) {
  const Result<RunReport> report = fixture().run(options);
  if (!report) FAIL(render(report.error()));
  CHECK(report.value().peak_budget <= fixture().plan.limits.memory);
  fixture().take_outputs();
  return report.value().targets;
}

// All bits of the sums, as text: what differs is seen.
std::string text_of(const Results& results) {
  std::string text;
  for (const auto& route : results)
    for (const TargetResult& target : route) {
      if (!target.error) {
        text += "-\n";
        continue;
      }
      const ErrorSums& sums = *target.error;
      char line[400];
      std::snprintf(line, sizeof line, "%llu %llu %a %a %a %a %a %a %a\n", static_cast<unsigned long long>(sums.count),
                    static_cast<unsigned long long>(sums.not_finite), sums.difference, sums.reference, sums.value,
                    sums.product, sums.weighted_difference, sums.weighted_reference, sums.largest);
      text += line;
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

TEST_CASE("what is converted is measured, what is carried or only decoded is not") {
  fixture().plan.limits = {64 << 20, 2};
  const Results results = run(options_for(EngineKind::kGraph));
  REQUIRE(results.size() == recipes().size());
  for (std::size_t r = 0; r < results.size(); ++r)
    for (std::size_t t = 0; t < results[r].size(); ++t) {
      const Route& route = fixture().plan.routes[r];
      const Tensor& tensor = tensor_of(fixture().plan, route.targets[t]);
      const bool measured = tensor.converted() && tensor.type->name != "F32" && tensor.shape.elements() > 0;
      INFO(tensor.name << " " << tensor.type->name);
      CHECK(results[r][t].error.has_value() == measured);
      if (!measured) continue;
      CHECK(results[r][t].error->count == tensor.shape.elements());
      CHECK(results[r][t].error->weighted == (tensor.importance != nullptr));
      CHECK(results[r][t].error->difference > 0);
      CHECK(results[r][t].seconds > 0);
    }
}

TEST_CASE("the figures are those of the values, computed plainly") {
  EngineFixture plain({{"t", shape_of({64, 50}), "F32", {"Q8_0"}, std::make_shared<SteppedImportance>(64)}});
  plain.plan.report.error = true;
  const RunReport report = plain.run().value();
  const std::string out = plain.take_outputs()[0];
  std::vector<float> a(64 * 50), b(64 * 50);
  std::FILE* source = std::fopen(plain.path("source.gguf").c_str(), "rb");
  std::fseek(source, static_cast<long>(plain.plan.routes[0].source.offset), SEEK_SET);
  REQUIRE(std::fread(a.data(), sizeof(float), a.size(), source) == a.size());
  std::fclose(source);
  const ggufmill_call call{out.data() + plain.plan.routes[0].targets[0].offset, b.data(), 50, 64, nullptr};
  REQUIRE(testing::reference_kernels().decode(type_named("Q8_0").id)->kernel->run(&call) == GGUFMILL_OK);
  const std::vector<float> weights = SteppedImportance(64).weights(0).value();
  DifferenceSums sums;
  sums.add_rows(a, b, 64, weights.data());
  const ErrorSums expected_sums = sums.rounded(), measured = *report.targets[0][0].error;
  CHECK(measured.difference == expected_sums.difference);
  CHECK(measured.product == expected_sums.product);
  CHECK(measured.weighted_difference == expected_sums.weighted_difference);
  CHECK(measured.weighted_reference == expected_sums.weighted_reference);
  CHECK(measured.largest == expected_sums.largest);
}

TEST_CASE("any number of threads, any budget: the same figures") {
  const std::string& text = expected();
  const double factor = GENERATE(1.0, 1.7, 5.0);
  fixture().plan.limits.memory = static_cast<std::uint64_t>(static_cast<double>(least_budget(fixture().plan)) * factor);
  fixture().plan.limits.threads = GENERATE(1u, 2u, 8u);
  CHECK(text_of(run(options_for(EngineKind::kGraph))) == text);
}

TEST_CASE("either engine, any slabs, any order: the same figures") {
  const std::string& text = expected();
  fixture().plan.limits = {16 << 20, 2};
  RunOptions options = options_for(GENERATE(EngineKind::kGraph, EngineKind::kSimple));
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
  CHECK(report.targets.empty() != fixture().plan.report.error);
}
