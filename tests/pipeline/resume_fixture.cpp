#include "tests/pipeline/resume_fixture.h"

#include <fmt/format.h>

#include <atomic>

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/hooked_calls.h"
#include "tests/support/importance_files.h"

namespace ggufmill::testing {

const Context& resume_context() {
  static const Context one = Context::create({{}, "reference"}).value();
  return one;
}

JobFolder::JobFolder() {
  write_model(1);
  fs::create_directory(folder_.file("out"));
}

void JobFolder::write_model(float first) {
  GgufBuilder model;
  for (int i = 0; i < 12; ++i) model.add_tensor(fmt::format("blk.{}.ffn_down.weight", i), {256, 8});
  for (std::size_t t = 0; t < model.tensors.size(); ++t) {
    std::vector<float> values(model.tensors[t].data.size() / 4);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = first + static_cast<float>(t) * 0.01f + static_cast<float>(i * 7 % 255) * 0.001f;
    model.tensors[t].data = float_bytes(values);
  }
  model.write(path("model.gguf"));
}

std::vector<std::string> JobFolder::outputs() const { return names_in(folder_.file("out")); }

Plan JobFolder::plan() const {
  const auto job =
      resume_context().parse_job(fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs:\n"
                                             "  - {{gguf: {{path: {}, shard_tensors: 4}}, quantize: {{type: Q8_0}}}}\n"
                                             "  - {{gguf: {}, quantize: {{type: Q4_0}}}}\n",
                                             path("model.gguf"), out("a.gguf"), out("b.gguf")),
                                 "job.yaml");
  if (!job) FAIL(render(job.error()));
  auto plan = resume_context().plan(job.value());
  if (!plan) FAIL(render(plan.error()));
  return std::move(plan).value();
}

std::map<std::string, std::string> JobFolder::finished() const {
  std::map<std::string, std::string> files;
  for (const std::string& name : outputs())
    if (!name.starts_with(".")) files[name] = read_text(out(name));
  return files;
}

TestOptions simple(bool overwrite) {
  TestOptions options;
  options.engine = EngineKind::kSimple;
  options.overwrite = overwrite;
  return options;
}

Result<RunReport> try_run(const Context& context, const Plan& plan, const TestOptions& options) {
  EngineOptions engine = engine_options(options);
  engine.slab_bytes = 32 << 10;
  if (options.when_sealed)
    engine.when_sealed = [&](OutputStore& store, const RunReport&) { return options.when_sealed(store); };
  return run_resumably(plan, context.kernels(), options, engine);
}

RunReport ran(const Plan& plan, const TestOptions& options) {
  auto report = try_run(resume_context(), plan, options);
  if (!report) FAIL(render(report.error()));
  return std::move(report).value();
}

std::map<std::string, std::string> right_outputs() {
  const JobFolder folder;
  ran(folder.plan());
  REQUIRE(folder.outputs().size() == 4);
  return folder.finished();
}

// Stops a run at its k-th system call; returns its error.
Error stopped_at(const Plan& plan, int k, TestOptions options) {
  std::atomic<bool> stop{false};
  std::atomic<int> calls{0};
  options.stop = &stop;
  const HookedCalls hooked([&] {
    if (++calls == k) stop = true;
    return 0;
  });
  const auto report = try_run(resume_context(), plan, options);
  REQUIRE(!report);
  return report.error();
}

// Returns the number of system calls of a complete run in a separate folder.
int calls_of_a_run() {
  static const int all = [] {
    const JobFolder folder;
    const Plan plan = folder.plan();
    std::atomic<int> calls{0};
    const HookedCalls hooked([&] { return ++calls, 0; });
    ran(plan);
    return calls.load();
  }();
  return all;
}

// Stops a run when about half of the units are done.
Error stopped_halfway(const Plan& plan, TestOptions options) {
  return stopped_at(plan, calls_of_a_run() / 2, std::move(options));
}

}  // namespace ggufmill::testing
