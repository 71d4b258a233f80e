// Cluster jobs whose outputs are objects of a bucket: the parts upload chunks, and the seal completes the uploads.

#include <random>

#include "pipeline/io/platform/filesystem.h"
#include "tests/remote/uploads.h"

using namespace ggufmill;
namespace {

// A job of four parts with outputs of 96 MiB and, in two shards, 26 MiB, in chunks of 8 MiB.
class UploadingJob {
 public:
  static constexpr int kParts = 4;

  UploadingJob() : uploads_({}, 48, 24) {
    write_text(place().file("job.yaml"), Uploads::job("s3://models/out", "cluster: {engine: none, parts: 4}\n", 24));
    run({"submit", "job.yaml"});
  }

  // Runs the program, which must exit with `code`. Returns its messages.
  std::string run(const std::vector<std::string>& words, int code = 0) const {
    const ProcessResult result = place().run(words);
    CAPTURE(words.front(), result.out, result.err);
    CHECK(result.exit_code == code);
    return result.err;
  }
  std::string run_part(int part, int code = 0) const {
    return run({"part", "--plan", "job.job/plan.json", "--part", std::to_string(part)}, code);
  }
  std::string seal(int code = 0) const { return run({"seal", "--plan", "job.job/plan.json"}, code); }
  // Runs a part or the seal, and kills it after some time. Returns true if it was killed.
  bool kill(const std::vector<std::string>& words, double seconds) const {
    const ProcessResult result =
        place().run_by({"/usr/bin/timeout", "-s", "KILL", fmt::format("{:.3f}", seconds)}, words);
    return result.exit_code == 137;
  }
  // Checks that the objects are right, and that nothing else is left.
  void check_done() {
    uploads_.check_same("out");
    uploads_.check_clean();
    CHECK(names_in(place().file("job.job/uploads")).empty());
    CHECK_FALSE(uploads_.tells());
  }

  Uploads& uploads() { return uploads_; }
  const Workplace& place() const { return uploads_.place(); }

 private:
  Uploads uploads_;
};

}  // namespace

TEST_CASE("the parts of a cluster job upload the bytes of one run") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  UploadingJob job;
  for (const int part : {2, 0, 3, 1}) {
    job.run_part(part);
    CHECK_FALSE(fs::exists(job.uploads().bucket() + "/out"));
  }
  CHECK(job.uploads().requests("PUT", "partNumber=") >= 10);
  CHECK(has(job.run_part(2), "done"));
  job.seal();
  job.check_done();
  CHECK(has(job.seal(), "sealed"));
}

TEST_CASE("nobody else may write to the records of a job's uploads, whatever the umask") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  Uploads uploads;
  const Workplace& place = uploads.place();
  write_text(place.file("job.yaml"), Uploads::job("s3://models/out", "cluster: {engine: none, parts: 2}\n"));
  REQUIRE(place.run_by({"/bin/sh", "-c", "umask 0 && exec \"$0\" \"$@\""}, {"submit", "job.yaml"}).exit_code == 0);
  const fs::perms mode = fs::status(place.file("job.job/uploads")).permissions();
  CHECK((mode & (fs::perms::group_write | fs::perms::others_write)) == fs::perms::none);
}

TEST_CASE("parts and the seal of a cluster job that uploads can be killed at any time") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  UploadingJob job;
  std::mt19937 random(20261124);
  const char* const count = std::getenv("GGUFMILL_KILLS");
  const int kills = count ? std::atoi(count) : 4;  // of each part and of the seal
  const auto kill_often = [&](const std::vector<std::string>& words) {
    for (int i = 0; i < kills; ++i)
      if (!job.kill(words, std::uniform_real_distribution<>(0.02, 0.5)(random))) return;
  };
  for (int part = 0; part < UploadingJob::kParts; ++part) {
    kill_often({"part", "--plan", "job.job/plan.json", "--part", std::to_string(part)});
    job.run_part(part);
  }
  kill_often({"seal", "--plan", "job.job/plan.json"});
  job.uploads().check_whole("out");
  job.seal();
  job.check_done();
}

TEST_CASE("a part that has lost its edges uploads none of its chunks again") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  UploadingJob job;
  for (int part = 0; part < UploadingJob::kParts; ++part) job.run_part(part);
  const std::size_t before = job.uploads().requests("PUT", "partNumber=");
  CHECK(before >= 10);
  fs::remove(job.place().file("job.job/parts/1.edges"));
  CHECK(has(job.seal(75), "1.edges' is missing"));
  job.run_part(1);
  CHECK(job.uploads().requests("PUT", "partNumber=") == before);
  job.seal();
  job.check_done();
}

TEST_CASE("what the server loses of a cluster job is uploaded again") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const std::string fault = GENERATE("forgotten", "expired");
  CAPTURE(fault);
  UploadingJob job;
  for (int part = 0; part < UploadingJob::kParts; ++part) job.run_part(part);
  job.uploads().set_fault(fault + " 1");
  CHECK(has(job.seal(75), "is missing"));
  job.run({"resume", "job.job"});
  for (int part = 0; part < UploadingJob::kParts; ++part) job.run_part(part);
  job.seal();
  job.check_done();
}

TEST_CASE("no failed request of a seal leaves an object that is not whole") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  UploadingJob job;
  for (int part = 0; part < UploadingJob::kParts; ++part) job.run_part(part);
  int failed = 0;
  for (bool happens = true; happens; ++failed) {
    fs::remove(job.uploads().server().file("happened"));
    job.uploads().set_fault(fmt::format("denied {}", failed + 1));
    job.place().run({"seal", "--plan", "job.job/plan.json"});
    happens = fs::exists(job.uploads().server().file("happened"));
    job.uploads().check_whole("out");
  }
  CHECK(failed > 5);
  job.uploads().set_fault("");
  job.seal();
  job.check_done();
}

TEST_CASE("a canceled cluster job leaves no upload") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  UploadingJob job;
  job.run_part(0);
  CHECK_FALSE(read_text(job.uploads().server().file("uploads.txt")).empty());
  job.run({"cancel", "job.job", "--discard"});
  job.uploads().check_clean();
  CHECK_FALSE(fs::exists(job.place().file("job.job")));
  CHECK_FALSE(fs::exists(job.uploads().bucket() + "/out"));
}

TEST_CASE("a part of a cluster job that needs more memory for its uploads than it has is refused") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Uploads uploads({}, 48);
  const std::string job =
      Uploads::job("s3://models/out", "cluster: {engine: none, parts: 2}\nlimits: {memory: 12MiB}\n");
  write_text(uploads.place().file("job.yaml"), job);
  const ProcessResult refused = uploads.place().run({"submit", "job.yaml"});
  CHECK(refused.exit_code == 2);
  CHECK(has(refused.err, "limits.memory leaves"));
  CHECK_FALSE(fs::exists(uploads.place().file("job.job")));
}
