// Tests reusing tensors from an earlier output.

#include <fmt/format.h>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/plan/written.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace {

const Context& reuse_context() {
  static const Context one = Context::create({{}, "reference"}).value();
  return one;
}

// A model of four tensors, and earlier.gguf with its manifest: all Q8_0, in two shards.
class Earlier {
 public:
  Earlier() {
    write_model(1);
    run(plan("{gguf: {path: " + path("earlier.gguf") + ", shard_tensors: 3}, quantize: {type: Q8_0}}"));
  }
  void write_model(float first) {
    GgufBuilder model;
    for (int i = 0; i < 4; ++i) {
      model.add_tensor(fmt::format("blk.{}.ffn_down.weight", i), {256, 3});
      std::vector<float> values(768);
      for (std::size_t k = 0; k < values.size(); ++k) values[k] = first + static_cast<float>(k % 7) * 0.01f * (i + 1);
      model.tensors.back().data = float_bytes(values);
    }
    model.write(path("model.gguf"));
  }
  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string shard(int number) const { return path(fmt::format("earlier-0000{}-of-00002.gguf", number)); }

  Result<Plan> try_plan(const std::string& output, const std::string& more = "") const {
    const std::string text = fmt::format("version: 1\nmanifest: true\n{}source: {{gguf: {}}}\noutputs:\n  - {}\n", more,
                                         path("model.gguf"), output);
    const auto job = reuse_context().parse_job(text, "job.yaml");
    if (!job) FAIL(render(job.error()));
    return reuse_context().plan(job.value());
  }
  Plan plan(const std::string& output, const std::string& more = "") const {
    auto plan = try_plan(output, more);
    if (!plan) FAIL(render(plan.error()));
    return std::move(plan).value();
  }
  // Returns an output `name` with two tensors as in earlier.gguf and two of another type.
  std::string mixture(const std::string& name, const std::string& reuse = "") const {
    return fmt::format("{{gguf: {}, quantize: {{type: Q8_0, tensors: [{{match: 'blk.[01]', type: Q4_0}}]}}{}}}",
                       path(name), reuse.empty() ? "" : ", reuse: " + reuse);
  }
  static void run(const Plan& plan) {
    if (const auto report = reuse_context().run(plan, {}); !report) FAIL(render(report.error()));
  }

 private:
  TempDir folder_;
};

std::size_t taken(const Plan& plan) {
  return static_cast<std::size_t>(
      std::ranges::count_if(plan.steps, [](const Step& step) { return step.encodings.front().taken.has_value(); }));
}

}  // namespace

TEST_CASE("what an earlier output has is taken from it, with the same bytes") {
  const Earlier earlier;
  earlier.run(earlier.plan(earlier.mixture("made.gguf")));
  const Plan plan = earlier.plan(earlier.mixture("taken.gguf", earlier.shard(1)));
  CHECK(taken(plan) == 2);
  CHECK(plan.warnings.empty());
  CHECK(plan.outputs[0].tensors[3].reason.ends_with("; taken from earlier-00002-of-00002.gguf"));
  earlier.run(plan);
  CHECK(read_text(earlier.path("taken.gguf")) == read_text(earlier.path("made.gguf")));
}

TEST_CASE("where all is taken the source's weights are not read") {
  const Earlier earlier;
  const Plan plan = earlier.plan("{gguf: " + earlier.path("new.gguf") +
                                 ", quantize: {type: Q8_0}, reuse: " + earlier.shard(1) + ".manifest.json}");
  CHECK(taken(plan) == 4);
  CHECK(plan.bytes_read() == 4 * 3 * 256 / 32 * 34);
}

TEST_CASE("an output is of the same identity, whatever is taken, and can be taken from in turn") {
  const Earlier earlier;
  const Plan plan = earlier.plan(earlier.mixture("new.gguf", earlier.shard(1)));
  CHECK(identity_of(plan, 0) == identity_of(earlier.plan(earlier.mixture("new.gguf")), 0));
  earlier.run(plan);
  CHECK(taken(earlier.plan(earlier.mixture("newer.gguf", earlier.path("new.gguf")))) == 4);
}

TEST_CASE("a plan that takes tensors is written and read back") {
  const Earlier earlier;
  const Plan plan = earlier.plan(earlier.mixture("new.gguf", earlier.shard(1)));
  const Plan again = read_plan(write_plan(plan), "plan").value();
  CHECK(taken(again) == 2);
  CHECK(write_plan(again) == write_plan(plan));
  earlier.run(again);
}

TEST_CASE("nothing is taken of another source, or where what is not finite is treated in another way") {
  Earlier earlier;
  const std::string output = earlier.mixture("new.gguf", earlier.shard(1));
  const std::string warning =
      fmt::format("{}: '{}' has no tensors that this output can reuse", earlier.path("new.gguf"), earlier.shard(1));
  const Plan zeroed = earlier.plan(output, "nonfinite: zero\n");
  CHECK(taken(zeroed) == 0);
  CHECK(zeroed.warnings == std::vector{warning});
  earlier.write_model(2);
  const Plan changed = earlier.plan(output);
  CHECK(taken(changed) == 0);
  CHECK(changed.warnings == std::vector{warning});
}

TEST_CASE("an earlier output that has changed is found before anything is written") {
  const Earlier earlier;
  const Plan plan = earlier.plan(earlier.mixture("new.gguf", earlier.shard(1)));
  std::string text = read_text(earlier.shard(2));
  text[text.size() - 40] ^= 1;
  write_text(earlier.shard(2), text);
  const Plan after = earlier.plan(earlier.mixture("new.gguf", earlier.shard(1)));
  const auto run = reuse_context().run(after, {});
  REQUIRE_FALSE(run);
  CHECK(run.error().code == ExitCode::kVerification);
  CHECK(run.error().where == earlier.shard(2));
  CHECK(run.error().what == "the bytes of tensor 'blk.3.ffn_down.weight' do not match its manifest");
  CHECK_FALSE(fs::exists(earlier.path("new.gguf")));
  CHECK(reuse_context().run(plan, {}).error().code == ExitCode::kBadInput);  // planned before the change
}

TEST_CASE("an earlier output without a manifest, or of another size, is refused") {
  const Earlier earlier;
  const auto bare = earlier.try_plan(earlier.mixture("new.gguf", earlier.path("model.gguf")));
  REQUIRE_FALSE(bare);
  CHECK(bare.error().code == ExitCode::kBadInput);
  CHECK(bare.error().where == earlier.path("model.gguf"));
  write_text(earlier.shard(2), read_text(earlier.shard(2)) + "x");
  const auto longer = earlier.try_plan(earlier.mixture("new.gguf", earlier.shard(1)));
  REQUIRE_FALSE(longer);
  CHECK(longer.error().where == earlier.shard(2));
}
