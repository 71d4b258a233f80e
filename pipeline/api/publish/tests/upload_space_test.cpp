// Jobs whose outputs are removed when the hub has their content, because the disk has no room for all of them.
#include <fmt/format.h>

#include <map>

#include "pipeline/io/platform/filesystem.h"
#include "tests/remote/test_hub.h"
#include "tests/support/llama_scripts.h"

using namespace ggufmill;
namespace {

// One output of 4 MiB and two that have room together, with importance and quality by scripts. After each output, a
// command lists the folder.
class SmallDisk : public Hub {
 public:
  SmallDisk() {
    GgufBuilder importance = gguf_importance();
    for (int t = 0; t < 4; ++t)
      add_entry(importance, fmt::format("blk.{}.ffn_down.weight", t), std::vector<float>(256, 1), {1});
    importance.write(place_.file("prepared.gguf"));
    write_text(place_.file("text.txt"), std::string(2000, 'a'));
    script("imatrix", kImatrix);
    script("perplexity", kPerplexity);
    script("list", "#!/bin/sh\n{}echo $(cd out && ls *.gguf) >> listed.txt\n");
  }

  static std::string job(const std::string& space = ", space: 4200000", const std::string& more = "") {
    return fmt::format(R"(version: 1
source: {{gguf: model.gguf}}
stages:
  - importance: {{compute: {{program: ./imatrix, text: text.txt, chunks: 2, file: out/imatrix.gguf}}}}
outputs:
  - {{gguf: out/f32.gguf, after: {{command: [./list]}}}}
  - {{gguf: out/q4.gguf, quantize: Q4_0, after: {{command: [./list]}}}}
  - {{gguf: out/iq2.gguf, quantize: IQ2_XS}}
quality: {{program: ./perplexity, text: text.txt, json: out/quality.json}}
card: {{path: out/README.md}}
upload: {{to: hf://org/model{}}}
{})",
                       space, more);
  }

  // Returns the files of the commit, by name, with their bytes.
  std::map<std::string, std::string> committed() const {
    std::map<std::string, std::string> files;
    for (const std::string& name : names_in(commit())) files[name] = read_text(commit() + "/" + name);
    return files;
  }
  // Returns the models in the folder of the outputs.
  std::vector<std::string> models() const {
    std::vector<std::string> models;
    for (const std::string& name : names_in(place_.file("out")))
      if (name.ends_with("f32.gguf") || name.ends_with("q4.gguf") || name.ends_with("iq2.gguf")) models.push_back(name);
    return models;
  }

 private:
  void script(const std::string& name, const char* text) const {
    write_text(place_.file(name), fmt::format(fmt::runtime(text), ":\n"));
    fs::permissions(place_.file(name), fs::perms::owner_all);
  }
};

// Returns what a job without a bound uploads.
std::map<std::string, std::string> files_of_large_disk() {
  const SmallDisk hub;
  hub.place_.run_job(SmallDisk::job(""));
  REQUIRE(hub.models().size() == 3);
  auto files = hub.committed();
  files.erase("README.md");  // has the job
  return files;
}

void check_same(const SmallDisk& hub, const std::map<std::string, std::string>& expected) {
  auto files = hub.committed();
  CHECK(files.erase("README.md") == 1);
  CHECK((files == expected));
  CHECK(hub.commits() == 1);
  CHECK(hub.models().empty());
}

}  // namespace

TEST_CASE("outputs that have no room together are written one after the other, and appear in one commit") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const auto [space, listed] =
      GENERATE(table<const char*, const char*>({{", space: 4200000", "f32.gguf\nimatrix.gguf iq2.gguf q4.gguf\n"},
                                                {", space: largest", "f32.gguf\nimatrix.gguf q4.gguf\n"}}));
  CAPTURE(space);
  const auto expected = files_of_large_disk();
  const SmallDisk hub;
  hub.place_.run_job(hub.job(space));
  check_same(hub, expected);
  CHECK(read_text(hub.place_.file("listed.txt")) == listed);
  CHECK(has(read_text(hub.place_.file("out/README.md")), "91.25 %"));
  const std::string status = hub.place_.run({"status", "job.yaml"}).out;
  CHECK(has(status, "sent"));
  CHECK_FALSE(has(status, "missing"));
  SECTION("a job that is complete does nothing") {
    const std::size_t before = hub.server_.requests().size();
    CHECK(has(hub.place_.run_job(hub.job(space)), "all steps are done"));
    CHECK(hub.server_.requests().size() == before);
  }
  SECTION("another output is compared with the base, which is written again") {
    std::string job = hub.job(space);
    job.replace(job.find("IQ2_XS"), 6, "IQ3_S");
    hub.place_.run_job(job, 0, {"--overwrite"});
    CHECK(hub.commits() == 2);
    CHECK(hub.models().empty());
    CHECK((hub.committed()["f32.gguf"] == expected.at("f32.gguf")));
    CHECK((hub.committed()["iq2.gguf"] != expected.at("iq2.gguf")));
  }
}

TEST_CASE("content that the hub forgets before the commit is made and sent again") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const auto expected = files_of_large_disk();
  const SmallDisk hub;
  write_text(hub.place_.file("job.yaml"), hub.job());
  for (int k = 1; k < 40 && !(fs::exists(hub.place_.file("out/README.md")) && hub.models().empty()); ++k) {
    hub.set_fault(fmt::format("denied {} 1000 hub", k));
    REQUIRE(hub.place_.run({"run", "job.yaml"}).exit_code == 6);
  }
  REQUIRE(hub.commits() == 0);
  hub.set_fault("");
  fs::remove_all(hub.server_.file("lfs"));
  CHECK(has(hub.place_.run_job(hub.job(), 75), "the hub has forgotten the content of this file"));
  hub.place_.run_job(hub.job());
  check_same(hub, expected);
}

TEST_CASE("a job with a small disk that is killed at any time is resumed") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const auto expected = files_of_large_disk();
  const SmallDisk hub;
  write_text(hub.place_.file("job.yaml"), hub.job());
  for (int i = 1; i <= 30; ++i)
    if (hub.place_
            .run_by({"/usr/bin/timeout", "--foreground", "-s", "KILL", fmt::format("{:.2f}", 0.03 * i)},
                    {"run", "job.yaml"})
            .exit_code != 137)
      break;
  if (hub.commits() == 0) hub.place_.run_job(hub.job());
  check_same(hub, expected);
}

TEST_CASE("what a small disk does not allow is refused before anything is written") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const SmallDisk hub;
  const auto [job, message] = GENERATE(table<std::string, const char*>(
      {{SmallDisk::job(", space: 4M"), "'out/f32.gguf' alone has 4.00 MiB, more than the space of 3.81 MiB"},
       {SmallDisk::job() + "report: {html: out/report.html}\n", "a report is about outputs of one read"},
       {SmallDisk::job(", space: 1G", "report: {}\n"), "a report is about outputs of one read"}}));
  CHECK(has(hub.place_.run_job(job, 2), message));
  CHECK_FALSE(fs::exists(hub.place_.file("out")));
}

TEST_CASE("outputs are compared with one that is written first") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const SmallDisk hub;
  std::string job = hub.job();
  job.replace(job.find("json: out/quality.json"), 22, "against: out/q4.gguf");
  CHECK(has(hub.place_.run_job(job, 2), "'out/q4.gguf' is written after others have been removed"));
}
