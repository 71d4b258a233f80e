// Tests cluster jobs on a real Slurm started by slurm.sh: failing nodes, time limits, cancelled jobs. Run by `./dev
// test --cluster`, which installs the required packages.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "pipeline/io/platform/filesystem.h"
#include "tests/cluster/job_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;
namespace json = boost::json;

namespace {

const std::string kProgram = GGUFMILL_BUILD_DIR "/bin/ggufmill";

bool is_wanted() { return std::getenv("GGUFMILL_TEST_CLUSTER") != nullptr; }
constexpr const char* kHowToRun = "`./dev test --cluster` starts a Slurm and runs this";

// Waits until `is_so` returns true; fails the test after `seconds`.
void wait_for(const std::string& what, double seconds, const std::function<bool()>& is_so) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!is_so()) {
    if (std::chrono::steady_clock::now() > end) FAIL("waited in vain: " << what);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
}

class Slurm {
 public:
  explicit Slurm(int nodes, int cpus = 1) { script({"start", folder(), std::to_string(nodes), std::to_string(cpus)}); }
  ~Slurm() { run_process({"tests/cluster/slurm.sh", "stop", folder()}); }
  Slurm(const Slurm&) = delete;
  Slurm& operator=(const Slurm&) = delete;

  void lose(const std::string& node) const { script({"lose", folder(), node}); }
  void lose_daemon(const std::string& node) const { script({"lose-daemon", folder(), node}); }
  void bring_back(const std::string& node) const { script({"return", folder(), node}); }
  ProcessResult run(const std::vector<std::string>& words, const std::string& where = {}) const {
    std::vector<std::string> all{"/usr/bin/env"};  // finds the program in PATH
    all.insert(all.end(), words.begin(), words.end());
    return run_process(all, where, {"SLURM_CONF=" + folder() + "/slurm.conf"});
  }
  // Returns "NODE STATE" of a job or task, or an empty string if Slurm does not know it.
  std::string state_of(const std::string& id) const {
    const ProcessResult result = run({"squeue", "-h", "-r", "-a", "-t", "all", "-o", "%N %T", "-j", id});
    return result.out.substr(0, result.out.find('\n'));
  }

 private:
  std::string folder() const { return folder_.path(); }
  void script(std::vector<std::string> words) const {
    words.insert(words.begin(), "tests/cluster/slurm.sh");
    const ProcessResult result = run_process(words);
    if (result.exit_code != 0) FAIL(result.out << result.err);
  }

  TempDir folder_;
};

// A pipeline file, the outputs of a single run of it, and a cluster job of it in a Slurm.
class SlurmJob {
 public:
  // `source` is the content of the key `source`, or a complete `matrix`. `outputs` has {folder} in place of their
  // folder. `more` is appended to the pipeline file.
  SlurmJob(const Slurm& slurm, const std::string& source, const std::string& outputs, const std::string& more,
           std::vector<std::string> arguments = {})
      : slurm_(slurm), arguments_(std::move(arguments)) {
    for (const std::string folder : {"right", "out"})
      write_text(path(folder + ".yaml"),
                 fmt::format("version: 1\n{}\nlimits: {{threads: 1}}\noutputs:\n{}{}",
                             source.starts_with("matrix: ") ? source : fmt::format("source: {{{}}}", source),
                             fmt::format(fmt::runtime(outputs), fmt::arg("folder", path(folder))),
                             folder == "out" ? more : ""));
    const ProcessResult run = run_process({kProgram, "run", path("right.yaml"), "--quiet"});
    if (run.exit_code != 0) FAIL(run.err);
  }
  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string folder() const { return path("out.job"); }

  ProcessResult ggufmill(std::vector<std::string> words) const {
    words.insert(words.begin(), kProgram);
    ProcessResult result = slurm_.run(words, folder_.path());
    INFO(result.err);
    return result;
  }
  void submit() const {
    std::vector<std::string> words{"submit", path("out.yaml")};
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    const ProcessResult result = ggufmill(words);
    if (result.exit_code != 0) FAIL(result.err);
  }
  int status() const { return ggufmill({"status", folder()}).exit_code; }
  json::object status_json() const { return json::parse(ggufmill({"status", folder(), "--json"}).out).as_object(); }
  std::string state_of(std::size_t part) const {
    return std::string(status_json().at("parts").as_array().at(part).at("state").as_string());
  }
  // Returns the number of records in the journal of a part with one output. The part's own progress reports arrive only
  // every ten seconds.
  std::size_t units_done(std::size_t part) const {
    std::size_t units = 0;
    for (const std::string& name : names_in(folder() + "/parts")) {
      if (!name.starts_with(fmt::format("{}.journal.", part))) continue;
      const std::string text = read_text(folder() + "/parts/" + name);
      units = std::max(units, (text.size() - std::min(text.size(), text.find('\n') + 1)) / 24);
    }
    return units;
  }
  // Returns an ID from the last submission.
  std::string id_of(const char* what) const {
    const json::value engine = json::parse(read_text(folder() + "/engine.json"));
    return std::string(engine.at("submissions").as_array().back().at(what).as_string());
  }
  std::string task(std::size_t part) const { return fmt::format("{}_{}", id_of("parts"), part); }
  // Returns the complete log of the parts.
  std::string log() const {
    std::string text;
    for (const std::string& name : names_in(folder() + "/log")) text += read_text(folder() + "/log/" + name);
    return text;
  }
  void wait_until_sealed(double seconds) const {
    wait_for("sealed outputs", seconds, [&] {
      const int status = this->status();
      if (status == 2) FAIL("the job is not running\n" << ggufmill({"status", folder()}).out << log());
      return status == 0;
    });
    check();
  }
  void check() const {
    for (const std::string& name : names_in(path("right"))) {
      CAPTURE(name);
      CHECK((read_text(path("out/" + name)) == read_text(path("right/" + name))));
    }
    CHECK((names_in(path("out")) == names_in(path("right"))));
  }

 private:
  TempDir folder_;
  const Slurm& slurm_;
  const std::vector<std::string> arguments_;
};

// A model with the given number of tensors of a million weights each. The reference kernels take half a second for
// each.
class SlowModel {
 public:
  explicit SlowModel(int tensors, const std::string& name = "slow") : path_(folder_.file(name + ".gguf")) {
    json::array list;
    for (int i = 0; i < tensors; ++i)
      list.push_back(json::object{{"name", fmt::format("blk.{}.ffn_down.weight", i)},
                                  {"type", "BF16"},
                                  {"dims", json::array{1024, 1024}},
                                  {"dist", "normal"},
                                  {"seed", i}});
    write_text(folder_.file("spec.json"),
               json::serialize(json::object{{"metadata", json::array{}}, {"tensors", list}}));
    const ProcessResult made =
        run_process({GGUFMILL_BUILD_DIR "/bin/ggufmill-synth", "model", folder_.file("spec.json"), path_});
    if (made.exit_code != 0) FAIL(made.err);
  }
  std::string source() const { return "gguf: " + path_; }

 private:
  TempDir folder_;
  const std::string path_;
};

constexpr const char* kSlowOutput =
    "  - {{gguf: {folder}/out.gguf, quantize: {{type: IQ2_S, encoder: {{search: {{effort: 1}}}}}}}}\n";
const std::vector<std::string> kSlowly{"--isa", "reference"};

// Returns the names of the unfinished outputs of a job. The file beside each that names its job (.job) is not among
// them.
std::vector<std::string> unfinished_outputs(const SlurmJob& job) {
  std::vector<std::string> names = names_in(job.path("out"));
  std::erase_if(names, [](const std::string& name) { return name.ends_with(".job"); });
  return names;
}

// Waits until part 0 is running; returns its node.
std::string wait_for_node(const Slurm& slurm, const SlurmJob& job) {
  wait_for("part 0 at work", 60,
           [&] { return slurm.state_of(job.task(0)).ends_with(" RUNNING") && job.units_done(0) != 0; });
  return slurm.state_of(job.task(0)).substr(0, 2);
}

constexpr const char* kThreeOutputs =
    "  - {{gguf: {folder}/single.gguf, quantize: {{type: Q8_0}}}}\n"
    "  - {{gguf: {{path: {folder}/shards.gguf, shard_size: 8M}}}}\n"
    "  - {{gguf: {folder}/half.gguf, quantize: {{type: F16}}}}\n";

}  // namespace

TEST_CASE("on Slurm, parts on two and four nodes make the bytes of one run") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const int nodes = GENERATE(2, 4);
  const Slurm slurm(nodes);
  for (const SourceKind kind : {SourceKind::kGguf, SourceKind::kCheckpoint}) {
    const JobFolder model(kind);
    const SlurmJob job(
        slurm,
        kind == SourceKind::kGguf
            ? "gguf: " + model.path("model.gguf")
            : fmt::format("huggingface: {{path: {}, pre: llama-bpe, allow_missing: true}}", model.path("checkpoint")),
        kThreeOutputs, "cluster: {parts: 7, cpus: 1, memory: 400MiB, max_parallel: 3}\n");
    job.submit();
    const ProcessResult watched = job.ggufmill({"status", job.folder(), "--watch"});
    INFO(watched.out << watched.err << job.log());
    CHECK(watched.exit_code == 0);
    job.check();
    CHECK(job.ggufmill({"resume", job.folder()}).err == "the outputs are already sealed\n");
  }
}

TEST_CASE("on Slurm, a node that dies costs what it had not done") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Slurm slurm(2);
  const SlowModel model(40);
  const SlurmJob job(slurm, model.source(), kSlowOutput, "cluster: {parts: 4, cpus: 1, memory: 400MiB}\n", kSlowly);
  job.submit();
  const std::string node = wait_for_node(slurm, job);
  slurm.lose(node);
  wait_for("the part on the other node", 120, [&] {
    const std::string state = slurm.state_of(job.task(0));
    return state.starts_with("n") && !state.starts_with(node);
  });
  slurm.bring_back(node);
  job.wait_until_sealed(600);
}

TEST_CASE("on Slurm, a part that runs on after its node's daemon died is done by two at once") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Slurm slurm(2);
  const SlowModel model(70);
  const SlurmJob job(slurm, model.source(), kSlowOutput, "cluster: {parts: 1, cpus: 1, memory: 400MiB}\n", kSlowly);
  job.submit();
  slurm.lose_daemon(wait_for_node(slurm, job));
  std::size_t most = 0;
  wait_for("sealed outputs", 600, [&] {
    const ProcessResult processes =
        run_process({"/usr/bin/env", "pgrep", "-c", "-f", "part --quiet --plan " + job.folder()});
    if (processes.exit_code == 0) most = std::max<std::size_t>(most, std::stoul(processes.out));
    return job.status() == 0;
  });
  CHECK(most >= 2);
  job.check();
}

TEST_CASE("on Slurm, a part that reaches its time limit resumes in its next turn") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Slurm slurm(2);
  const SlowModel model(80);
  const SlurmJob job(slurm, model.source(), kSlowOutput, "cluster: {parts: 1, cpus: 1, memory: 400MiB, time: '1'}\n",
                     kSlowly);
  job.submit();
  wait_for("an end before the time limit", 120,
           [&] { return job.log().find("are done and kept") != std::string::npos; });
  job.wait_until_sealed(600);
  CHECK(job.log().find("error: interrupted") != std::string::npos);
}

TEST_CASE("on Slurm, a part that fails for good is the only one that resume does again") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Slurm slurm(2);
  const JobFolder model;
  const SlurmJob job(slurm, "gguf: " + model.path("model.gguf"),
                     "  - {{gguf: {{path: {folder}/shards.gguf, shard_tensors: 4}}}}\n",
                     "cluster: {parts: 4, cpus: 1, memory: 400MiB, options: [--hold]}\n");
  job.submit();
  // The third shard is missing.
  std::string hidden;
  for (const std::string& name : unfinished_outputs(job))
    if (name.starts_with(".shards-00003")) hidden = job.path("out/" + name);
  REQUIRE_FALSE(hidden.empty());
  fs::rename(hidden, job.path("hidden"));
  for (const char* what : {"parts", "seal"})
    REQUIRE(slurm.run({"scontrol", "release", job.id_of(what)}).exit_code == 0);
  wait_for("a job that needs help", 60, [&] { return job.status() == 2; });
  CHECK(job.state_of(2) == "failed");
  for (const std::size_t part : {0, 1, 3}) CHECK(job.state_of(part) == "done");
  const ProcessResult status = job.ggufmill({"status", job.folder()});
  CHECK(status.out.find("part 2: ") != std::string::npos);
  CHECK(status.out.find("shards-00003-of-00004.gguf: error: cannot open") != std::string::npos);
  fs::rename(job.path("hidden"), hidden);
  const ProcessResult resumed = job.ggufmill({"resume", job.folder()});
  INFO(resumed.err);
  CHECK(resumed.err.starts_with("submitted parts 2 as array "));
  for (const char* what : {"parts", "seal"})
    REQUIRE(slurm.run({"scontrol", "release", job.id_of(what)}).exit_code == 0);
  job.wait_until_sealed(300);
}

TEST_CASE("on Slurm, a matrix is one array and one seal, and a source that fails stops no other") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Slurm slurm(2);
  const JobFolder model;
  for (const char* name : {"a", "b", "c"})
    fs::copy_file(model.path("model.gguf"), model.path(fmt::format("{}-F32.gguf", name)));
  const SlurmJob job(slurm, fmt::format("matrix: {{sources: ['{}'], recipes: [Q8_0, F16]}}", model.path("*-F32.gguf")),
                     "  - {{gguf: '{folder}/{{name}}-{{recipe}}.gguf', quantize: {{type: '{{recipe}}'}}}}\n",
                     "cluster: {parts: 6, cpus: 1, memory: 400MiB, options: [--hold]}\n");
  job.submit();
  std::set<std::string> jobs;
  std::istringstream ids(slurm.run({"squeue", "-h", "-a", "-t", "all", "-o", "%F"}).out);
  for (std::string id; ids >> id;) jobs.insert(id);
  CHECK(jobs == std::set<std::string>{job.id_of("parts"), job.id_of("seal")});
  // An output of the second source is missing.
  const auto release = [&] {
    for (const char* what : {"parts", "seal"})
      REQUIRE(slurm.run({"scontrol", "release", job.id_of(what)}).exit_code == 0);
  };
  std::string hidden;
  for (const std::string& name : unfinished_outputs(job))
    if (name.starts_with(".b-F16")) hidden = job.path("out/" + name);
  REQUIRE_FALSE(hidden.empty());
  fs::rename(hidden, job.path("hidden"));
  release();
  wait_for("a matrix that needs help", 60, [&] { return job.status() == 2; });
  for (const std::size_t part : {0, 1, 4, 5}) CHECK(job.state_of(part) == "done");
  for (const std::size_t part : {2, 3}) CHECK(job.state_of(part) == "failed");
  const ProcessResult status = job.ggufmill({"status", job.folder()});
  INFO(status.out << job.log());
  CHECK(status.out.find("4 of 6 parts done, 2 failed (67 %); 2 of 3 sources sealed") != std::string::npos);
  CHECK(job.log().find("b-F32.gguf: error: part 2 failed") != std::string::npos);
  CHECK(job.log().find("6 outputs: 4 written, 0 unchanged, 2 failed") != std::string::npos);
  CHECK(fs::exists(job.path("out/c-F16.gguf")));
  CHECK_FALSE(fs::exists(job.path("out/b-Q8_0.gguf")));
  fs::rename(job.path("hidden"), hidden);
  const ProcessResult resumed = job.ggufmill({"resume", job.folder()});
  CHECK(resumed.err.starts_with("submitted parts 2-3 as array "));
  release();
  job.wait_until_sealed(300);
  const ProcessResult again = job.ggufmill({"submit", job.path("out.yaml")});
  CHECK(again.exit_code == 0);
  CHECK(again.err.find("b-F16.gguf  unchanged") != std::string::npos);
}

TEST_CASE("on Slurm, a matrix that is cancelled ends, and continues when it is resumed") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Slurm slurm(2);
  const SlowModel first(12, "first"), second(12, "second");
  const SlurmJob job(
      slurm, fmt::format("matrix: {{sources: [{{{}}}, {{{}}}]}}\nmanifest: false", first.source(), second.source()),
      "  - {{gguf: '{folder}/{{name}}.gguf', quantize: {{type: IQ2_S, encoder: {{search: {{effort: 1}}}}}}}}\n",
      "cluster: {parts: 4, cpus: 1, memory: 400MiB}\n", kSlowly);
  job.submit();
  wait_for("some work", 60, [&] { return job.state_of(1) == "running"; });
  CHECK(job.ggufmill({"resume", job.folder()}).exit_code == 2);  // it is running
  CHECK(job.ggufmill({"cancel", job.folder()}).exit_code == 0);
  CHECK(slurm.run({"squeue", "-h"}).out.empty());
  CHECK(job.status() == 2);
  CHECK(unfinished_outputs(job).size() == 2);  // finished work is kept
  CHECK(job.ggufmill({"resume", job.folder()}).exit_code == 0);
  const ProcessResult watched = job.ggufmill({"status", job.folder(), "--watch"});
  INFO(watched.out << watched.err << job.log());
  CHECK(watched.exit_code == 0);
  job.check();
}

TEST_CASE("on Slurm, three seals at once are one, and a byte damaged before them is done again") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Slurm slurm(2);
  const JobFolder model;
  const SlurmJob job(slurm, "gguf: " + model.path("model.gguf"), kThreeOutputs,
                     "cluster: {parts: 4, cpus: 1, memory: 400MiB}\n");
  job.submit();
  REQUIRE(slurm.run({"scontrol", "hold", job.id_of("seal")}).exit_code == 0);
  wait_for("all parts", 60, [&] { return job.status_json().at("done") == 4; });
  for (const std::string& name : unfinished_outputs(job)) {
    if (!name.starts_with(".shards-00002")) continue;
    std::fstream file(job.path("out/" + name), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(3 << 20);
    file.put('x');
  }
  REQUIRE(slurm.run({"scontrol", "release", job.id_of("seal")}).exit_code == 0);
  wait_for("a seal that found it", 60, [&] { return job.status() == 2; });
  CHECK(job.log().find("the bytes on disk differ from those written") != std::string::npos);
  CHECK_FALSE(fs::exists(job.path("out/single.gguf")));
  const ProcessResult resumed = job.ggufmill({"resume", job.folder()});
  INFO(resumed.err);
  REQUIRE(slurm.run({"scontrol", "hold", job.id_of("seal")}).exit_code == 0);
  wait_for("all parts", 60, [&] { return job.status_json().at("done") == 4; });
  std::vector<std::thread> seals;
  std::atomic<int> good{0};
  for (int i = 0; i < 3; ++i)
    seals.emplace_back([&] {
      if (job.ggufmill({"seal", "--plan", job.folder() + "/plan.json", "--wait", "1m"}).exit_code == 0) ++good;
    });
  REQUIRE(slurm.run({"scontrol", "release", job.id_of("seal")}).exit_code == 0);
  for (std::thread& seal : seals) seal.join();
  CHECK(good == 3);
  job.wait_until_sealed(300);
}

TEST_CASE("on Slurm, a job that is cancelled ends, and continues when it is resumed") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Slurm slurm(2);
  const SlowModel model(24);
  const SlurmJob job(slurm, model.source(), kSlowOutput, "cluster: {parts: 4, cpus: 1, memory: 400MiB}\n", kSlowly);
  job.submit();
  wait_for("some work", 60, [&] { return job.units_done(0) >= 1; });
  CHECK(job.ggufmill({"resume", job.folder()}).exit_code == 2);  // it is running
  const ProcessResult cancelled = job.ggufmill({"cancel", job.folder()});
  INFO(cancelled.err);
  CHECK(cancelled.exit_code == 0);
  CHECK(slurm.run({"squeue", "-h"}).out.empty());
  CHECK(job.status() == 2);
  CHECK(unfinished_outputs(job).size() == 1);  // finished work is kept
  CHECK(job.ggufmill({"resume", job.folder()}).exit_code == 0);
  job.wait_until_sealed(600);
  CHECK(job.log().find("error: interrupted") != std::string::npos);
}

TEST_CASE("on Slurm, a node of another ISA makes the same bytes, and one that cannot reports an error") {
  if (!is_wanted()) GGUFMILL_SKIP(kHowToRun);
  const Slurm slurm(2);
  const JobFolder model;
  const SlurmJob job(slurm, "gguf: " + model.path("model.gguf"), kThreeOutputs, "cluster: {engine: none, parts: 4}\n");
  job.submit();
  const auto part = [&](int number, const std::string& node, const std::string& isa) {
    return slurm.run({"srun", "-w", node, kProgram, "part", "--plan", job.folder() + "/plan.json", "--part",
                      std::to_string(number), "--isa", isa});
  };
  std::vector<std::string> isas{"reference"};
  for (const std::string isa : {"x86-64-v3", "x86-64-v4"})
    if (run_process({kProgram, "kernels", "--isa", isa}).exit_code == 0) isas.push_back(isa);
  std::cout << fmt::format("parts with the kernels of {}\n", fmt::join(isas, ", "));
  for (int i = 0; i < 4; ++i) {
    const ProcessResult result =
        part(i, i % 2 ? "n1" : "n2", isas[isas.size() - 1 - static_cast<std::size_t>(i) % isas.size()]);
    INFO(result.err);
    CHECK(result.exit_code == 0);
    if (i != 0) continue;
    const ProcessResult refused = part(1, "n1", "sparc");
    CHECK(refused.exit_code == 5);
    CHECK(refused.err.find("'sparc'") != std::string::npos);
  }
  CHECK(job.ggufmill({"seal", "--plan", job.folder() + "/plan.json"}).exit_code == 0);
  job.check();
}
