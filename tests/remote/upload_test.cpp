// Jobs that upload their files to a hub: what is there afterwards, whatever the server and the machine do.
#include <fmt/format.h>

#include <filesystem>

#include "tests/remote/test_hub.h"

using namespace ggufmill;
namespace fs = std::filesystem;

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
  hub.set_fault("denied 4 1 hub");  // the fourth request: the batch
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
  hub.set_fault("503 6 1000 hub");  // the larger file has been sent, but it is never confirmed
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
