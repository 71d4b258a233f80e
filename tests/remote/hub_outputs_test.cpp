// Outputs that are files of a repository on a hub.
#include <fmt/format.h>

#include "pipeline/io/platform/filesystem.h"
#include "tests/remote/test_hub.h"

using namespace ggufmill;
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
  SECTION("manifests appear in the commit of their outputs") {
    std::string job = outputs_on_hub("manifest: true\n");
    job.replace(job.find("Q4_0"), 4, "Q4_1");
    hub.place_.run_job(job, 0, {"--overwrite"});
    CHECK(read_text(hub.repository() + "/messages.txt") == "Add 2 files\nAdd 6 files\n");
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
  SECTION("a file that is larger than the hub accepts") {
    const Hub hub;
    hub.place_.write_huge_model(60);
    const std::string message = hub.place_.run_job(outputs_on_hub(), 2);
    CHECK(has(message,
              "hf://org/model/f32.gguf: error: the output has 60.00 GiB, but the hub accepts files of at most "
              "46.57 GiB without Xet"));
    CHECK(has(message, "shard_size"));
    CHECK(hub.requests("/lfs/") == 0);
    CHECK_FALSE(fs::exists(hub.place_.home(".local/state/ggufmill/uploads")));
  }
  SECTION("a file that only Xet takes") {
    const Hub hub;
    hub.place_.write_huge_model(60);
    write_text(hub.place_.file("job.yaml"), outputs_on_hub());
    const auto check = [&](const std::string& setting) {
      return hub.place_.run_by({"/usr/bin/env", setting}, {"check", "job.yaml"}).err;
    };
    const std::string has_xet = "GGUFMILL_PYTHON=/bin/true";  // as a Python with hf_xet answers
    CHECK(has(check("HF_HUB_DISABLE_XET=1"), "without Xet: HF_HUB_DISABLE_XET is set"));
    CHECK(has(check(has_xet), "without Xet: it does not offer Xet for this repository"));
    fs::create_directories(hub.server_.file("xet"));
    CHECK_FALSE(has(check(has_xet), "without Xet"));
    CHECK(hub.requests("/api/models/org/model/xet-write-token/main") == 2);
  }
  SECTION("a repository instead of a file") {
    const Hub hub;
    const std::string job = "version: 1\nsource: {gguf: model.gguf}\noutputs:\n  - {gguf: hf://org/model}\n";
    CHECK(has(hub.place_.run_job(job, 2), "names a repository, not a file in it"));
  }
}

TEST_CASE("a commit counts only if the hub names it or the branch has the files") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  SECTION("it is not there") {
    const std::string fault = GENERATE("empty", "page", "error", "unnamed");
    CAPTURE(fault);
    hub.set_fault(fault + " 1 1 commit");
    CHECK(has(hub.place_.run_job(outputs_on_hub(), 6), "the hub did not confirm the commit"));
    CHECK(hub.commits() == 0);
  }
  SECTION("it is there") {
    hub.set_fault("wordless 1 1 commit");
    hub.place_.run_job(outputs_on_hub());
    check_outputs(hub);
  }
}

TEST_CASE("an address that the hub does not know is the repository only in requests about it") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  const auto [fault, message] =
      GENERATE(table<const char*, const char*>({{"gone 1 1 commit", "the repository or branch does not exist"},
                                                {"gone 1 1 verify", "run the same command again"}}));
  CAPTURE(fault);
  hub.set_fault(fault);
  CHECK(has(hub.place_.run_job(outputs_on_hub(), 6), message));
  CHECK(hub.commits() == 0);
}

TEST_CASE("a hub that names a header or an address that may not be used gets an error, and nothing is sent there") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const auto [fault, message] = GENERATE(
      table<const char*, const char*>({{"crlf", "invalid value"},
                                       {"lf", "invalid value"},
                                       {"number", "invalid value"},
                                       {"name", "invalid name"},
                                       {"colon", "invalid name"},
                                       {"host", "may only be set by the HTTP client"},
                                       {"length", "may only be set by the HTTP client"},
                                       {"chunked", "may only be set by the HTTP client"},
                                       {"schemeless", "the server refers to an invalid URL"},
                                       {"file", "the server refers to an invalid URL"},
                                       {"user", "the server refers to an address with a user or a password"}}));
  CAPTURE(fault);
  const Hub hub;
  hub.set_fault(fmt::format("{} 1 1000 hub", fault));
  CHECK(has(hub.place_.run_job(outputs_on_hub(), 6), message));
  CHECK(hub.requests("/wrong") == 0);
  CHECK(hub.requests("/smuggled") == 0);
  CHECK(hub.commits() == 0);
}

TEST_CASE("a list of files that does not end, or returns to an earlier page, ends the run") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  const auto [fault, message] = GENERATE(table<const char*, const char*>(
      {{"endless", "has more than 100 pages"}, {"repeated", "returns to an earlier page"}}));
  hub.set_fault(fmt::format("{} 1 100000 hub", fault));
  CHECK(has(hub.place_.run_job(outputs_on_hub(), 6), message));
  CHECK(hub.requests("/api/models/org/model/tree") <= 100);
}

TEST_CASE("an error of the hub that repeats the token is shown without it") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  hub.set_fault(GENERATE("echo 1 1000 hub", "echo 2 1000 hub", "echo 3 1000 hub", "echo 4 1000 hub"));
  CHECK(has(hub.place_.run_job(outputs_on_hub(), 6), "the hub says: 'not with Bearer ...'"));
  CHECK_FALSE(hub.place_.tells());
}

TEST_CASE("a token that goes to this machine in the clear does not go through a proxy") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Hub hub;
  write_text(hub.place_.file("job.yaml"), outputs_on_hub());
  const ProcessResult run =
      hub.place_.run_by({"/usr/bin/env", "http_proxy=http://127.0.0.1:1", "no_proxy="}, {"check", "job.yaml"});
  CAPTURE(run.err);
  CHECK(run.exit_code == 0);
}
