// Tests the files that upload jobs leave on a hub, whatever the server and the machine do.
#include <fmt/format.h>

#include "pipeline/io/platform/filesystem.h"
#include "tests/remote/test_hub.h"

using namespace ggufmill;
TEST_CASE("the files of a job are uploaded in one commit") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  const std::string messages = hub.place_.run_job(hub.job(", message: Add all"));
  CHECK(has(messages, "hf://org/model: files are sent by LFS, not in chunks by Xet: "));
  hub.check_complete();
  CHECK(read_text(hub.repository() + "/messages.txt") == "Add all\n");
  CHECK_FALSE(hub.place_.tells());
  CHECK(has(read_text(hub.place_.file("out/README.md")), "llama-cli -hf org/model "));
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

TEST_CASE("presets are uploaded with the files") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  hub.place_.run_job(hub.job("") +
                     "presets: {ollama: out/Modelfile, llama_server: out/models.ini, model: out/q4.gguf}\n");
  hub.check_complete();
  CHECK(has(read_text(hub.commit() + "/Modelfile"), "FROM ./q4.gguf\n"));
  CHECK(has(read_text(hub.commit() + "/models.ini"), "[f32]\nmodel = ./f32.gguf\n"));
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
  SECTION("public or private") {
    const auto [setting, visibility] = GENERATE(table<const char*, const char*>(
        {{", private: true", "private"}, {", private: false", "public"}, {"", "default of the organization"}}));
    hub.place_.run_job(hub.job(fmt::format(", create: true{}", setting), "hf://org/new"));
    hub.check_complete("org/new");
    CHECK(read_text(hub.repository("org/new") + "/visibility") == visibility);
  }
  SECTION("although the answer to the request is lost, or the hub is busy with another") {
    hub.set_fault(GENERATE("lost 4 1 hub", "busy 4 1 hub"));  // the fourth request, after two lists and a question
    hub.place_.run_job(hub.job(", create: true", "hf://org/new"));
    CHECK(fs::exists(hub.server_.file("happened")));
    hub.check_complete("org/new");
  }
}

TEST_CASE("a file of the repository that the job has not uploaded is replaced only on request") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  const std::string name = GENERATE("README.md", "q4.gguf");
  CAPTURE(name);
  write_text(hub.commit() + "/other.txt", "other");
  write_text(hub.commit() + "/" + name, "something else");
  for (const char* verb : {"check", "run"}) {
    write_text(hub.place_.file("job.yaml"), hub.job());
    const ProcessResult refused = hub.place_.run({verb, "job.yaml"});
    CHECK(refused.exit_code == 2);
    CHECK(has(refused.err, "hf://org/model/" + name + ": error: the output already exists"));
  }
  CHECK_FALSE(fs::exists(hub.place_.file("out")));
  CHECK(hub.commits() == 0);
  hub.place_.run_job(hub.job(), 0, {"--overwrite"});
  hub.check_complete();
  CHECK(read_text(hub.commit() + "/other.txt") == "other");
  SECTION("what the job has uploaded may be replaced") {
    write_text(hub.place_.file("card.md"), "Another card.\n");
    hub.place_.run_job(hub.job(), 0, {"--set", "card.template=card.md"});
    hub.check_complete();
    CHECK(hub.commits() == 2);
  }
  SECTION("what somebody has changed since may not") {
    write_text(hub.commit() + "/README.md", "changed on the hub");
    write_text(hub.place_.file("card.md"), "Another card.\n");
    CHECK(has(hub.place_.run_job(hub.job(), 2, {"--set", "card.template=card.md"}), "the output already exists"));
    CHECK(read_text(hub.commit() + "/README.md") == "changed on the hub");
  }
}

TEST_CASE("a card that the hub does not accept is refused before anything is sent") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  write_text(hub.place_.file("README.md"), "---\nlicense: none-such\n---\n");
  const std::string message = hub.place_.run_job(hub.job(), 6);
  CHECK(has(message, "out/README.md: error: the hub refuses the front matter of the card"));
  CHECK(has(message, "\"license\" must be one of"));
  CHECK(hub.requests("/lfs/") == 0);
  CHECK(hub.commits() == 0);
}

TEST_CASE("a file that the repository ignores is an error, and nothing is committed") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  hub.set_fault("ignored 1 1000 hub");
  CHECK(has(hub.place_.run_job(hub.job(), 6), "the hub ignores the file"));
  CHECK(hub.commits() == 0);
}

TEST_CASE("a token that may not write is refused, and nothing is committed") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub("other_token");
  const std::string message = hub.place_.run_job(hub.job(), 6);
  CHECK(has(message, "the server refuses access (401)"));
  CHECK(has(message, "HF_TOKEN"));
  CHECK(hub.commits() == 0);
  CHECK_FALSE(fs::exists(hub.place_.file("out")));
}

TEST_CASE("a job that uploads without a token is refused before anything is written") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub("");
  const std::string message = hub.place_.run_job(hub.job(), 2);
  CHECK(has(message, "there is no token for the hub"));
  CHECK(has(message, "HF_TOKEN"));
  CHECK_FALSE(fs::exists(hub.place_.file("out")));
}

TEST_CASE("a file that the hub does not accept is named") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  hub.set_fault("denied 6 1 hub");  // the sixth request: the batch
  const std::string message = hub.place_.run_job(hub.job(), 6);
  CHECK(has(message, "You may not write here"));
  CHECK(hub.commits() == 0);
}

TEST_CASE("a file that is larger than the hub accepts is refused before anything is written") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  hub.place_.write_huge_model(60);
  for (const char* verb : {"check", "run"}) {
    write_text(hub.place_.file("job.yaml"), hub.job());
    const ProcessResult refused = hub.place_.run({verb, "job.yaml"});
    CHECK(refused.exit_code != 0);  // 2; or 6 if the disk has too little space as well
    CHECK(has(refused.err, "'out/f32.gguf' has 60.00 GiB, but the hub accepts files"));
    CHECK(has(refused.err, "shard_size"));
  }
  const auto check = [&](const std::string& setting) {
    return hub.place_.run_by({"/usr/bin/env", setting}, {"check", "job.yaml"}).err;
  };
  const std::string has_xet = "GGUFMILL_PYTHON=/bin/true";  // as a Python with hf_xet answers
  CHECK(has(check("HF_HUB_DISABLE_XET=1"), "without Xet: HF_HUB_DISABLE_XET is set"));
  CHECK_FALSE(has(check(has_xet), "HF_HUB_DISABLE_XET"));
  fs::create_directories(hub.server_.file("xet"));
  CHECK_FALSE(has(check(has_xet), "without Xet"));
  CHECK_FALSE(fs::exists(hub.place_.file("out")));
  CHECK(hub.requests("/lfs/") == 0);
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
    CHECK(hub.commits() == 1);
    happened = fs::exists(hub.server_.file("happened"));
  }
  CHECK(k > 5);
}

TEST_CASE("an upload that is killed resumes without sending again what has arrived") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  hub.set_fault("503 8 1000 hub");  // the larger file has been sent, but it is never confirmed
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
