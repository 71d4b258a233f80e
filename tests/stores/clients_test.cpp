// Real clients speak to the server of the tests, which is therefore no mere mirror of ggufmill: the official JavaScript
// client of the Hugging Face hub, and rclone with Amazon's library for S3. Run by `./dev test --stores`, which installs
// both.

#include <fmt/format.h>

#include <cstdlib>

#include "pipeline/io/platform/filesystem.h"
#include "tests/remote/test_hub.h"
#include "tests/remote/workplace.h"

using namespace ggufmill;
namespace {

constexpr const char* kHowToRun = "`./dev test --stores` installs the client and runs this";

// Folder of the hub's client; null if it is not installed.
const char* hub_client() { return std::getenv("GGUFMILL_HUB_CLIENT"); }
bool has_rclone() { return std::getenv("GGUFMILL_RCLONE") != nullptr; }

// Returns the URL of a server, without the slash at its end.
std::string url_of(const TestServer& server) { return server.host().substr(0, server.host().size() - 1); }

void run_client(const std::vector<std::string>& words, const std::vector<std::string>& variables) {
  std::vector<std::string> all{"/usr/bin/env"};
  all.insert(all.end(), words.begin(), words.end());
  const ProcessResult result = run_process(all, {}, variables);
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
}

void run_hub_client(const Hub& hub, const std::string& action, const std::string& repository,
                    const std::string& folder) {
  fs::create_directories(folder);
  run_client({"node", GGUFMILL_STORES "/hub_client.mjs", action, url_of(hub.server_), kToken, repository, folder},
             {"HUB_CLIENT=" + std::string(hub_client()), "no_proxy=*"});
}

// Checks that two folders have the same files.
void check_same(const std::string& a, const std::string& b) {
  const auto names = names_in(a);
  CHECK(names == names_in(b));
  for (const std::string& name : names) {
    CAPTURE(name);
    const bool same = read_text(a + "/" + name) == read_text(b + "/" + name);
    CHECK(same);
  }
}

}  // namespace

TEST_CASE("the hub's own client downloads what a job has uploaded") {
  if (!hub_client() || !has_server()) GGUFMILL_SKIP(kHowToRun);
  const Hub hub;
  hub.place_.run_job(hub.job(", create: true, private: true", "hf://org/new"));
  run_hub_client(hub, "download", "org/new", hub.place_.file("got"));
  check_same(hub.place_.file("got"), hub.commit("org/new"));
  hub.check_complete("org/new");
}

TEST_CASE("the hub has the same of a job's files as when its own client has uploaded them") {
  if (!hub_client() || !has_server()) GGUFMILL_SKIP(kHowToRun);
  const Hub hub;
  hub.place_.run_job(hub.job());
  fs::create_directories(hub.place_.file("all"));
  for (const char* name : {"f32.gguf", "q4.gguf", "README.md"})
    fs::copy_file(hub.place_.file("out/" + std::string(name)), hub.place_.file("all/" + std::string(name)));
  run_hub_client(hub, "upload", "org/other", hub.place_.file("all"));
  check_same(hub.commit("org/other"), hub.commit());
  SECTION("so a job that uploads them there sends and commits nothing") {
    const std::size_t sent = hub.requests("/lfs/");
    hub.place_.run_job(hub.job("", "hf://org/other") + "limits: {threads: 1}\n", 0, {"--overwrite"});
    CHECK(hub.requests("/lfs/") == sent);
    CHECK(read_text(hub.repository("org/other") + "/messages.txt") == "Add all\nAdd files\n");  // the card has the job
  }
  SECTION("and a job reads them") {
    hub.place_.run_job(
        "version: 1\nsource: {gguf: 'hf://org/other/f32.gguf'}\noutputs: [{gguf: q4.gguf, quantize: Q4_0}]\n");
    const bool same = read_text(hub.place_.file("q4.gguf")) == read_text(hub.place_.file("out/q4.gguf"));
    CHECK(same);
  }
}

TEST_CASE("rclone and a job read each other's objects") {
  if (!has_rclone() || !has_server()) GGUFMILL_SKIP(kHowToRun);
  const TestServer server;
  fs::create_directories(server.file("s3/models"));
  const Workplace place({"AWS_ENDPOINT_URL_S3=" + server.host(), std::string("AWS_ACCESS_KEY_ID=") + kS3Key,
                         std::string("AWS_SECRET_ACCESS_KEY=") + kS3Secret});
  const auto rclone = [&](const std::string& from, const std::string& to) {
    run_client(
        {"-u", "AWS_CA_BUNDLE", "rclone", "copyto", "--retries", "1", "--s3-chunk-size", "5M", "--s3-upload-cutoff",
         "5M", from, to},
        {"RCLONE_CONFIG=/dev/null", "RCLONE_S3_PROVIDER=Other", "RCLONE_S3_ENDPOINT=" + url_of(server),
         std::string("RCLONE_S3_ACCESS_KEY_ID=") + kS3Key, std::string("RCLONE_S3_SECRET_ACCESS_KEY=") + kS3Secret,
         "RCLONE_S3_REGION=us-east-1", "RCLONE_S3_NO_CHECK_BUCKET=true", "no_proxy=*"});
  };
  REQUIRE(run_process({kSynth, "llama", "model.gguf", "--weights", "0.015G"}, place.folder()).exit_code == 0);
  rclone(place.file("model.gguf"), ":s3:models/a folder/model.gguf");
  for (const std::string where : {"s3://models/x+y/", ""})
    place.run_job(
        fmt::format("version: 1\nsource: {{gguf: 's3://models/a folder/model.gguf'}}\n"
                    "outputs: [{{gguf: '{}q8.gguf', quantize: Q8_0}}]\n",
                    where));
  rclone(":s3:models/x+y/q8.gguf", place.file("got.gguf"));
  const bool same = read_text(place.file("got.gguf")) == read_text(place.file("q8.gguf"));
  CHECK(same);
  CHECK(fs::file_size(place.file("got.gguf")) > 8 << 20);  // in several parts
}
