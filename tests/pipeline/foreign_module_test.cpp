// Tests a foreign type whose module was rebuilt: results of one build must never be mistaken for those of the other.

#include <fmt/format.h>

#include <atomic>

#include "pipeline/api/context.h"
#include "pipeline/manifest/manifest.h"
#include "pipeline/plan/written.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/hooked_calls.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

Context context_with(const std::string& module) {
  return Context::create({{GGUFMILL_TEST_MODULES "/" + module}, ""}).value();
}

const Context& first() {
  static const Context one = context_with("own_type");
  return one;
}

// Returns a context whose module has the same name, version and type, but produces other bytes.
const Context& rebuilt() {
  static const Context one = context_with("own_type_rebuilt");
  return one;
}

class Folder {
 public:
  Folder() {
    GgufBuilder model;
    for (int i = 0; i < 12; ++i) {
      model.add_tensor(fmt::format("blk.{}.ffn_down.weight", i), {256, 8});
      std::vector<float> values(2048, static_cast<float>(i + 1));
      model.tensors.back().data = float_bytes(values);
    }
    model.write(path("in.gguf"));
  }
  std::string path(const std::string& name) const { return folder_.file(name); }

  Job job(const Context& context, const std::string& quantize = "{type: X_OWN}", const std::string& output = "out.gguf",
          const std::string& more = "") const {
    auto job = context.parse_job(
        fmt::format("version: 1\nmanifest: true\nsource: {{gguf: {}}}\noutputs: [{{gguf: {}, quantize: {}{}}}]\n",
                    path("in.gguf"), path(output), quantize, more),
        "job.yaml");
    if (!job) FAIL(render(job.error()));
    return std::move(job).value();
  }
  Plan plan(const Context& context, const std::string& output = "out.gguf", const std::string& more = "") const {
    auto plan = context.plan(job(context, "{type: X_OWN}", output, more));
    if (!plan) FAIL(render(plan.error()));
    return std::move(plan).value();
  }
  // Returns the bytes that an uninterrupted run writes.
  std::string made(const Context& context, const std::string& output, const std::string& more = "") const {
    const auto report = run(context, plan(context, output, more), simple());
    if (!report) FAIL(render(report.error()));
    return read_text(path(output));
  }

  // Runs with one tensor per slab.
  static Result<RunReport> run(const Context& context, const Plan& plan, const RunOptions& options) {
    EngineOptions engine = engine_options(options);
    engine.slab_bytes = 32 << 10;
    return run_resumably(plan, context.kernels(), options, engine);
  }
  static RunOptions simple() {
    RunOptions options;
    options.engine = EngineKind::kSimple;
    options.overwrite = true;
    return options;
  }

 private:
  TempDir folder_;
};

}  // namespace

TEST_CASE("a plan and its manifest name the module of a foreign type") {
  const Folder folder;
  const Plan plan = folder.plan(first());
  REQUIRE(plan.modules.size() == 1);
  CHECK(plan.modules[0].type == "X_OWN");
  CHECK(plan.modules[0].name == "variant");
  CHECK(plan.modules[0].version == "1");
  CHECK(plan.modules[0].xxh3.size() == 32);
  folder.made(first(), "out.gguf");
  CHECK(load_manifest(plan.manifest_path(0)).value().modules == plan.modules);
  CHECK(read_plan(write_plan(plan), "plan.json", first().kernels().types()).value().modules == plan.modules);
}

TEST_CASE("a built-in type has no module in its plan, so that every ISA makes one identity") {
  const Folder folder;
  const Context reference = Context::create({{}, "reference"}).value(), best = Context::create().value();
  const Plan plan = reference.plan(folder.job(reference, "{type: Q4_0}")).value();
  CHECK(plan.modules.empty());
  CHECK(identity_of(plan) == identity_of(best.plan(folder.job(best, "{type: Q4_0}")).value()));
  CHECK(identity_of(plan) == identity_of(first().plan(folder.job(first(), "{type: Q4_0}")).value()));
}

TEST_CASE("an output of another build of the module is not unchanged") {
  const Folder folder;
  folder.made(first(), "out.gguf");
  CHECK(first().unchanged(folder.plan(first())) == std::vector<bool>{true});
  CHECK(rebuilt().unchanged(folder.plan(rebuilt())) == std::vector<bool>{false});
}

TEST_CASE("a run that was stopped is not resumed with another build of the module") {
  const Folder folder;
  const std::string right = folder.made(rebuilt(), "right.gguf");
  std::atomic<int> calls{0};
  {
    const HookedCalls hooked([&] { return ++calls, 0; });
    folder.made(first(), "counted.gguf");
  }
  const Plan plan = folder.plan(first());
  std::atomic<bool> stop{false};
  RunOptions options = Folder::simple();
  options.stop = &stop;
  {
    const int half = calls / 2;
    calls = 0;
    const HookedCalls hooked([&] {
      if (++calls == half) stop = true;
      return 0;
    });
    REQUIRE_FALSE(Folder::run(first(), plan, options));
  }
  CHECK(first().leftovers(plan).can_resume());
  CHECK_FALSE(rebuilt().leftovers(folder.plan(rebuilt())).can_resume());
  CHECK((folder.made(rebuilt(), "out.gguf") == right));
}

TEST_CASE("tensors of another build of the module are not reused") {
  const Folder folder;
  const std::string right = folder.made(rebuilt(), "right.gguf");
  const std::string reuse = ", reuse: " + folder.path("out.gguf");
  const std::string other = folder.made(first(), "out.gguf");
  CHECK((folder.made(first(), "again.gguf", reuse) == other));
  CHECK((folder.made(rebuilt(), "new.gguf", reuse) == right));
}

TEST_CASE("a written plan does not run with another build of the module") {
  const Folder folder;
  const Plan plan = read_plan(write_plan(folder.plan(first())), "plan.json", rebuilt().kernels().types()).value();
  const auto report = Folder::run(rebuilt(), plan, Folder::simple());
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ExitCode::kKernel);
  CHECK(report.error().what == "the kernel module for type 'X_OWN' is not the one in the plan");
}

TEST_CASE("a measurement of another build of the module is not taken") {
  const Folder folder;
  const std::string target = "{target: {bits: 24}, candidates: [Q8_0, X_OWN]}";
  Job job = folder.job(first(), target);
  auto measured = first().measure(job);
  if (!measured) FAIL(render(measured.error()));
  const auto measurement = std::make_shared<const Measurement>(std::move(measured).value());
  give_measurement(job, measurement);
  CHECK(first().plan(job));
  Job other = folder.job(rebuilt(), target);
  give_measurement(other, measurement);
  const auto plan = rebuilt().plan(other);
  REQUIRE_FALSE(plan);
  CHECK(plan.error().what == "type 'X_OWN' was measured with another kernel module");
}

TEST_CASE("a measurement in the cache is not taken with another build of the module") {
  const Folder folder;
  MeasureOptions options;
  options.cache = folder.path("cache");
  const std::string target = "{target: {bits: 24}, candidates: [Q8_0, X_OWN]}";
  const auto recalled = [&](const Context& context) {
    return context.recall(folder.job(context, target), options).value();
  };
  REQUIRE(first().measure(folder.job(first(), target), options));
  CHECK(recalled(first()).measurement);
  CHECK(recalled(first()).known == 12);
  CHECK(recalled(rebuilt()).known == 0);
}
