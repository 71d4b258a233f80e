#include "pipeline/io/remote/aws_keys.h"

#include <chrono>

#include "pipeline/io/remote/aws_sources.h"
#include "pipeline/io/remote/written_time.h"
#include "pipeline/io/stop_scope.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::remote;
using Words = std::vector<std::string>;

TEST_CASE("a command line is split as a shell would") {
  CHECK(words_of_command("/bin/get  key") == Words{"/bin/get", "key"});
  CHECK(words_of_command(R"("/my tools/get" 'a "b"' c\ d "e\"f" "g\h" '')") ==
        Words{"/my tools/get", "a \"b\"", "c d", "e\"f", "g\\h", ""});
  CHECK(words_of_command(" ") == Words{});
  CHECK_FALSE(words_of_command("get 'key"));
}

TEST_CASE("times are read with and without a zone") {
  constexpr std::int64_t kTime = 1'795'852'800;  // 2026-11-28T08:00:00Z
  for (const char* text :
       {"2026-11-28T08:00:00Z", "2026-11-28T08:00:00", "2026-11-28T08:00:00.250Z", "2026-11-28T09:30:00+01:30",
        "2026-11-28T07:00:00.1-01:00", "2026-11-28T08:00:00UTC", "2026-11-28 08:00:00+0000"}) {
    CAPTURE(text);
    CHECK(seconds_of_iso_time(text) == kTime);
  }
  for (const char* text : {"", "tomorrow", "2026-13-28T08:00:00Z", "2026-11-28T08:00:00+99:00", "2026-11-28T08:00:00X"})
    CHECK(seconds_of_iso_time(text) == 0);
}

TEST_CASE("profiles are sections of two files, with values of their own services") {
  const TempDir dir;
  write_text(dir.file("config"),
             "; comment\n[profile default]\nREGION = eu-central-1\n[profile my]\nregion=us-west-2\nservices = local\n"
             "aws_access_key_id = of_config\ns3 =\n  max_queue_size = 9\n  addressing_style = path\noutput = json\n"
             "[services local]\ns3 =\n  endpoint_url = http://localhost:9000\n[sso-session work]\nsso_region = x\n");
  write_text(dir.file("credentials"), "[my]\naws_access_key_id = of_credentials\r\n[ other ]\nx = y\n");
  Environment environment("AWS_CONFIG_FILE", dir.file("config").c_str());
  environment.set("AWS_SHARED_CREDENTIALS_FILE", dir.file("credentials").c_str());
  environment.set("AWS_PROFILE", "my");
  const AwsFiles files = AwsFiles::read().value();
  CHECK(AwsFiles::chosen_profile() == "my");
  CHECK(value_of(files.config("default"), "region") == "eu-central-1");
  CHECK(files.config("my") == AwsSection{{"region", "us-west-2"},
                                         {"services", "local"},
                                         {"aws_access_key_id", "of_config"},
                                         {"s3", ""},
                                         {"s3.max_queue_size", "9"},
                                         {"s3.addressing_style", "path"},
                                         {"output", "json"}});
  CHECK(value_of(files.both("my"), "aws_access_key_id") == "of_credentials");
  CHECK(value_of(files.session("work"), "sso_region") == "x");
  CHECK(files.has_profile("other"));
  CHECK_FALSE(files.has_profile("none"));
  CHECK(endpoint_of_service(files, "s3").url == "http://localhost:9000");
  CHECK(endpoint_of_service(files, "sts").url.empty());
  environment.set("AWS_ENDPOINT_URL_S3", "http://localhost:9001");
  CHECK(endpoint_of_service(files, "s3").url == "http://localhost:9001");
  environment.set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "True");
  CHECK(endpoint_of_service(files, "s3").url.empty());
}

TEST_CASE("the search for a key ends when the operation of its thread is stopped") {
  const TempDir dir;
  write_text(dir.file("config"), "[default]\ncredential_process = sleep 50\n");
  Environment environment("AWS_CONFIG_FILE", dir.file("config").c_str());
  environment.set("AWS_SHARED_CREDENTIALS_FILE", dir.file("none").c_str());
  environment.set("AWS_PROFILE", "default");
  for (const char* name : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE"})
    environment.set(name, "");
  const std::atomic<bool> stop = true;
  const StopScope scope(&stop);
  const auto began = std::chrono::steady_clock::now();
  const auto keys = AwsKeys::find(AwsFiles::read().value(), "eu-central-1");
  REQUIRE_FALSE(keys);
  CHECK(keys.error().code == ExitCode::kInterrupted);
  CHECK(std::chrono::steady_clock::now() - began < std::chrono::seconds(20));
}

TEST_CASE("services of China have a domain of their own") {
  CHECK(domain_of("cn-north-1") == "amazonaws.com.cn");
  CHECK(domain_of("eu-west-1") == "amazonaws.com");
}
