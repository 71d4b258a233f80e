// Tests of the guarantees that the library gives its callers.
#include <fmt/format.h>
#include <sys/resource.h>

#include <thread>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

const Context& context() {
  static const Context one = Context::create().value();
  return one;
}

// A folder with every kind of file a job can read: model.gguf, imatrix.gguf, recipe.yaml, parent.yaml, chat.txt,
// job.yaml.
class JobFolder {
 public:
  JobFolder() {
    GgufBuilder model;
    model.add_tensor("token_embd.weight", {256, 40}).add_tensor("blk.0.ffn_down.weight", {256, 33});
    for (auto& tensor : model.tensors) tensor.data = float_bytes(std::vector<float>(tensor.data.size() / 4, 0.5f));
    model.write(path("model.gguf"));
    GgufBuilder importance = gguf_importance();
    add_entry(importance, "blk.0.ffn_down.weight", std::vector<float>(256, 1), {1});
    importance.write(path("imatrix.gguf"));
    write_text(path("parent.yaml"), "extends: Q8_0\n");
    write_text(path("recipe.yaml"), fmt::format("extends: {}\n", path("parent.yaml")));
    write_text(path("chat.txt"), "{{ bos }}");
    write_text(path("job.yaml"), text("out.gguf"));
  }

  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string text(const std::string& output) const {
    return fmt::format(
        "version: 1\nsource: {{gguf: {0}}}\nstages: [{{importance: {{file: {1}}}}}]\n"
        "outputs: [{{gguf: {2}, quantize: {3}, metadata: {{set: {{tokenizer.chat_template: {{file: {4}}}}}}}}}]\n",
        path("model.gguf"), path("imatrix.gguf"), path(output), path("recipe.yaml"), path("chat.txt"));
  }
  Job job() const { return context().load_job(path("job.yaml")).value(); }
  // Returns the plan of job.yaml with a different output.
  Plan plan(const std::string& output) const {
    return context()
        .plan(context().load_job(path("job.yaml"), {{"outputs.0.gguf=" + path(output)}, {}}).value())
        .value();
  }

 private:
  TempDir folder_;
};

RunReport ran(const Plan& plan) {
  auto report = context().run(plan, {});
  if (!report) FAIL(render(report.error()));
  return std::move(report).value();
}

Error refusal(const Plan& plan) {
  RunOptions options;
  options.overwrite = true;
  const auto report = context().run(plan, options);
  if (report) FAIL("it ran");
  return report.error();
}

}  // namespace

TEST_CASE("inputs of a job are never overwritten, whatever their names or links") {
  const JobFolder folder;
  const char* input = GENERATE("model.gguf", "imatrix.gguf", "recipe.yaml", "parent.yaml", "chat.txt", "job.yaml");
  const std::string before = read_text(folder.path(input));
  fs::create_symlink(folder.path(input), folder.path("symbolic"));
  fs::create_hard_link(folder.path(input), folder.path("hard"));
  const std::string name = GENERATE(as<std::string>(), "", "./x/../", "symbolic", "hard");
  const std::string target = name.empty() || name.ends_with('/') ? name + input : name;
  CAPTURE(input, target);
  const auto expect = [&](const Plan& plan, const char* what) {
    const Error error = refusal(plan);
    CHECK(error.code == ExitCode::kUsage);
    CHECK(error.what.find(fmt::format("the {} ", what)) == 0);
    CHECK(error.what.ends_with(fmt::format("is the same file as the input '{}'", folder.path(input))));
    CHECK(read_text(folder.path(input)) == before);
    CHECK_FALSE(context().check(plan, true).empty());
  };
  expect(folder.plan(target), "output");
  Job job = folder.job();
  job.trace = folder.path(target);
  expect(context().plan(job).value(), "trace");
  job.trace.clear();
  job.report = ReportRequest{false, "", folder.path(target)};
  expect(context().plan(job).value(), "report");
  CHECK_FALSE(fs::exists(folder.path("out.gguf")));
}

TEST_CASE("inputs of a job created by a program are not overwritten either") {
  const JobFolder folder;
  Job job = folder.job();
  job.inputs.push_back(folder.path("out.gguf"));
  const Error error = refusal(context().plan(job).value());
  CHECK(error.where == folder.path("job.yaml") + ":4:18");
  CHECK(error.what == fmt::format("the output '{0}' is the same file as the input '{0}'", folder.path("out.gguf")));
}

TEST_CASE("all shards of an importance file are kept, whatever of it is used") {
  const JobFolder folder;
  const auto shard = [&](unsigned number, const char* entry) {
    const std::string path = folder.path(fmt::format("split-{:05}-of-00003.gguf", number + 1));
    GgufBuilder part = number == 0 ? gguf_importance() : GgufBuilder();
    part.metadata.push_back({"split.no", metadata_unsigned(MetadataType::kUint16, number)});
    part.metadata.push_back({"split.count", metadata_unsigned(MetadataType::kUint16, 3)});
    add_entry(part, entry, std::vector<float>(256, 1), {1});
    part.write(path);
    return path;
  };
  const std::string first = shard(0, "token_embd.weight");
  const std::string others[] = {shard(1, "blk.0.ffn_down.weight"), shard(2, "of no tensor")};
  for (const std::string& other : others) {
    const auto job = context().load_job(folder.path("job.yaml"),
                                        {{"stages.0.importance.file=" + first, "outputs.0.gguf=" + other}, {}});
    const std::string before = read_text(other);
    CHECK(refusal(context().plan(job.value()).value()).what ==
          fmt::format("the output '{0}' is the same file as the input '{0}'", other));
    CHECK(read_text(other) == before);
  }
}

TEST_CASE("a kernel module in use is not written") {
  const JobFolder folder;
  std::string module;
  for (const ModuleReport& report : context().kernels().reports())
    if (report.path.ends_with(".so")) module = report.path;
  REQUIRE_FALSE(module.empty());
  fs::create_symlink(module, folder.path("module"));
  Job job = folder.job();
  job.trace = folder.path("module");
  CHECK(refusal(context().plan(job).value()).what.find("the trace is the same file as the input") == 0);
}

TEST_CASE("outputs, reports, and the trace must have different paths") {
  const JobFolder folder;
  Job job = folder.job();
  const std::string out = folder.path("out.gguf"), report = folder.path("report.json");
  SECTION("report and output") {
    job.report = ReportRequest{false, folder.path("./x/../out.gguf"), ""};
    CHECK(refusal(context().plan(job).value()).what ==
          fmt::format("the report is the same file as the output '{}' of {}:4:18", out, folder.path("job.yaml")));
  }
  SECTION("report and report") {
    job.report = ReportRequest{false, report, report};
    CHECK(refusal(context().plan(job).value()).what ==
          fmt::format("the report is the same file as the report '{}'", report));
  }
  SECTION("trace and output") {
    job.trace = out;
    CHECK(refusal(context().plan(job).value()).what ==
          fmt::format("the trace is the same file as the output '{}' of {}:4:18", out, folder.path("job.yaml")));
  }
  SECTION("trace and report") {
    job.report = ReportRequest{false, report, ""};
    job.trace = report;
    CHECK(refusal(context().plan(job).value()).what ==
          fmt::format("the trace is the same file as the report '{}'", report));
  }
  CHECK_FALSE(fs::exists(out));
}

TEST_CASE("limits out of range are refused regardless of who sets them") {
  const JobFolder folder;
  Plan plan = folder.plan("out.gguf");
  SECTION("threads") {
    plan.limits.threads = 1025;
    CHECK(refusal(plan).what == "limits.threads is 1025, but the maximum is 1024");
    CHECK_FALSE(context().compare(folder.path("model.gguf"), folder.path("model.gguf"), {.threads = 1025}));
  }
  SECTION("niceness") {
    plan.limits.nice = 20;
    CHECK(refusal(plan).what == "limits.nice is 20, but the maximum is 19");
  }
  SECTION("memory") {
    plan.limits.memory = plan.least_memory - 1;
    CHECK(refusal(plan).code == ExitCode::kUsage);
  }
  CHECK_FALSE(fs::exists(folder.path("out.gguf")));
}

TEST_CASE("more threads than make sense are not started, and the report says so") {
  const JobFolder folder;
  Plan plan = folder.plan("out.gguf");
  plan.limits.threads = 1024;
  const RunReport report = ran(plan);
  CHECK(report.threads < 1024);
  REQUIRE(report.warnings.size() == 1);
  CHECK(report.warnings[0].find("limits.threads is 1024: ") == 0);
}

TEST_CASE("a plan with problems is refused") {
  const JobFolder folder;
  const std::string text = fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs: [{{gguf: {}, quantize: IQ1_S}}]\n",
                                       folder.path("model.gguf"), folder.path("out.gguf"));
  const Plan plan = context().plan(context().parse_job(text, "job").value()).value();
  CHECK_FALSE(context().problems(plan).empty());
  CHECK(refusal(plan).code == ExitCode::kUsage);
  CHECK_FALSE(fs::exists(folder.path("out.gguf")));
}

TEST_CASE("a job without a source, outputs, or a sink is refused") {
  const JobFolder folder;
  Job job = folder.job();
  SECTION("source") { job.source.reset(); }
  SECTION("outputs") { job.outputs.clear(); }
  SECTION("sink") { job.outputs[0].sink.reset(); }
  CHECK(context().plan(job).error().code == ExitCode::kUsage);
}

TEST_CASE("report and trace are written with the outputs") {
  const JobFolder folder;
  Job job = folder.job();
  job.trace = folder.path("trace.json");
  job.report.emplace();
  ran(context().plan(job).value());
  for (const char* name : {"out.gguf", "out.report.json", "out.report.html", "trace.json"})
    CHECK(fs::file_size(folder.path(name)) > 0);
}

TEST_CASE("a stopped run leaves nothing") {
  const JobFolder folder;
  const std::atomic<bool> stop{true};
  RunOptions options;
  options.stop = &stop;
  const auto report = context().run(folder.plan("out.gguf"), options);
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ExitCode::kInterrupted);
  CHECK_FALSE(fs::exists(folder.path("out.gguf")));
}

TEST_CASE("a nice run leaves the caller as it was") {
  const JobFolder folder;
  Plan plan = folder.plan("out.gguf");
  plan.limits.nice = 19;
  plan.limits.threads = 1;
  const int before = ::getpriority(PRIO_PROCESS, 0);
  ran(plan);
  CHECK(::getpriority(PRIO_PROCESS, 0) == before);
}

TEST_CASE("several contexts and runs at once") {
  const JobFolder folder;
  Context moved_from = Context::create().value();
  const Context other = std::move(moved_from);
  constexpr unsigned kRuns = 6;
  std::vector<std::thread> threads;
  std::vector<std::string> errors(kRuns);
  for (unsigned i = 0; i < kRuns; ++i)
    threads.emplace_back([&, i] {
      const Context& mine = i % 2 ? other : context();
      const auto job = mine.parse_job(folder.text(fmt::format("out-{}.gguf", i)), "job");
      const auto plan = mine.plan(job.value());
      const auto report = mine.run(plan.value(), {});
      if (!report) errors[i] = render(report.error());
    });
  for (std::thread& thread : threads) thread.join();
  const std::string first = read_text(folder.path("out-0.gguf"));
  for (unsigned i = 0; i < kRuns; ++i) {
    CHECK(errors[i].empty());
    CHECK(read_text(folder.path(fmt::format("out-{}.gguf", i))) == first);
  }
}

TEST_CASE("the page of a comparison must not be one of its inputs") {
  const JobFolder folder;
  const std::string a = folder.path("model.gguf");
  const auto comparison = context().compare(
      a, a, {.importance = folder.path("imatrix.gguf"), .html = folder.path("imatrix.gguf"), .overwrite = true});
  REQUIRE_FALSE(comparison);
  CHECK(comparison.error().what ==
        fmt::format("the page is the same file as the input '{}'", folder.path("imatrix.gguf")));
}

TEST_CASE("contexts with other modules have other types, in one process") {
  const Context plain = Context::create().value();
  const Context with_module = Context::create({{GGUFMILL_TEST_MODULES "/example"}, ""}).value();
  const JobFolder folder;
  const std::string text = "version: 1\nsource: {gguf: " + folder.path("model.gguf") +
                           "}\noutputs:\n  - gguf: " + folder.path("out.gguf") + "\n    quantize: {type: x3_example}\n";
  const auto job = with_module.parse_job(text, "job.yaml");
  if (!job) FAIL(render(job.error()));
  const auto refused = plain.parse_job(text, "job.yaml");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "unknown quantization type 'x3_example'");
  CHECK(plain.kernels().types().find("x3_example") == nullptr);
  CHECK(with_module.kernels().types().find("Q4_K") == plain.kernels().types().find("Q4_K"));
}
