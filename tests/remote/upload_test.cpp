// Jobs that upload their files to a hub: what is there afterwards, whatever the server and the machine do.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <filesystem>

#include "tests/remote/test_server.h"
#include "tests/remote/workplace.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"

using namespace ggufmill;
namespace fs = std::filesystem;

namespace {

bool has(const std::string& text, std::string_view part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

// A hub with the empty repository org/model, and a folder from which the program uploads there.
class Hub {
 public:
  explicit Hub(const std::string& token = kToken) : place_({"HF_ENDPOINT=" + server_.host(), "HF_TOKEN=" + token}) {
    fs::create_directories(server_.file("hub/org/model/first"));
    write_text(server_.file("hub/org/model/refs.json"), R"({"main": "first"})");
    GgufBuilder model;
    for (int t = 0; t < 4; ++t) {
      std::vector<float> values(256 * 1024);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>((i * 2654435761U + static_cast<unsigned>(t)) % 2001) / 1000 - 1;
      model.add_tensor(fmt::format("blk.{}.ffn_down.weight", t), {256, 1024});
      model.tensors.back().data = float_bytes(values);
    }
    model.write(place_.file("model.gguf"));
  }

  // Two outputs, of 4 MiB in parts and of 1 MiB in one piece, and a card that is part of the commit.
  static std::string job(const std::string& more = "", const std::string& to = "hf://org/model") {
    return fmt::format(
        "version: 1\nsource: {{gguf: model.gguf}}\noutputs:\n  - {{gguf: out/f32.gguf}}\n"
        "  - {{gguf: out/q4.gguf, quantize: Q4_0}}\ncard: {{path: out/README.md}}\nupload: {{to: '{}'{}}}\n",
        to, more);
  }

  std::string repository(const std::string& name = "org/model") const { return server_.file("hub/" + name); }
  // Returns the folder of the branch's commit.
  std::string commit(const std::string& name = "org/model") const {
    const auto refs = boost::json::parse(read_text(repository(name) + "/refs.json"));
    return repository(name) + "/" + std::string(refs.at("main").as_string());
  }
  // Checks that the commit has all files of the job.
  void check_complete(const std::string& name = "org/model") const {
    for (const char* file : {"f32.gguf", "q4.gguf", "README.md"}) {
      CAPTURE(file);
      REQUIRE(fs::exists(commit(name) + "/" + file));
      const bool same = read_text(commit(name) + "/" + file) == read_text(place_.file("out/" + std::string(file)));
      CHECK(same);
    }
  }
  std::size_t commits() const {
    const std::string path = repository() + "/messages.txt";
    const std::string text = fs::exists(path) ? read_text(path) : "";
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  // Returns the number of requests whose path starts with `start`.
  std::size_t requests(const std::string& start) const {
    std::size_t count = 0;
    for (const ServedRequest& request : server_.requests()) count += request.path.starts_with(start);
    return count;
  }
  void set_fault(const std::string& text) const { write_text(server_.file("fault"), text); }

  TestServer server_;
  Workplace place_;
};

}  // namespace

TEST_CASE("the files of a job are uploaded in one commit") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  hub.place_.run_job(hub.job(", message: Add all"));
  hub.check_complete();
  CHECK(read_text(hub.repository() + "/messages.txt") == "Add all\n");
  CHECK_FALSE(hub.place_.tells());
  SECTION("a job that is complete sends nothing") {
    const std::size_t before = hub.server_.requests().size();
    CHECK(has(hub.place_.run_job(hub.job(", message: Add all")), "all steps are done"));
    CHECK(hub.server_.requests().size() == before);
  }
  SECTION("another job sends only what is not there") {
    const std::size_t sent = hub.requests("/lfs/");
    fs::remove_all(hub.place_.home(".cache"));
    write_text(hub.place_.file("card.md"), "Another card.\n");
    hub.place_.run_job(hub.job("") + "limits: {threads: 1}\n", 0, {"--set", "card.template=card.md", "--overwrite"});
    hub.check_complete();
    CHECK(hub.requests("/lfs/") == sent);
    CHECK(hub.commits() == 2);
  }
}

TEST_CASE("only the files that the user names are uploaded") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  hub.place_.run_job(hub.job(", files: ['q4']"));
  CHECK(fs::exists(hub.commit() + "/q4.gguf"));
  CHECK_FALSE(fs::exists(hub.commit() + "/f32.gguf"));
}

TEST_CASE("a repository is created on request") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  SECTION("without the request, one that does not exist is an error") {
    const std::string message = hub.place_.run_job(hub.job("", "hf://org/new"), 6);
    CHECK(has(message, "the repository or branch does not exist"));
    CHECK(has(message, "create: true"));
    CHECK_FALSE(fs::exists(hub.repository("org/new")));
  }
  SECTION("private") {
    hub.place_.run_job(hub.job(", create: true, private: true", "hf://org/new"));
    hub.check_complete("org/new");
    CHECK(read_text(hub.repository("org/new") + "/private") == "True");
  }
}

TEST_CASE("a token that may not write is refused, and nothing is committed") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub("other_token");
  const std::string message = hub.place_.run_job(hub.job(), 6);
  CHECK(has(message, "the server refuses access (401)"));
  CHECK(has(message, "HF_TOKEN"));
  CHECK(hub.commits() == 0);
  CHECK(fs::exists(hub.place_.file("out/q4.gguf")));
}

TEST_CASE("a file that the hub does not accept is named") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  hub.set_fault("denied 3 1 hub");  // the third request: the batch
  const std::string message = hub.place_.run_job(hub.job(), 6);
  CHECK(has(message, "You may not write here"));
  CHECK(hub.commits() == 0);
}

TEST_CASE("every request may fail once") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  const std::string fault = GENERATE("500", "503", "reset", "lost");
  const std::string kind = GENERATE("hub", "lfs");
  std::size_t k = 1;
  for (bool happened = true; happened; ++k) {
    fs::remove(hub.server_.file("happened"));
    fs::remove_all(hub.place_.file("out"));
    fs::remove_all(hub.place_.home(".cache"));
    fs::remove_all(hub.server_.file("lfs"));
    fs::remove_all(hub.repository());
    fs::create_directories(hub.repository() + "/first");
    write_text(hub.repository() + "/refs.json", R"({"main": "first"})");
    hub.set_fault(fmt::format("{} {} 1 {}", fault, k, kind));
    CAPTURE(fault, kind, k);
    hub.place_.run_job(hub.job());
    hub.check_complete();
    happened = fs::exists(hub.server_.file("happened"));
  }
  CHECK(k > 5);
}

TEST_CASE("an upload that is killed resumes without sending again what has arrived") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  hub.set_fault("503 5 1000 hub");  // the larger file has been sent, but it is never confirmed
  write_text(hub.place_.file("job.yaml"), hub.job());
  constexpr const char* kKillThen = R"("$@" & while [ ! -e "$0" ]; do sleep 0.02; done; kill -9 $!; wait $!; exit 9)";
  const ProcessResult killed =
      hub.place_.run_by({"/bin/sh", "-c", kKillThen, hub.server_.file("happened")}, {"run", "job.yaml"});
  REQUIRE(killed.exit_code == 9);
  CHECK(hub.commits() == 0);
  const std::size_t sent = hub.requests("/lfs/");
  REQUIRE(sent >= 4);
  fs::remove(hub.server_.file("fault"));
  hub.place_.run_job(hub.job());
  hub.check_complete();
  CHECK(hub.commits() == 1);
  CHECK(hub.requests("/lfs/") - sent < sent);  // the smaller file
  CHECK_FALSE(hub.place_.tells());
}

namespace {

// The outputs of Hub::job() as files of a repository.
std::string outputs_on_hub(const std::string& more = "", const std::string& to = "hf://org/model") {
  return fmt::format(
      "version: 1\n{1}source: {{gguf: model.gguf}}\noutputs:\n  - {{gguf: '{0}/f32.gguf'}}\n"
      "  - {{gguf: '{0}/q4.gguf', quantize: Q4_0}}\n",
      to, more);
}

// Checks that the commit has both outputs, with the bytes of local ones, and that no local file is left.
void check_outputs(const Hub& hub) {
  if (!fs::exists(hub.place_.file("local"))) {
    fs::create_directories(hub.place_.file("local"));
    hub.place_.run_job(outputs_on_hub("", "local"));
  }
  for (const char* file : {"f32.gguf", "q4.gguf"}) {
    CAPTURE(file);
    REQUIRE(fs::exists(hub.commit() + "/" + file));
    const bool same = read_text(hub.commit() + "/" + file) == read_text(hub.place_.file("local/" + std::string(file)));
    CHECK(same);
  }
  CHECK(names_in(hub.place_.home(".local/state/ggufmill/uploads")).empty());
}

}  // namespace

TEST_CASE("outputs on the hub appear in one commit, and leave no local file") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  CHECK(has(hub.place_.run_job(outputs_on_hub()), "wrote hf://org/model/q4.gguf"));
  check_outputs(hub);
  CHECK(read_text(hub.repository() + "/messages.txt") == "Add 2 files\n");
  CHECK_FALSE(hub.place_.tells());
  SECTION("a file that is there is replaced only on request") {
    CHECK(has(hub.place_.run_job(outputs_on_hub(), 2), "already exists"));
    hub.place_.run_job(outputs_on_hub(), 0, {"--overwrite"});
    CHECK(hub.commits() == 1);  // its content is the same
    check_outputs(hub);
  }
  SECTION("manifests and reports are uploaded too") {
    hub.place_.run_job(outputs_on_hub("manifest: true\nreport: {json: 'hf://org/model/report.json'}\n"), 0,
                       {"--overwrite"});
    for (const char* file : {"f32.gguf.manifest.json", "q4.gguf.sha256", "report.json"})
      CHECK(fs::exists(hub.commit() + "/" + file));
    check_outputs(hub);
  }
}

TEST_CASE("a run that could not upload its outputs keeps them, and resumes") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  const std::string fault = GENERATE("denied 1 1000 lfs", "denied 4 1000 hub");
  CAPTURE(fault);
  hub.set_fault(fault);
  const ProcessResult failed = [&] {
    write_text(hub.place_.file("job.yaml"), outputs_on_hub());
    return hub.place_.run({"run", "job.yaml"});
  }();
  CAPTURE(failed.err);
  CHECK(failed.exit_code == 6);
  CHECK(has(failed.err, "4 of 4 units of work are done and kept"));
  CHECK(hub.commits() == 0);
  hub.set_fault("");
  CHECK(has(hub.place_.run_job(outputs_on_hub()), "4 of 4 units of work were done by an earlier run"));
  check_outputs(hub);
}

TEST_CASE("a run that was killed after its commit only removes its local files") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  hub.set_fault("denied 4 1000 hub");  // the commit
  hub.place_.run_job(outputs_on_hub(), 6);
  hub.set_fault("");
  fs::create_directories(hub.place_.file("local"));
  hub.place_.run_job(outputs_on_hub("", "local"));
  for (const char* file : {"f32.gguf", "q4.gguf"})
    fs::copy_file(hub.place_.file("local/" + std::string(file)), hub.commit() + "/" + file);
  hub.place_.run_job(outputs_on_hub());
  CHECK(hub.commits() == 0);
  check_outputs(hub);
}

TEST_CASE("a run that is killed while it uploads is resumed") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  write_text(hub.place_.file("job.yaml"), outputs_on_hub());
  for (int i = 1; i <= 12; ++i)
    if (hub.place_
            .run_by({"/usr/bin/timeout", "--foreground", "-s", "KILL", fmt::format("{:.2f}", 0.03 * i)},
                    {"run", "job.yaml"})
            .exit_code != 137)
      break;
  if (hub.commits() == 0) hub.place_.run_job(outputs_on_hub());
  CHECK(hub.commits() == 1);
  hub.place_.run({"run", "job.yaml", "--discard"});
  check_outputs(hub);
}

TEST_CASE("outputs on the hub that cannot be written are refused before anything is made") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  SECTION("no such repository") {
    const Hub hub;
    CHECK(has(hub.place_.run_job(outputs_on_hub("", "hf://org/none"), 6), "does not exist"));
    CHECK(hub.requests("/lfs/") == 0);
  }
  SECTION("a repository instead of a file") {
    const Hub hub;
    const std::string job = "version: 1\nsource: {gguf: model.gguf}\noutputs:\n  - {gguf: hf://org/model}\n";
    CHECK(has(hub.place_.run_job(job, 2), "names a repository, not a file in it"));
  }
}
