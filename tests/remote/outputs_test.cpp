// Complete runs of the program whose outputs are objects of a bucket: the bytes must equal those of local files,
// whatever the server and the machine do, and nothing may be left behind.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <cstdlib>
#include <random>
#include <sstream>
#include <thread>

#include "pipeline/io/platform/filesystem.h"
#include "tests/remote/uploads.h"
#include "tests/support/checkpoint_maker.h"
#include "tests/support/importance_files.h"
#include "tests/support/shared_data.h"

using namespace ggufmill;
TEST_CASE("outputs in a bucket have the bytes of local files") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  const std::string more = GENERATE("", "limits: {memory: 40MiB}\n", "limits: {threads: 1}\n");
  CAPTURE(more);
  const std::string said = uploads.place().run_job(Uploads::job("s3://models/a folder/x+y", more));
  CHECK(has(said, "wrote s3://models/a folder/x+y/all of it.gguf"));
  uploads.check_same("a folder/x+y");
  uploads.check_clean();
  CHECK_FALSE(uploads.tells());
  CHECK(uploads.requests("PUT", "partNumber=4") == 1);
  const std::string types = read_text(uploads.server().file("types.txt"));
  CHECK(has(types, "application/octet-stream s3://models/a folder/x+y/all of it.gguf\n"));
  CHECK(has(types, "application/json s3://models/a folder/x+y/all of it.gguf.manifest.json\n"));
}

TEST_CASE("existing objects are kept, or replaced on request") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  const std::string job = Uploads::job("s3://models/a");
  fs::create_directories(uploads.bucket() + "/a");
  write_text(uploads.bucket() + "/a/q-00002-of-00002.gguf", "old");
  const std::string refused = uploads.place().run_job(job, 2);
  CHECK(has(refused, "s3://models/a/q-00002-of-00002.gguf: error: the output already exists"));
  CHECK(uploads.requests("POST", "") == 0);
  uploads.place().run_job(job, 0, {"--overwrite"});
  uploads.check_same("a");
  uploads.check_clean();
}

TEST_CASE("of two runs that write the same objects, one is refused and the other writes them all") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.local();
  for (int round = 0; round < 4; ++round) {
    uploads.remove_objects();
    write_text(uploads.place().file("job.yaml"), Uploads::job("s3://models/a"));
    ProcessResult results[2];
    {
      std::jthread other([&] { results[1] = uploads.place().run({"run", "job.yaml"}); });
      results[0] = uploads.place().run({"run", "job.yaml"});
    }
    CAPTURE(results[0].err, results[1].err);
    CHECK(std::min(results[0].exit_code, results[1].exit_code) == 0);
    const int refused = std::max(results[0].exit_code, results[1].exit_code);
    CHECK((refused == 75 || refused == 2));  // 2: the other run has already finished
    uploads.check_same("a");
    uploads.check_clean();
  }
}

TEST_CASE("an output whose inputs are unchanged is not written again") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.place().run_job(Uploads::job("s3://models/a"));
  const std::size_t before = uploads.requests("PUT", "");
  uploads.place().run_job(Uploads::job("s3://models/a"), 0, {"--skip-unchanged"});
  CHECK(uploads.requests("PUT", "") == before);
  const ProcessResult verified = uploads.place().run({"verify", "s3://models/a/all of it.gguf"});
  CAPTURE(verified.out, verified.err);
  CHECK(verified.exit_code == 0);
}

TEST_CASE("an object that appears during the run is not replaced") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  const std::string bucket = GENERATE("models", "old-models");
  CAPTURE(bucket);
  fs::create_directories(uploads.server().file("s3/" + bucket));
  const std::string job =
      fmt::format("version: 1\nsource: {{gguf: model.gguf}}\noutputs: [{{gguf: 's3://{}/a.gguf'}}]\n", bucket);
  // The upload is complete but for the last request.
  uploads.set_fault("denied 1 1 complete");
  CHECK(has(uploads.place().run_job(job, 6), "the server refuses access"));
  uploads.set_fault("");
  write_text(uploads.server().file("s3/" + bucket + "/a.gguf"), "other");
  CHECK(has(uploads.place().run_job(job, 2), "the output already exists"));
  CHECK(read_text(uploads.server().file("s3/" + bucket + "/a.gguf")) == "other");
  const ProcessResult discarded = uploads.place().run({"run", "job.yaml", "--discard"});
  CHECK(discarded.exit_code == 0);
  uploads.check_clean();
}

TEST_CASE("whichever request fails once, the outputs are complete and nothing is left") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.local();
  struct Fault {
    const char *name, *kind;  // which requests fail: empty for all
  };
  const Fault fault =
      GENERATE(Fault{"503", ""}, Fault{"lost", ""}, Fault{"reset", ""}, Fault{"half", "start"},
               Fault{"half", "complete"}, Fault{"damaged", "part"}, Fault{"damaged", "put"}, Fault{"late", "complete"});
  bool happened = true;
  for (int k = 1; happened; ++k) {
    CAPTURE(fault.name, fault.kind, k);
    uploads.set_fault(fmt::format("{} {} 1 {}", fault.name, k, fault.kind));
    uploads.place().run_job(Uploads::job("s3://models/a"));
    happened = fs::exists(uploads.server().file("happened"));
    fs::remove(uploads.server().file("happened"));
    uploads.check_same("a");
    uploads.check_clean();
    uploads.remove_objects();
    CHECK((happened || k > 2));
  }
  CHECK_FALSE(uploads.tells());
}

TEST_CASE("whenever every k-th request fails, the outputs are complete and nothing is left") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.local();
  const std::string fault = GENERATE("503", "lost");
  const bool is_thorough = std::getenv("GGUFMILL_KILLS") != nullptr;  // else some k are skipped: retries wait
  bool happened = true;
  for (int k = 2; happened; k += is_thorough ? 1 : 1 + k / 3) {
    CAPTURE(fault, k);
    uploads.set_fault(fmt::format("{} %{}", fault, k));
    uploads.place().run_job(Uploads::job("s3://models/a"));
    happened = fs::exists(uploads.server().file("happened"));
    fs::remove(uploads.server().file("happened"));
    uploads.check_same("a");
    uploads.check_clean();
    uploads.remove_objects();
    CHECK((happened || k > 10));
  }
}

TEST_CASE("while every request fails, a run gives up, and the next one writes the outputs") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.set_fault("reset %1");
  CHECK(has(uploads.place().run_job(Uploads::job("s3://models/a"), 75), "given up after 8 attempts"));
  CHECK(fs::is_empty(uploads.bucket()));
  uploads.set_fault("");
  uploads.place().run_job(Uploads::job("s3://models/a"));
  uploads.check_same("a");
  uploads.check_clean();
}

TEST_CASE("a run that is killed at any time is resumed, and nothing is left") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.local();
  const char* const count = std::getenv("GGUFMILL_KILLS");
  const int kills = count ? std::atoi(count) : 20;
  std::mt19937 random(7);
  int killed = 0;
  double seconds = 0.5;
  while (killed < kills) {
    int in_a_row = 0;
    while (true) {
      const double after = seconds * std::uniform_real_distribution<double>(0.02, 1)(random);
      write_text(uploads.place().file("job.yaml"), Uploads::job("s3://models/a"));
      const ProcessResult run = uploads.place().run_by(
          {"/usr/bin/timeout", "--foreground", "-s", "KILL", fmt::format("{:.3f}", after)}, {"run", "job.yaml"});
      CAPTURE(after, killed, run.out, run.err);
      uploads.check_whole("a");
      if (run.exit_code == 0 || run.exit_code == 124) {  // 124: it ended just before it was to be killed
        seconds = std::max(0.1, run.seconds * 1.1);
        break;
      }
      // The run before was killed when it had done everything but exit.
      if (in_a_row != 0 && run.exit_code == 2 && has(run.err, "the output already exists")) break;
      REQUIRE(run.exit_code == 137);
      ++killed;
      if (++in_a_row == 10) {
        const ProcessResult rest = uploads.place().run({"run", "job.yaml"});
        CAPTURE(rest.err);
        REQUIRE(rest.exit_code == 0);
        break;
      }
    }
    uploads.check_same("a");
    uploads.check_clean();
    uploads.remove_objects();
  }
  CHECK_FALSE(uploads.tells());
}

TEST_CASE("a resumed run uploads only the parts that are missing") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  const std::string job = Uploads::job("s3://models/a");
  uploads.local();
  uploads.set_fault("full 6 1000 part");
  const std::string full = uploads.place().run_job(job, 6);
  CHECK(has(full, "the bucket is full"));
  CHECK(has(full, "run the same command again to resume"));
  CHECK_FALSE(uploads.tells());
  uploads.set_fault("");
  const std::size_t before = uploads.requests("PUT", "partNumber");
  uploads.place().run_job(job);
  CHECK(uploads.requests("PUT", "partNumber") - before <= 4);  // of six: at most those that were in flight
  uploads.check_same("a");
  uploads.check_clean();
}

TEST_CASE("without the permission to list parts, an interrupted run starts over") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  const std::string job = Uploads::job("s3://models/a");
  uploads.set_fault("full 3 1000 part");
  uploads.place().run_job(job, 6);
  uploads.set_fault("nolist 1 1000");
  const std::string again = uploads.place().run_job(job);
  CHECK(has(again, "cannot be examined: cannot list the parts of the upload: the server refuses access"));
  uploads.check_same("a");
  uploads.check_clean();
}

TEST_CASE("a server that cannot be reached when a run is resumed loses nothing") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  const std::string job = Uploads::job("s3://models/a");
  uploads.set_fault("full 6 1000 part");
  uploads.place().run_job(job, 6);
  std::istringstream before(read_text(uploads.server().file("uploads.txt")));
  const Workplace& place = uploads.place();
  const ProcessResult down =
      place.run_by({"/usr/bin/env", "http_proxy=http://127.0.0.1:1", "no_proxy="}, {"run", "job.yaml"});
  CAPTURE(down.err);
  CHECK(down.exit_code == 75);
  // The server may still take a part that was on its way when the first run ended.
  const std::string after = read_text(uploads.server().file("uploads.txt"));
  for (std::string part; std::getline(before, part);) CHECK(has(after, part + "\n"));
  uploads.set_fault("");
  place.run_job(job);
  uploads.check_same("a");
  uploads.check_clean();
}

TEST_CASE("two machines that write the same object make one of it") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.local();
  write_text(uploads.place().file("job.yaml"), Uploads::job("s3://models/a"));
  ProcessResult other;
  {
    const std::jthread second([&] {
      other = uploads.place().run_by({"/usr/bin/env", "XDG_STATE_HOME=" + uploads.place().home("other")},
                                     {"run", "job.yaml"});
    });
    const ProcessResult one = uploads.place().run({"run", "job.yaml"});
    CAPTURE(one.err);
    CHECK((one.exit_code == 0 || one.exit_code == 2));
  }
  CAPTURE(other.err);
  CHECK((other.exit_code == 0 || other.exit_code == 2));
  uploads.check_same("a");
  uploads.place().run({"run", "job.yaml", "--discard"});
  uploads.place().run_by({"/usr/bin/env", "XDG_STATE_HOME=" + uploads.place().home("other")},
                         {"run", "job.yaml", "--discard"});
  uploads.check_clean();
}

TEST_CASE("an upload that has expired starts over") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  const std::string job = Uploads::job("s3://models/a");
  uploads.set_fault("expired 3 1 part");
  const ProcessResult first = [&] {
    write_text(uploads.place().file("job.yaml"), job);
    return uploads.place().run({"run", "job.yaml"});
  }();
  CHECK(first.exit_code == 6);
  CHECK(has(first.err, "the upload no longer exists"));
  uploads.set_fault("");
  const std::string again = uploads.place().run_job(job);
  CHECK(has(again, "has expired, or another program has aborted it"));
  uploads.check_same("a");
  uploads.check_clean();
}

TEST_CASE("an option discards the uploads of an interrupted run") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  const std::string job = Uploads::job("s3://models/a");
  uploads.set_fault("full 3 1000 part");
  uploads.place().run_job(job, 6);
  CHECK_FALSE(read_text(uploads.server().file("uploads.txt")).empty());
  const ProcessResult check = uploads.place().run({"check", "job.yaml"});
  CHECK(has(check.err + check.out, "discard"));
  const ProcessResult discarded = uploads.place().run({"run", "job.yaml", "--discard"});
  CAPTURE(discarded.err);
  CHECK(discarded.exit_code == 0);
  uploads.check_clean();
  CHECK(fs::is_empty(uploads.bucket()));
}

TEST_CASE("what a server refuses is one clear error, and nothing is left") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  struct Case {
    const char *fault, *job, *error;
  };
  const Case one = GENERATE(Case{"denied 1 1000", "s3://models/a", "the server refuses access"},
                            Case{"skew 1 1000", "s3://models/a", "the clock of this machine"},
                            Case{"full 1 1000", "s3://models/a", "the bucket is full"},
                            Case{"", "s3://other/a", "the bucket 'other' does not exist"});
  Uploads uploads;
  uploads.set_fault(one.fault);
  const std::string error = uploads.place().run_job(Uploads::job(one.job), 6);
  CHECK(has(error, one.error));
  CHECK(error.find("error:") == error.rfind("error:"));
  uploads.set_fault("");
  uploads.check_clean();
  CHECK(fs::is_empty(uploads.bucket()));
}

TEST_CASE("a success that is not one of a bucket is an error, whichever request it answers") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const std::string kind = GENERATE("start", "part", "complete", "put");
  const std::string fault = GENERATE("empty", "page", "hidden", "strange", "spaced", "cut", "bare", "other");
  CAPTURE(kind, fault);
  Uploads uploads;
  uploads.set_fault(fmt::format("{} 1 1000 {}", fault, kind));
  const std::string job =
      "version: 1\nmanifest: true\nsource: {gguf: model.gguf}\noutputs: [{gguf: 's3://models/a.gguf'}]\n";
  uploads.place().run_job(job, 6);
  CHECK(fs::exists(uploads.bucket() + "/a.gguf") == (kind == "put"));  // the manifest is put after the output
  CHECK_FALSE(fs::exists(uploads.bucket() + "/a.gguf.manifest.json"));
}

TEST_CASE("a completion without a result counts if the object is there") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.set_fault(GENERATE("wordless 1 1000 complete", "wordless 1 1000 put", "foreign 1 1000 complete",
                             "elsewhere 1 1000 complete"));
  uploads.place().run_job(Uploads::job("s3://models/a"));
  uploads.check_same("a");
  uploads.check_clean();
}

TEST_CASE("an object with the token of the run, but another size, is not its output") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.set_fault("short 1 1000 complete");
  const std::string job = "version: 1\nsource: {gguf: model.gguf}\noutputs: [{gguf: 's3://models/a.gguf'}]\n";
  CHECK(has(uploads.place().run_job(job, 6), "cannot complete the upload"));
  CHECK(fs::exists(uploads.bucket() + "/a.gguf"));
  SECTION("nor when the run is resumed") { uploads.place().run_job(job, 2); }
}

TEST_CASE("an upload that is started for another object is an error") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.set_fault("elsewhere 1 1000 start");
  CHECK(has(uploads.place().run_job(Uploads::job("s3://models/a"), 6), "the answer names the key 'other'"));
  CHECK(uploads.requests("PUT", "") == 0);
}

TEST_CASE("a manifest does not vouch for bytes of the server that were not written") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.set_fault("rotten 1 1000 complete");
  const std::string job =
      "version: 1\nmanifest: true\nsource: {gguf: model.gguf}\noutputs: [{gguf: 's3://models/a.gguf'}]\n";
  for (int run = 0; run < 2; ++run) {
    CAPTURE(run);
    CHECK(has(uploads.place().run_job(job, 6), "what the server returns is not what was written"));
    CHECK_FALSE(fs::exists(uploads.bucket() + "/a.gguf.manifest.json"));
  }
}

TEST_CASE("a list of parts that does not end, or returns to its beginning, ends the run") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.set_fault("full 3 1000 part");
  uploads.place().run_job(Uploads::job("s3://models/a"), 6);
  uploads.set_fault(
      GENERATE("endless 1 100000 list", "backwards 1 100000 list", "page 1 1000 list", "elsewhere 1 1000 list"));
  CHECK(has(uploads.place().run_job(Uploads::job("s3://models/a"), 6), "the answer is not that of a bucket"));
  CHECK(uploads.requests("GET", "uploadId") <= 400);  // of three files; one is tried again
  CHECK(fs::is_empty(uploads.bucket()));
}

TEST_CASE("an output that is too large for an object is refused before anything is sent") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.place().write_huge_model(6 << 10);
  const std::string refused =
      uploads.place().run_job("version: 1\nsource: {gguf: model.gguf}\noutputs: [{gguf: 's3://models/a.gguf'}]\n", 2);
  CHECK(has(refused, "s3://models/a.gguf: error: "));
  CHECK(has(refused, "5.00 TiB"));
  CHECK(uploads.requests("POST", "") == 0);
  uploads.check_clean();
}

TEST_CASE("credentials that are wrong or missing are reported before the run") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  const std::string endpoint = "AWS_ENDPOINT_URL_S3=" + uploads.server().host();
  const std::string job = fmt::format("version: 1\nsource: {{gguf: '{}'}}\noutputs: [{{gguf: 's3://models/a.gguf'}}]\n",
                                      uploads.place().file("model.gguf"));
  const Workplace wrong({endpoint, std::string("AWS_ACCESS_KEY_ID=") + kS3Key, "AWS_SECRET_ACCESS_KEY=another"});
  CHECK(has(wrong.run_job(job, 6), "the server refuses the credentials"));
  const Workplace unknown({endpoint, "AWS_ACCESS_KEY_ID=nobody", std::string("AWS_SECRET_ACCESS_KEY=") + kS3Secret});
  CHECK(has(unknown.run_job(job, 6), "the server refuses the credentials"));
  const Workplace nobody({endpoint});
  CHECK(has(nobody.run_job(job, 6), "set AWS_ACCESS_KEY_ID"));
  uploads.check_clean();
}

TEST_CASE("a user who may write but not read can upload") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  fs::create_directories(uploads.server().file("s3/writeonly-models"));
  const std::string job =
      "version: 1\nsource: {gguf: model.gguf}\noutputs: [{gguf: 's3://writeonly-models/a.gguf', quantize: Q8_0}]\n";
  uploads.place().run_job(job);
  CHECK(fs::exists(uploads.server().file("s3/writeonly-models/a.gguf")));
  CHECK(has(uploads.place().run_job(job, 2), "the output already exists"));
  CHECK(uploads.requests("POST", "uploads=") == 2);
}

TEST_CASE("the verb quantize writes to a bucket") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  uploads.check_verb({"quantize", "model.gguf", "{}q.gguf", "Q8_0"}, "q.gguf");
}

TEST_CASE("the verb convert writes to a bucket") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const auto shared = shared_data();
  if (!shared) GGUFMILL_SKIP("no shared data");
  Uploads uploads;
  const fs::path checkpoint = make_checkpoint(
      *shared / "hf", boost::json::parse(read_text("tests/golden/checkpoints/apertus.json")), uploads.place().folder());
  uploads.check_verb({"convert", checkpoint, "--outfile", "{}of-{ftype}.gguf", "--outtype", "bf16"}, "of-bf16.gguf");
}

TEST_CASE("parts that do not fit into memory wait in the spool, or the run is refused") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  const std::string few = uploads.place().run_job(Uploads::job("s3://models/a", "limits: {memory: 24MiB}\n"), 2);
  CHECK(has(few, "the parts that are open at the same time need"));
  CHECK(has(few, "limits.memory"));
  CHECK(uploads.requests("POST", "") == 0);
  fs::create_directories(uploads.place().file("spool"));
  uploads.place().run_job(Uploads::job("s3://models/a", "limits: {memory: 8MiB, spool: spool}\n"));
  uploads.check_same("a");
  uploads.check_clean();
  CHECK(names_in(uploads.place().file("spool")).empty());
}
