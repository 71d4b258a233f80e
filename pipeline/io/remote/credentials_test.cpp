#include "pipeline/io/remote/credentials.h"

#include <sys/stat.h>

#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::remote;

TEST_CASE("a file of credentials is read, and none is empty") {
  const TempDir dir;
  write_text(dir.file("token"), "hf_x\n");
  CHECK(text_of_file(dir.file("token"), "HF_TOKEN_PATH").value() == "hf_x\n");
  CHECK(text_of_file(dir.file("missing"), "HF_TOKEN_PATH").value().empty());
  CHECK(text_of_file(dir.path().string(), "HF_TOKEN_PATH").value().empty());
  CHECK(text_of_file("/dev/null", "HF_TOKEN_PATH").value().empty());
}

TEST_CASE("a file of credentials that is a pipe, a device, or too large is refused") {
  const TempDir dir;
  REQUIRE(::mkfifo(dir.file("pipe").c_str(), 0600) == 0);
  write_text(dir.file("large"), std::string(kMaxFileBytes + 1, 'x'));
  for (const std::string& path : {dir.file("pipe"), std::string("/dev/zero"), dir.file("large")}) {
    CAPTURE(path);
    const auto text = text_of_file(path, "AWS_CONFIG_FILE");
    REQUIRE_FALSE(text);
    CHECK(text.error().code == ExitCode::kUsage);
    CHECK(text.error().what.find("AWS_CONFIG_FILE") != std::string::npos);
  }
}
