// Complete runs into a store other than local files.

#include <fmt/format.h>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/pipeline/memory_store.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using ggufmill::testing::MemoryStore;

namespace {

const Context& context() {
  static const Context one = Context::create({{}, "reference"}).value();
  return one;
}

// The one row that makes memory:// a scheme of outputs.
const MemoryStore& memory() {
  static const MemoryStore store;
  static const bool added = (store_schemes().push_back(&store), true);
  static_cast<void>(added);
  return store;
}

// A model of six tensors; outputs in two shards and in one file, with manifests and a report.
class JobFolder {
 public:
  JobFolder() {
    memory();
    GgufBuilder model;
    for (int i = 0; i < 6; ++i) model.add_tensor(fmt::format("blk.{}.ffn_down.weight", i), {256, 3});
    for (std::size_t t = 0; t < model.tensors.size(); ++t) {
      std::vector<float> values(model.tensors[t].data.size() / 4);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1 + static_cast<float>(t + i % 7) * 0.01f;
      model.tensors[t].data = float_bytes(values);
    }
    model.write(path("model.gguf"));
  }
  std::string path(const std::string& name) const { return folder_.file(name); }
  Plan plan(const std::string& a, const std::string& b, const std::string& report) const {
    const auto job = context().parse_job(
        fmt::format("version: 1\nmanifest: true\n{}source: {{gguf: {}}}\noutputs:\n"
                    "  - {{gguf: {{path: '{}', shard_tensors: 4}}, quantize: {{type: Q8_0}}}}\n"
                    "  - {{gguf: '{}', quantize: {{type: Q4_0}}}}\n",
                    report.empty() ? "" : fmt::format("report: {{json: '{}'}}\n", report), path("model.gguf"), a, b),
        "job.yaml");
    if (!job) FAIL(render(job.error()));
    return context().plan(job.value()).value();
  }
  Plan plan_in_memory(const std::string& folder) const {
    return plan("memory://" + folder + "/a.gguf", "memory://" + folder + "/b.gguf", "");
  }

 private:
  TempDir folder_;
};

void run(const Plan& plan, const RunOptions& options = {}) {
  const auto ran = context().run(plan, options);
  if (!ran) FAIL(render(ran.error()));
}

}  // namespace

TEST_CASE("a store in memory gets the files of a run, and the same bytes as local files") {
  const JobFolder folder;
  fs::create_directory(folder.path("out"));
  RunOptions options;
  options.engine = GENERATE(EngineKind::kSimple, EngineKind::kGraph);
  const std::string to = options.engine == EngineKind::kSimple ? "simple" : "graph";
  run(folder.plan(folder.path("out/a.gguf"), folder.path("out/b.gguf"), ""), options);
  run(folder.plan_in_memory(to), options);
  std::size_t compared = 0;
  for (const auto& file : fs::directory_iterator(folder.path("out"))) {
    const std::string name = file.path().filename();
    CAPTURE(name);
    const auto stored = memory().files();
    const auto found = stored.find("memory://" + to + "/" + name);
    REQUIRE(found != stored.end());
    const bool same = found->second == read_text(file.path());
    if (!name.ends_with(".manifest.json")) CHECK(same);  // which contain times
    ++compared;
  }
  CHECK(compared == 7);  // three files of two outputs, and a manifest and a list of checksums for each output
}

TEST_CASE("preflight asks the store whether an output exists") {
  const JobFolder folder;
  const Plan plan = folder.plan_in_memory("exists");
  REQUIRE(context().check(plan, false).empty());
  run(plan);
  const std::vector<Error> errors = context().check(plan, false);
  REQUIRE(errors.size() == 7);
  CHECK(errors[0].what == "the output already exists");
  CHECK(context().check(plan, true).empty());
}

TEST_CASE("a run that fails leaves nothing in the store, and no journal") {
  const JobFolder folder;
  const Plan plan = folder.plan_in_memory("stopped");
  std::atomic<bool> stop = true;
  RunOptions options;
  options.stop = &stop;
  REQUIRE_FALSE(context().run(plan, options));
  CHECK_FALSE(memory().files().contains("memory://stopped/b.gguf"));
  CHECK(context().leftovers(plan).files.empty());
  run(plan);
}

TEST_CASE("a report is written to the store of its path") {
  const JobFolder folder;
  run(folder.plan(folder.path("a.gguf"), folder.path("b.gguf"), "memory://report/run.json"));
  CHECK(memory().files().at("memory://report/run.json").starts_with("{"));
}

TEST_CASE("the outputs of a run must be in one store") {
  const JobFolder folder;
  const Plan plan = folder.plan(folder.path("a.gguf"), "memory://mixed/b.gguf", "");
  const std::vector<Error> errors = context().check(plan, false);
  REQUIRE(errors.size() == 1);
  CHECK(errors[0].what == "the outputs of a run are in different stores");
}

TEST_CASE("an output without a store is refused") {
  const JobFolder folder;
  const Plan plan = folder.plan("nothing://a.gguf", "nothing://b.gguf", "");
  const std::vector<Error> errors = context().check(plan, false);
  REQUIRE_FALSE(errors.empty());
  CHECK(errors[0].what == "outputs cannot be written to addresses of the scheme 'nothing'");
}
