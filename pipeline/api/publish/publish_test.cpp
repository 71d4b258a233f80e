// Jobs with steps, with shell scripts in place of llama.cpp's programs.
#include "pipeline/api/job_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <map>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/importance_files.h"
#include "tests/support/llama_scripts.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

using Strings = std::vector<std::string>;

const Context& context() {
  static const Context one = Context::create().value();
  return one;
}

// A command that records its variables.
constexpr const char* kCommand = R"(#!/bin/sh
echo command "$@" >> calls.txt
{}
echo "${{GGUFMILL_OUTPUT:-$GGUFMILL_OUTPUTS}}" >> outputs.txt
)";

// The text of a script that dies, or kills the program that started it, the first time.
std::string failing_once(const std::string& how) {
  return fmt::format("if [ ! -e failed ]; then touch failed; {}; fi", how);
}

// A folder with a model, a text, the scripts, and a job that uses all of them, which is also the current folder.
class PublishFolder {
 public:
  PublishFolder() {
    fs::current_path(folder_.path());
    ::setenv("GGUFMILL_CACHE", folder_.file("cache").c_str(), 1);
    GgufBuilder model;
    model.add_tensor("token_embd.weight", {256, 40}).add_tensor("blk.0.ffn_down.weight", {256, 33});
    for (auto& tensor : model.tensors) tensor.data = float_bytes(std::vector<float>(tensor.data.size() / 4, 0.5F));
    model.write("model.gguf");
    GgufBuilder importance = gguf_importance();
    add_entry(importance, "blk.0.ffn_down.weight", std::vector<float>(256, 1), {1});
    importance.write("prepared.gguf");
    write_text("text.txt", std::string(2000, 'a'));
    script("imatrix", kImatrix);
    script("perplexity", kPerplexity);
    script("command", kCommand);
    write_text("job.yaml", kJob);
  }
  ~PublishFolder() { fs::current_path("/"); }
  PublishFolder(const PublishFolder&) = delete;
  PublishFolder& operator=(const PublishFolder&) = delete;

  // Replaces a script by one that starts with `begin`.
  static void script(const std::string& name, const char* text, const std::string& begin = ":") {
    write_text(name, fmt::format(fmt::runtime(text), begin));
    fs::permissions(name, fs::perms::owner_all);
  }

  static BatchJob job(const Strings& set = {}) {
    auto loaded = context().load_job("job.yaml", {set, {}});
    if (!loaded) FAIL(render(loaded.error()));
    return {"model.gguf", std::move(loaded).value()};
  }
  static Result<StepReport> run(const Strings& set = {}, bool overwrite = false) {
    StepOptions options;
    options.batch.run.overwrite = overwrite;
    return run_steps(context(), job(set), options);
  }
  // Returns the first words of the calls of the scripts so far.
  static Strings calls() {
    Strings calls;
    if (!fs::exists("calls.txt")) return calls;
    std::string text = read_text("calls.txt");
    for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
      calls.push_back(text.substr(at, text.find_first_of(" \n", at) - at));
    return calls;
  }
  static Strings steps_left(const Strings& set = {}) {
    Strings left;
    const std::vector<JobStep> steps = steps_of(context(), job(set), {}).value();
    for (const JobStep& step : steps)
      if (!step.is_done) left.emplace_back(name_of(step.kind));
    return left;
  }
  // Returns the bytes of all files in a folder.
  static std::map<std::string, std::string> files(const std::string& folder = "out") {
    std::map<std::string, std::string> files;
    for (const std::string& name : names_in(folder)) files[name] = read_text(folder + "/" + name);
    return files;
  }

  static constexpr const char* kJob = R"(version: 1
source: {gguf: model.gguf}
stages:
  - importance: {compute: {program: ./imatrix, text: text.txt, chunks: 2, file: out/imatrix.gguf}}
outputs:
  - {gguf: out/base.gguf, after: {command: [./command, first]}}
  - {gguf: out/q4.gguf, quantize: Q4_K}
  - {gguf: out/iq2.gguf, quantize: {type: IQ2_XS, tensors: [{match: token_embd, type: Q8_0}]}}
quality: {program: ./perplexity, text: text.txt, json: out/quality.json}
card: {path: out/README.md, base_model: org/base}
after: {command: [./command, all]}
)";

 private:
  TempDir folder_;
};

// The calls of a complete job.
Strings all_calls() { return {"command", "imatrix", "perplexity", "perplexity", "perplexity", "command"}; }

}  // namespace

TEST_CASE("a job with steps writes its outputs, and runs each program as often as needed") {
  const PublishFolder folder;
  REQUIRE(has_steps(folder.job().job));
  const auto report = folder.run();
  if (!report) FAIL(render(report.error()));
  CHECK(folder.calls() == all_calls());
  CHECK(report.value().cells.size() == 3);
  CHECK(read_text("out/imatrix.gguf") == read_text("prepared.gguf"));
  CHECK(read_text("outputs.txt") == "out/base.gguf\nout/base.gguf\nout/q4.gguf\nout/iq2.gguf\n\n");
  CHECK(folder.steps_left().empty());
}

TEST_CASE("the progress of a program names the model it runs on") {
  const PublishFolder folder;
  folder.script("perplexity", kPerplexity, "echo 'computing over 2 chunks'; echo ' 1 5.0'; echo ' 2 5.1'");
  std::map<std::string, std::uint64_t> done;
  StepOptions options;
  options.chunks = [&](const JobStep& step, const std::string& model, std::uint64_t chunks, std::uint64_t total) {
    if (step.kind == StepKind::kQuality && total == 2) done[model] = chunks;
  };
  REQUIRE(run_steps(context(), folder.job(), options));
  CHECK(done == std::map<std::string, std::uint64_t>{{"out/base.gguf", 2}, {"out/iq2.gguf", 2}, {"out/q4.gguf", 2}});
}

TEST_CASE("the outputs are those of a job with the importance as a file") {
  const PublishFolder folder;
  REQUIRE(folder.run());
  const std::string made = read_text("out/iq2.gguf");
  std::string job = PublishFolder::kJob;
  const auto replace = [&](const std::string& from, const std::string& to) {
    job.replace(job.find(from), from.size(), to);
  };
  replace("{compute: {program: ./imatrix, text: text.txt, chunks: 2, file: out/imatrix.gguf}}",
          "{file: out/imatrix.gguf}");
  replace("  - {gguf: out/base.gguf, after: {command: [./command, first]}}\n", "");
  job.resize(job.find("quality"));
  write_text("job.yaml", job);
  const auto plain = context().load_job("job.yaml").value();
  REQUIRE(!has_steps(plain));
  RunOptions options;
  options.overwrite = true;
  REQUIRE(context().run(context().plan(plain).value(), options));
  CHECK(read_text("out/iq2.gguf") == made);
}

TEST_CASE("a job that is complete is not run again") {
  const PublishFolder folder;
  REQUIRE(folder.run());
  const auto before = folder.files();
  const auto again = folder.run();
  REQUIRE(again);
  CHECK(again.value().cells.empty());
  CHECK(folder.calls() == all_calls());
  CHECK(folder.files() == before);
}

TEST_CASE("only what depends on a change is run again") {
  const PublishFolder folder;
  REQUIRE(folder.run());
  SECTION("another output is compared with the base, and the command for all outputs runs again") {
    const Strings set{"outputs.1.gguf=out/q5.gguf", "outputs.1.quantize=Q5_K"};
    REQUIRE(folder.run(set));
    Strings calls = all_calls();
    calls.insert(calls.end(), {"perplexity", "perplexity", "command"});
    CHECK(folder.calls() == calls);
  }
  SECTION("another number of chunks is another importance") {
    REQUIRE(folder.run({"stages.0.importance.compute.chunks=1"}, true));
    CHECK(std::ranges::count(folder.calls(), "imatrix") == 2);
  }
  SECTION("the importance of an earlier job is used by another") {
    fs::remove_all("out");
    REQUIRE(folder.run());
    CHECK(std::ranges::count(folder.calls(), "imatrix") == 1);
  }
}

TEST_CASE("a program that fails stops the job, which resumes at its step") {
  const PublishFolder folder;
  const auto [script, text, name] =
      GENERATE(std::tuple("imatrix", kImatrix, "imatrix"), std::tuple("perplexity", kPerplexity, "perplexity"),
               std::tuple("command", kCommand, "command"));
  CAPTURE(name);
  folder.script(script, text, failing_once("echo the reason >&2; exit 3"));
  const auto failed = folder.run();
  REQUIRE(!failed);
  CHECK(failed.error().code == ExitCode::kIo);
  CHECK(render(failed.error()).find("exit code 3") != std::string::npos);
  CHECK(render(failed.error()).find("the reason") != std::string::npos);
  CHECK(!folder.steps_left().empty());
  REQUIRE(folder.run());
  CHECK(folder.calls().size() == all_calls().size() + 1);
  CHECK(folder.steps_left().empty());
}

TEST_CASE("a program that is killed stops the job, which resumes at its step") {
  const PublishFolder folder;
  folder.script("imatrix", kImatrix, failing_once("kill -9 $$"));
  const auto failed = folder.run();
  REQUIRE(!failed);
  CHECK(failed.error().code == ExitCode::kIo);
  CHECK(render(failed.error()).find("was ended by signal 9") != std::string::npos);
  CHECK(!fs::exists("out/imatrix.gguf"));
  REQUIRE(folder.run());
  CHECK(folder.steps_left().empty());
}

TEST_CASE("a text that is too short for the program is an error of its step") {
  const PublishFolder folder;
  const auto [script, text, message] = GENERATE(table<const char*, const char*, const char*>(
      {{"imatrix", kImatrix, "wrote no importance matrix"},
       {"perplexity", kPerplexity, "wrote no predictions of the base model"}}));
  CAPTURE(script);
  folder.script(script, text, "exit 0");
  const auto failed = folder.run();
  REQUIRE(!failed);
  CHECK(failed.error().code == ExitCode::kBadInput);
  CHECK(render(failed.error()).find(message) != std::string::npos);
  CHECK(render(failed.error()).find("the text may be too short") != std::string::npos);
  CHECK(!fs::exists("out/README.md"));
}

TEST_CASE("a job whose program is killed at any step resumes and gives the same files") {
  const PublishFolder folder;
  REQUIRE(folder.run());
  const auto expected = folder.files();
  const auto [script, text] =
      GENERATE(std::pair("imatrix", kImatrix), std::pair("perplexity", kPerplexity), std::pair("command", kCommand));
  CAPTURE(script);
  fs::remove_all("out");
  fs::remove_all("cache");
  folder.script(script, text, failing_once("kill -9 $PPID"));
  const ProcessResult killed = run_process({GGUFMILL_PROGRAM, "run", "-q", "job.yaml"});
  REQUIRE(killed.exit_code == 128 + 9);
  const ProcessResult resumed = run_process({GGUFMILL_PROGRAM, "run", "-q", "job.yaml"});
  CAPTURE(resumed.err);
  CHECK(resumed.exit_code == 0);
  auto files = folder.files();
  for (const auto& [name, bytes] : expected)
    if (!name.ends_with(".manifest.json")) CHECK(files[name] == bytes);  // manifests have the times of their sources
  CHECK(files.size() == expected.size());
}

TEST_CASE("everything that is known is checked before the first step") {
  const PublishFolder folder;
  write_text("short.txt", std::string(1000, 'a'));
  const auto [set, message] = GENERATE(table<const char*, const char*>(
      {{"stages.0.importance.compute.program=./missing", "there is no program './missing'"},
       {"stages.0.importance.compute.text=missing.txt", "there is no text 'missing.txt'"},
       {"stages.0.importance.compute.text=short.txt",
        "the text 'short.txt' is too short: it has 1000 bytes, but chunks of 512 tokens need at least 1024 tokens"},
       {"quality.text=short.txt", "the text 'short.txt' is too short"},
       {"quality.context=1001", "the text 'text.txt' is too short: it has 2000 bytes"},
       {"quality.program=missing-program", "there is no program 'missing-program'"},
       {"quality.text=missing.txt", "there is no text 'missing.txt'"},
       {"quality.against=out/other.gguf", "no output of this job is 'out/other.gguf'"},
       {"after.command=[./missing]", "there is no program './missing'"},
       {"quality.json=out/q4.gguf", "out/q4.gguf"},
       {"quality.json=text.txt", "text.txt"},
       {"stages.0.importance.compute.file=out/q4.gguf", "out/q4.gguf"},
       {"outputs.0.gguf=s3://bucket/base.gguf", "'s3://bucket/base.gguf' is not a local file"},
       {"quality.outputs=[q4, q9]", "no output matches 'q9'"},
       {"upload={to: 'hf://org/model', files: [q9]}", "no file of this job matches 'q9'"},
       {"card.template=missing.md", "missing.md"},
       {"card.path=out/quality.json", "out/quality.json"},
       {"upload={to: 'hf://nobody'}", "does not name an organization and a model"},
       {"upload={to: 'https://example.org'}", "does not name a repository of the hub"}}));
  CAPTURE(set);
  const auto refused = folder.run({set});
  REQUIRE(!refused);
  CHECK(refused.error().code == (std::string_view(message) == "missing.md" ? ExitCode::kBadInput : ExitCode::kUsage));
  CHECK(render(refused.error()).find(message) != std::string::npos);
  CHECK(!fs::exists("out"));
  CHECK(folder.calls().empty());
  CHECK(!check_steps(context(), folder.job({set}), {}).empty());
}

TEST_CASE("an importance that no output or only its own model needs is refused") {
  const PublishFolder folder;
  const auto [set, message] = GENERATE(table<Strings, const char*>(
      {{{"stages.0.importance.compute.model=out/bse.gguf"}, "no output of this job is 'out/bse.gguf'"},
       {{"outputs=[{gguf: out/base.gguf}]"}, "no output needs this importance"},
       {{"stages.0.importance.compute.model=model.safetensors", "outputs.0={safetensors: model.safetensors}"},
        "no output of this job is"}}));
  CAPTURE(message);
  const auto refused = context().load_job("job.yaml", {set, {}});
  REQUIRE(!refused);
  CHECK(refused.error().code == ExitCode::kUsage);
  CHECK(refused.error().what.find(message) != std::string::npos);
}

TEST_CASE("the importance of a model that needs the importance itself is refused") {
  const PublishFolder folder;
  const auto refused = context().load_job(
      "job.yaml", {{"stages=[]", "outputs.1.importance={compute: {text: text.txt, model: out/iq2.gguf}}",
                    "outputs.2.importance={compute: {text: text.txt, model: out/base.gguf}}"},
                   {}});
  REQUIRE(!refused);
  CHECK(refused.error().what == "'out/iq2.gguf' itself needs an importance that is computed");
}

TEST_CASE("files that are not results of the job are not replaced") {
  const PublishFolder folder;
  fs::create_directory("out");
  const std::string path = GENERATE("out/imatrix.gguf", "out/q4.gguf", "out/quality.json", "out/README.md");
  CAPTURE(path);
  write_text(path, "something else");
  const auto refused = folder.run();
  REQUIRE(!refused);
  CHECK(refused.error().code == ExitCode::kUsage);
  CHECK(read_text(path) == "something else");
  REQUIRE(folder.run({}, true));
  CHECK(read_text(path) != "something else");
}

TEST_CASE("no file is written that the next run would not know as its own") {
  const PublishFolder folder;
  const char* kCard =
      "version: 1\nsource: {gguf: model.gguf}\noutputs: [{gguf: out/q8.gguf, quantize: Q8_0}]\n"
      "card: {path: out/README.md}\n";
  write_text("job.yaml", kCard);
  write_text("cache", "not a folder");
  const auto failed = folder.run();
  REQUIRE(!failed);
  CHECK(failed.error().where.find("cache") != std::string::npos);
  CHECK(!fs::exists("out/README.md"));
  fs::remove("cache");
  REQUIRE(folder.run());
  CHECK(fs::exists("out/README.md"));
  CHECK(folder.steps_left().empty());
}

TEST_CASE("a plan has the types of the run, before the importance is known") {
  const PublishFolder folder;
  const Plan before = context().plan(with_known_importance(context(), folder.job().job)).value();
  REQUIRE(folder.run());
  const Plan after = context().plan(with_known_importance(context(), folder.job().job)).value();
  REQUIRE(before.outputs.size() == after.outputs.size());
  for (std::size_t i = 0; i < before.outputs.size(); ++i)
    for (std::size_t k = 0; k < before.outputs[i].tensors.size(); ++k)
      CHECK(before.outputs[i].tensors[k].type == after.outputs[i].tensors[k].type);
  CHECK(std::ranges::any_of(before.outputs[2].problems, wants_importance));
  CHECK(after.outputs[2].problems.empty());
}

TEST_CASE("the card has every output, its checksum and quality, and what the source's own card says") {
  const PublishFolder folder;
  write_text("README.md", "---\nlicense: mit\n---\nA model.\n");
  REQUIRE(folder.run());
  const std::string card = read_text("out/README.md");
  for (const char* part : {"license: mit", "base_model: org/base", "| [q4.gguf](q4.gguf) | Q4_K_M |", "0.05", "91.25 %",
                           "imatrix.gguf, computed from text.txt (2 chunks)", "source: {gguf: model.gguf}"}) {
    CAPTURE(part);
    CHECK(card.find(part) != std::string::npos);
  }
  const std::string sums = read_text("out/q4.gguf.sha256");
  CHECK(card.find(sums.substr(0, 64)) != std::string::npos);
}

TEST_CASE("the card is written from the user's template") {
  const PublishFolder folder;
  write_text("card.md", "{{#files}}{{recipe}} {{same_top}};{{/files}}");
  REQUIRE(folder.run({"card.template=card.md"}));
  CHECK(read_text("out/README.md") == "IQ2_XS 91.25 %;Q4_K_M 91.25 %;F32 ;");
}

TEST_CASE("a template that is wrong is refused before the first step") {
  const PublishFolder folder;
  write_text("card.md", "{{#files}}{{sizes}}{{/files}}");
  const auto refused = folder.run({"card.template=card.md"});
  REQUIRE(!refused);
  CHECK(refused.error().code == ExitCode::kUsage);
  CHECK(render(refused.error()).find("'sizes'") != std::string::npos);
  CHECK(folder.calls().empty());
}

TEST_CASE("a card of the source that cannot be read is a warning") {
  const PublishFolder folder;
  write_text("README.md", "---\nlicense: [mit\n---\n");
  const auto report = folder.run();
  REQUIRE(report);
  REQUIRE(report.value().warnings.size() == 1);
  CHECK(report.value().warnings.front().find("README.md") != std::string::npos);
}

TEST_CASE("the quality of outputs is added to the report, which otherwise stays as it is") {
  const PublishFolder folder;
  write_text("job.yaml", std::string(PublishFolder::kJob) + "report: {json: out/report.json, html: out/report.html}\n");
  REQUIRE(folder.run());
  for (const char* path : {"out/report.json", "out/report.html"}) {
    CAPTURE(path);
    const std::string report = read_text(path);
    std::size_t outputs = 0;
    for (std::size_t at = report.find("{\"quality\":{"); at != report.npos; at = report.find("{\"quality\":{", at + 1))
      ++outputs;
    CHECK(outputs == 2);
  }
  const boost::json::value report = boost::json::parse(read_text("out/report.json"));
  for (const boost::json::value& output : report.at("outputs").as_array()) {
    CHECK(output.at("quality").at("divergence").as_double() == 0.05);
    CHECK(output.at("quality").at("same_top").as_double() == Approx(0.9125));
    CHECK(output.at("tensors").as_array().size() == 2);
  }
  const auto before = folder.files();
  REQUIRE(folder.run());
  CHECK(folder.files() == before);
  CHECK(folder.calls() == all_calls());
}

TEST_CASE("a program writes to a folder that nobody else may enter") {
  const PublishFolder folder;
  folder.script("perplexity", kPerplexity,
                "for a; do case \"$a\" in */file) stat -c %a \"${a%/file}\" >> modes.txt;; esac; done");
  REQUIRE(folder.run());
  CHECK(read_text("modes.txt") == "700\n");
}

TEST_CASE("predictions that somebody else may have planted are not used") {
  const PublishFolder folder;
  const auto predictions = [] {
    for (const std::string& name : names_in("out"))
      if (name.find(".predictions-") != name.npos) return "out/" + name;
    return std::string();
  };
  folder.script("perplexity", kPerplexity, "case \"$*\" in *--kl-divergence) exit 1;; esac");
  REQUIRE_FALSE(folder.run());
  const std::string path = predictions();
  REQUIRE_FALSE(path.empty());
  write_text("planted", "planted");
  fs::remove(path);
  SECTION("a link") { fs::create_symlink(fs::absolute("planted"), path); }
  SECTION("a second name of another file") { fs::create_hard_link("planted", path); }
  SECTION("a file that others may write to") {
    fs::copy_file("planted", path);
    fs::permissions(path, fs::perms::all);
  }
  folder.script("perplexity", kPerplexity,
                "for a; do case \"$a\" in *.predictions-*) grep -s planted \"$a\" >> used.txt;; esac; done");
  REQUIRE(folder.run());
  CHECK((!fs::exists("used.txt") || read_text("used.txt").empty()));
  CHECK(read_text("planted") == "planted");
}

TEST_CASE("programs of llama.cpp get no secrets, and commands only if the job keeps them") {
  const PublishFolder folder;
  ::setenv("HF_TOKEN", "secret", 1);
  for (const auto& [name, text] : {std::pair{"imatrix", kImatrix}, {"perplexity", kPerplexity}, {"command", kCommand}})
    folder.script(name, text, fmt::format("echo {} \"${{HF_TOKEN:-none}}\" >> secrets.txt", name));
  const auto report = folder.run({"after.secrets=keep"});
  ::unsetenv("HF_TOKEN");
  if (!report) FAIL(render(report.error()));
  CHECK(read_text("secrets.txt") ==
        "command none\nimatrix none\nperplexity none\nperplexity none\nperplexity none\ncommand secret\n");
}

TEST_CASE("an attestation names the computed importance as a source, and is made again when something changes") {
  const PublishFolder folder;
  const Strings set{"attestation.path=out/attestation.jsonl"};
  const auto report = folder.run(set);
  if (!report) FAIL(render(report.error()));
  CHECK(folder.steps_left(set).empty());
  const auto made = boost::json::parse(read_text("out/attestation.jsonl"));
  std::map<std::string, std::string> sums;
  for (const auto& each : made.at("subject").as_array())
    sums[std::string(each.at("name").as_string())] = each.at("digest").at("sha256").as_string();
  CHECK(sums.size() == 3);
  CHECK(read_text("out/q4.gguf.sha256").starts_with(sums["q4.gguf"]));
  Strings sources;
  for (const auto& each : made.at("predicate").at("buildDefinition").at("resolvedDependencies").as_array())
    sources.emplace_back(each.at("name").as_string());
  std::ranges::sort(sources);
  CHECK(sources == Strings{"model.gguf", "out/imatrix.gguf"});
  SECTION("as when another output is made") {
    const Strings other{set.front(), "outputs.1.quantize=Q5_K"};
    CHECK(std::ranges::count(folder.steps_left(other), "attestation") == 1);
  }
  SECTION("and when somebody has changed it") {
    write_text("out/attestation.jsonl", "{}");
    CHECK(std::ranges::count(folder.steps_left(set), "attestation") == 1);
    const auto again = folder.run(set);
    REQUIRE(!again);
    CHECK(again.error().code == ExitCode::kUsage);
  }
}

TEST_CASE("no step replaces what the job reads, even with overwrite") {
  const PublishFolder folder;
  write_text("template.md", "{{name}}");
  write_text("README.md", "the card of the source");
  const auto [set, victim] = GENERATE(table<std::string, std::string>({
      {"card.path=template.md", "template.md"},
      {"card.path=perplexity", "perplexity"},
      {"card.path=imatrix", "imatrix"},
      {"card.path=command", "command"},
      {"card.path=text.txt", "text.txt"},
      {"card.path=README.md", "README.md"},
      {"attestation.path=text.txt", "text.txt"},
      {"card.path=link.md", "template.md"},
      {"quality.json=perplexity", "perplexity"},
      {"quality.json=template.md", "template.md"},
      {"report.json=template.md", "template.md"},
      {"report.html=imatrix", "imatrix"},
      {"report.json=command", "command"},
      {"outputs.1.gguf=template.md", "template.md"},
  }));
  CAPTURE(set);
  fs::create_hard_link("template.md", "link.md");
  const std::string before = read_text(victim);
  const auto report = folder.run({"card.template=template.md", set}, true);
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ExitCode::kUsage);
  CHECK(read_text(victim) == before);
  CHECK_FALSE(fs::exists("out"));
}
