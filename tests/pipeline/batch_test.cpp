// Batches: many sources, each with its outputs.

#include <fmt/format.h>

#include <atomic>
#include <boost/json.hpp>
#include <map>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/hooked_calls.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace {

using States = std::vector<CellState>;
constexpr CellState kWritten = CellState::kWritten, kUnchanged = CellState::kUnchanged, kFailed = CellState::kFailed,
                    kNotRun = CellState::kNotRun;

const Context& context() {
  static const Context one = Context::create({{}, "reference"}).value();
  return one;
}

// Three models, and a job that converts each of them to Q8_0 and Q4_0.
class BatchFolder {
 public:
  BatchFolder() {
    for (const char* name : {"a", "b", "c"}) write_model(name, 1);
  }
  void write_model(const std::string& name, float first) const {
    GgufBuilder model;
    for (int i = 0; i < 4; ++i) {
      model.add_tensor(fmt::format("blk.{}.ffn_down.weight", i), {256, 8});
      std::vector<float> values(2048);
      for (std::size_t k = 0; k < values.size(); ++k)
        values[k] = first + static_cast<float>(name[0]) + static_cast<float>(k * 7 % 255) * 0.001f;
      model.tensors.back().data = float_bytes(values);
    }
    model.write(path(name + "-F32.gguf"));
  }
  std::string path(const std::string& name) const { return folder_.file(name); }

  Batch batch(const std::string& more = "") const {
    const auto batch = context().parse_batch(
        fmt::format("version: 1\nmatrix: {{sources: ['{}'], recipes: [Q8_0, Q4_0]}}\n"
                    "outputs: [{{gguf: '{}/{{name}}-{{recipe}}.gguf', quantize: {{type: '{{recipe}}'}}}}]\n{}",
                    path("*-F32.gguf"), path("out"), more),
        "job.yaml");
    if (!batch) FAIL(render(batch.error()));
    return batch.value();
  }
  BatchReport run(BatchOptions options = {}) const {
    options.run.engine = EngineKind::kSimple;
    return run_batch(context(), batch(), options);
  }
  // Returns the outputs, without manifests and hidden files.
  std::map<std::string, std::string> outputs() const {
    std::map<std::string, std::string> files;
    for (const std::string& name : names_in(path("out")))
      if (name.ends_with(".gguf")) files[name] = read_text(path("out/" + name));
    return files;
  }

 private:
  TempDir folder_;
};

States states_of(const BatchReport& report) {
  States states;
  for (const BatchCell& cell : report.cells) states.push_back(cell.state);
  return states;
}

}  // namespace

TEST_CASE("a batch makes all outputs of all sources, and nothing of what is there") {
  const BatchFolder folder;
  CHECK(states_of(folder.run()) == States(6, kWritten));
  CHECK(folder.outputs().size() == 6);
  CHECK(states_of(folder.run()) == States(6, kUnchanged));
  fs::remove(folder.path("out/b-Q4_0.gguf"));
  folder.write_model("c", 2);
  BatchOptions overwrite;
  overwrite.run.overwrite = true;
  CHECK(states_of(folder.run(overwrite)) == States{kUnchanged, kUnchanged, kUnchanged, kWritten, kWritten, kWritten});
}

TEST_CASE("a source that fails does not stop the others, unless it is to") {
  const BatchFolder folder;
  write_text(folder.path("b-F32.gguf"), "no model");
  BatchOptions fast;
  fast.fail_fast = true;
  const BatchReport stopped = folder.run(fast);
  CHECK(states_of(stopped) == States{kWritten, kWritten, kFailed, kFailed, kNotRun, kNotRun});
  CHECK(stopped.cells[2].error->code == ExitCode::kBadInput);
  CHECK(states_of(folder.run()) == States{kUnchanged, kUnchanged, kFailed, kFailed, kWritten, kWritten});
}

TEST_CASE("the failures of a batch name the address of a source without its password") {
  const std::string source = "https://u:SECRET@host/a.gguf", output = "https://u:SECRET@host/b.gguf";
  BatchCell failed{source, output};
  failed.error = Error{ExitCode::kIo, "", "cannot be read", "", ""};
  BatchCell unknown{source, ""};
  unknown.error = failed.error;
  for (const std::vector<Error>& errors : {failures_of({failed, unknown}), of_source({failed.error.value()}, source)}) {
    REQUIRE(errors.size() == 1);
    CHECK(errors.front().detail.find("https://...@host/a.gguf") != std::string::npos);
    CHECK(errors.front().detail.find("SECRET") == std::string::npos);
  }
  BatchReport report;
  report.cells = {failed, unknown};
  CHECK(batch_json(report).find("SECRET") == std::string::npos);
  CHECK(batch_html(report).find("SECRET") == std::string::npos);
}

TEST_CASE("an output that cannot be made does not stop the others of its source") {
  const BatchFolder folder;
  fs::create_directory(folder.path("out"));
  write_text(folder.path("out/a-Q8_0.gguf"), "another file");
  const BatchReport report = folder.run();
  CHECK(states_of(report) == States{kFailed, kWritten, kWritten, kWritten, kWritten, kWritten});
  CHECK(report.cells[0].error->what == "the output already exists");
  CHECK(read_text(folder.path("out/a-Q8_0.gguf")) == "another file");
}

TEST_CASE("a batch that is stopped anywhere is brought to its end by the next run, with the same bytes") {
  const auto right = [] {
    const BatchFolder folder;
    folder.run();
    return folder.outputs();
  }();
  int stopped_runs = 0;
  for (int k = 1;; k += 7) {
    const BatchFolder folder;
    std::atomic<bool> stop{false};
    std::atomic<int> calls{0};
    BatchOptions options;
    options.run.stop = &stop;
    {
      const HookedCalls hooked([&] {
        if (++calls == k) stop = true;
        return 0;
      });
      folder.run(options);
    }
    if (!stop) break;
    CAPTURE(k);
    ++stopped_runs;
    for (const BatchCell& cell : folder.run().cells) CHECK((cell.state == kWritten || cell.state == kUnchanged));
    CHECK((folder.outputs() == right));
    CHECK(names_in(folder.path("out")).size() == 3 * right.size());  // each with its manifest and checksums
  }
  CHECK(stopped_runs > 30);
}

TEST_CASE("a job that cannot be adjusted fails, and the others run") {
  const BatchFolder folder;
  BatchOptions options;
  options.adjust = [&](const std::string& source, Job&) -> Status {
    if (source == folder.path("b-F32.gguf")) return usage_error("no");
    return ok();
  };
  CHECK(states_of(folder.run(options)) == States{kWritten, kWritten, kFailed, kFailed, kWritten, kWritten});
}

TEST_CASE("the report of a batch says what came of every output") {
  const BatchFolder folder;
  write_text(folder.path("b-F32.gguf"), "no model <b>");
  const BatchReport report = folder.run();
  const boost::json::value all = boost::json::parse(batch_json(report));
  CHECK(all.at("written").as_int64() == 4);
  CHECK(all.at("failed").as_int64() == 2);
  CHECK(all.at("cells").as_array().size() == 6);
  CHECK(all.at("cells").as_array()[0].at("state").as_string() == "written");
  CHECK(all.at("cells").as_array()[0].at("bits_per_weight").as_double() == 8.5);
  CHECK(all.at("cells").as_array()[2].at("error").is_string());
  const std::string page = batch_html(report);
  CHECK(page.find("a-F32.gguf") != std::string::npos);
  CHECK(page.find("<dt>written</dt><dd>4</dd>") != std::string::npos);
  CHECK(page.find("<dt>failed</dt><dd>2</dd>") != std::string::npos);
}

TEST_CASE("a batch writes the report that it asks for") {
  const BatchFolder folder;
  const Batch batch = folder.batch(
      fmt::format("report: {{json: '{}', html: '{}'}}\n", folder.path("report.json"), folder.path("report.html")));
  const BatchReport report = run_batch(context(), batch, {});
  CHECK_FALSE(report.unreported);
  CHECK(read_text(folder.path("report.json")) == batch_json(report));
  CHECK(read_text(folder.path("report.html")) == batch_html(report));
}

TEST_CASE("a report of a batch that would replace a source is refused before anything is written") {
  const BatchFolder folder;
  const std::string path = folder.path("b-F32.gguf"), source = read_text(path);
  const BatchReport report = run_batch(context(), folder.batch(fmt::format("report: {{json: '{}'}}\n", path)), {});
  CHECK(states_of(report) == States(6, kNotRun));
  REQUIRE(report.unreported);
  CHECK(report.unreported->code == ExitCode::kUsage);
  CHECK(read_text(path) == source);
}

TEST_CASE("the report of a batch never replaces an output of the batch") {
  const BatchFolder folder;
  const std::string path = folder.path("out/b-Q4_0.gguf");
  const BatchReport report = run_batch(context(), folder.batch(fmt::format("report: {{json: '{}'}}\n", path)), {});
  CHECK(states_of(report) == States(6, kWritten));
  REQUIRE(report.unreported);
  CHECK(report.unreported->code == ExitCode::kUsage);
  CHECK(read_text(path).starts_with("GGUF"));
}

TEST_CASE("a report of a batch that cannot be written is refused before anything is written") {
  const BatchFolder folder;
  const BatchReport report = run_batch(
      context(), folder.batch(fmt::format("report: {{json: '{}'}}\n", folder.path("a-F32.gguf/report.json"))), {});
  CHECK(states_of(report) == States(6, kNotRun));
  REQUIRE(report.unreported);
  CHECK(report.unreported->code == ExitCode::kUsage);
}
