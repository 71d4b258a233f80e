#include "pipeline/plan/written.h"

#include <boost/json.hpp>

#include "pipeline/core/importance.h"
#include "pipeline/io/machine.h"
#include "tests/support/catch.h"
#include "tests/support/plan_maker.h"

using namespace ggufmill;
using testing::plan_of;
using testing::shape_of;

namespace {

Plan sample() {
  Plan plan = plan_of({{"a", shape_of({256, 1000}), "BF16", {"Q4_K", "F16"}, true},
                       {"experts", shape_of({512, 7, 5}), "F16", {"Q8_0", ""}, true, true},
                       {"copied", shape_of({256, 4096}), "Q6_K", {"Q6_K", "Q6_K"}},
                       {"of a checkpoint", shape_of({256, 3}), "F8_E4M3", {"F32", "F8_E4M3"}}},
                      "folder");
  plan.report = {true, "report.json", ""};
  finish_plan(plan);
  plan.warnings = {"of \xff bytes"};
  plan.outputs[0].problems.push_back(usage_error("what", "help"));
  return plan;
}

// Returns a plan that uses every operation.
Plan all_operations() {
  using namespace expressions;
  const auto source = std::make_shared<const SourceFile>(SourceFile{"checkpoint", 1 << 20, 12, 34});
  const auto leaf = [&](const char* type, std::vector<std::uint64_t> dims) {
    const Shape shape = shape_of(std::move(dims));
    return extent(type_named(type), shape, {source, 0, bytes_of(type_named(type), shape.elements()).value()}).value();
  };
  const ExpressionRef values = leaf("F32", {64, 12});
  const ExpressionRef nodes[] = {
      stack({values, values}).value(),
      concat({values, values}, 0).value(),
      slice(values, 1, 2, 5).value(),
      reshape(slice(values, 1, 2, 6).value(), shape_of({128, 3})).value(),
      reorder_rows(values, {3, 4}, {1, 0}).value(),
      transpose(values, {1, 0}).value(),
      cast(values, type_named("BF16")).value(),
      map(values, *find_map_function("add"), 0.1f).value(),
      scale_blocks(values, leaf("F32", {2, 3}), 32, 4).value(),
      add_blocks(values, leaf("F32", {2, 3}), 32, 4).value(),
      lookup(leaf("U8", {32, 3}), leaf("F32", {512})).value(),
      low_rank(low_rank(values, leaf("BF16", {64, 2}), leaf("F32", {2, 12}), 0.1).value(), leaf("F32", {64, 3}),
               leaf("F32", {3, 12}), -1)
          .value(),
      repack(*find_repack_function("mxfp4"), leaf("U8", {32, 3}), leaf("I8", {2, 3})).value(),
      constant(shape_of({3}), {1.5f, 0.1f, -3e-8f}).value(),
  };
  Model model;
  model.files.push_back(source);
  std::vector<std::string> types;
  for (const ExpressionRef& node : nodes) {
    model.tensors.push_back({std::string(name_of(node->operation)), node, node->type, "", nullptr, nullptr, nullptr});
    types.emplace_back(node->type->name);
  }
  return testing::plan_for(std::move(model), {types}, "folder", 64 << 20);
}

void check_round(const Plan& plan) {
  const std::string text = write_plan(plan);
  const Result<Plan> again = read_plan(text, "plan.json");
  if (!again) FAIL(render(again.error()));
  CHECK(write_plan(again.value()) == text);
  CHECK(again.value().units == plan.units);
  CHECK(again.value().least_memory == plan.least_memory);
  CHECK(text.find("limits") == std::string::npos);  // they belong to the machine
}

Error error_of(std::string text) { return read_plan(text, "plan.json").error(); }

std::string changed(const std::function<void(boost::json::object&)>& change) {
  boost::json::value root = boost::json::parse(write_plan(sample()));
  change(root.as_object());
  return boost::json::serialize(root);
}

}  // namespace

TEST_CASE("a plan is written and read back to an equal one") {
  check_round(sample());
  check_round(all_operations());
  Plan swapped = sample();
  swapped.steps[0].encodings[0].big_endian = true;
  finish_plan(swapped);
  check_round(swapped);
  CHECK(identity_of(swapped) != identity_of(sample()));
}

TEST_CASE("a written plan says what a choice of types gained") {
  Plan plan = sample();
  plan.outputs[0].choice = "loss 0.1 by 'stream'";
  check_round(plan);
  CHECK(read_plan(write_plan(plan), "plan.json").value().outputs[0].choice == "loss 0.1 by 'stream'");
}

TEST_CASE("a plan with encoders is written and read back to an equal one") {
  Plan searched = sample();
  Encoding& encoding = searched.steps[0].encodings[0];
  encoding.encoder = encoder_for(search_encoder(), *encoding.type, encoding.importance != nullptr);
  check_round(searched);
  encoding.encoder = {&reference_method(), 0, {}, Lattice::kAuto};
  check_round(searched);
}

TEST_CASE("a plan with merged and substituted importance is written and read back to an equal one") {
  Plan plan = sample();
  const auto experts = std::ranges::find(plan.steps, "experts", &Step::name);
  Encoding& encoding = experts->encodings[0];
  Importance importance = *encoding.importance;
  importance.shares.push_back(importance.shares[0]);
  importance.shares[1].scale = {7, 0.1, 512};
  importance.substitute = std::make_shared<const std::vector<float>>(512, 0.1f);
  importance.substituted = {1, 4};
  encoding.importance = std::make_shared<const Importance>(std::move(importance));
  finish_plan(plan);
  const auto read = read_plan(write_plan(plan), "plan.json");
  REQUIRE(read);
  CHECK(write_plan(read.value()) == write_plan(plan));
}

TEST_CASE("a written plan with an encoder that its type does not have is refused") {
  CHECK(error_of(changed([](auto& root) {
          auto& step = root["steps"].as_array()[0].as_object();
          step["encodings"].as_array()[1].as_object()["encoder"] = {{"method", "reference"}, {"lattice", "auto"}};
        })).what == "not a valid plan: F16 has no encoder 'reference with lattice'");
}

TEST_CASE("the encoder is a part of the identity") {
  const Plan plan = sample();
  Plan other = plan;
  Encoder& encoder = other.steps[0].encodings[0].encoder;
  encoder = {&reference_method(), 0, {}, Lattice::kAuto};
  const std::string with_lattice = identity_of(other);
  CHECK(with_lattice != identity_of(plan));
  encoder = {&search_method(), 2, SearchWeights::kPlain};
  const std::string searched = identity_of(other);
  CHECK(searched != with_lattice);
  encoder.effort = 3;
  CHECK(identity_of(other) != searched);
}

TEST_CASE("the identity is of what decides the bytes, not of paths, limits and reports") {
  const Plan plan = sample();
  Plan other = plan;
  other.limits.memory = 1 << 30;
  other.limits.threads = 7;
  other.report = {};
  other.file = "another.yaml";
  CHECK(identity_of(other) == identity_of(plan));
  other.outputs[0].files[0].header += "x";
  CHECK(identity_of(other) != identity_of(plan));
  const Plan of_types = plan_of({{"a", shape_of({256, 1000}), "BF16", {"Q4_K"}}});
  CHECK(identity_of(of_types) != identity_of(plan_of({{"a", shape_of({256, 1000}), "BF16", {"Q5_K"}}})));
  CHECK(identity_of(of_types) == identity_of(plan_of({{"b", shape_of({256, 1000}), "BF16", {"Q4_K"}}}, "elsewhere")));
}

TEST_CASE("a job that gives no memory limit has at most a quarter of the machine's, whatever it does") {
  const std::uint64_t most = std::min(Limits::kDefaultMemory, usable_memory() / 4);
  CHECK(memory_budget({}) == most);
  CHECK(memory_budget(make_comparison({}, {}, {}, {}).limits) == most);
  CHECK(memory_budget(make_measurement({}, {}, {}).limits) == most);
  CHECK(memory_budget(make_check({}, {}).limits) == most);
  CHECK(memory_budget({.memory = std::uint64_t{1} << 60}) == std::uint64_t{1} << 60);
}

TEST_CASE("units are of about 64 MiB, whole rows, whatever the limits") {
  Plan plan = plan_of({{"a", shape_of({1 << 20, 1000}), "F32", {"F16"}}, {"b", shape_of({32}), "F32", {"F32"}}});
  REQUIRE(plan.units.size() == 64);
  CHECK(plan.units[0] == Unit{0, 0, 16});
  CHECK(plan.units[62] == Unit{0, 985, 15});
  CHECK(plan.units[63] == Unit{1, 0, 1});
}

TEST_CASE("everything in a written plan is checked") {
  CHECK(error_of("{").code == ExitCode::kBadInput);
  CHECK(error_of("[]").where == "plan.json");
  CHECK(error_of(changed([](auto& root) { root["ggufmill"] = "9.9.9"; })).what.find("was not written by") !=
        std::string::npos);
  CHECK(error_of(changed([](auto& root) {
          root["expressions"].as_array()[0].as_object()["extent"].as_object()["offset"] = 1ull << 60;
        })).what == "not a valid plan: an extent lies beyond its source");
  CHECK(error_of(changed([](auto& root) {
          root["steps"]
              .as_array()[0]
              .as_object()["encodings"]
              .as_array()[0]
              .as_object()["places"]
              .as_array()[0]
              .as_array()[3] = 1ull << 60;
        })).what == "not a valid plan: a place lies beyond its file");
  CHECK(error_of(changed([](auto& root) { root["steps"].as_array()[0].as_object()["expression"] = 99; })).code ==
        ExitCode::kBadInput);
  CHECK(error_of(changed([](auto& root) { root["identity"] = "0"; })).what ==
        "not a valid plan: its identity belongs to another plan");
}

TEST_CASE("a model that claims more bytes than any is refused, not cut into units") {
  class Giant final : public Source {
    Result<Model> open() const override {
      const auto file = std::make_shared<const SourceFile>(SourceFile{"giant.gguf", std::uint64_t{1} << 62, 0, 0});
      Model model;
      model.files = {file};
      Tensor tensor;
      tensor.name = "a";
      tensor.type = &type_named("F32");
      tensor.expression = expressions::extent(*tensor.type, shape_of({1 << 20, std::uint64_t{1} << 38}),
                                              {file, 0, std::uint64_t{1} << 60})
                              .value();
      model.tensors.push_back(tensor);
      return model;
    }
  };
  class AsItIs final : public Sink {
    Result<std::vector<OutputFile>> layout(const Model&) const override {
      return std::vector<OutputFile>{{"out", "", {{0, 0, std::uint64_t{1} << 60}}, std::uint64_t{1} << 60}};
    }
  };
  Job job;
  job.source = std::make_shared<Giant>();
  job.outputs.push_back({std::make_shared<AsItIs>(), {}});
  Diagnostics errors;
  CHECK_FALSE(make_plan(job, errors));
  REQUIRE(errors.errors().size() == 1);
  CHECK(errors.errors()[0].code == ExitCode::kBadInput);
  CHECK(errors.errors()[0].what ==
        "the model claims 1152921504606846976 bytes of tensors; the limit is 281474976710656");
}
