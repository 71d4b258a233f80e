// Files that are too large for Git LFS. A script stands for the Python with hf_xet, so that no content is sent.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdlib>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/remote/hub_upload.h"
#include "tests/remote/test_server.h"
#include "tests/remote/workplace.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace {

constexpr std::uint64_t kBytes = 60'000'000'000;

// A hub with the empty repository org/model, and a file of zeros that takes no space on the disk.
class LargeFile {
 public:
  LargeFile() : server_(start_server()) {
    fs::create_directories(server_.file("hub/org/model/first"));
    write_text(server_.file("hub/org/model/refs.json"), R"({"main": "first"})");
    write_text(path(), "");
    fs::resize_file(path(), kBytes);
    // Arguments: -E -c PROGRAM, and for an upload the address, the path, and the SHA-256.
    write_text(folder_.file("python"), fmt::format("#!/bin/sh\n[ $# -eq 3 ] && exit 0\necho \"$(stat -c %s \"$5\")\"\n"
                                                   "echo '{{\"xet\": \"'$6'\", \"bytes\": {}}}' >'{}/'$6.json\n",
                                                   kBytes, server_.file("xet")));
    fs::permissions(folder_.file("python"), fs::perms::owner_all);
    ::setenv("HF_ENDPOINT", server_.host().c_str(), 1);
    ::setenv("HF_TOKEN", kToken, 1);
    ::unsetenv("HF_HUB_DISABLE_XET");
    // It is remembered as long as this process lives.
    ::setenv("GGUFMILL_PYTHON", python().c_str(), 1);
  }
  ~LargeFile() {
    for (const char* name : {"HF_ENDPOINT", "HF_TOKEN", "GGUFMILL_PYTHON", "GGUFMILL_TEST_HUB_MOST"}) ::unsetenv(name);
  }

  void offer_xet() const { fs::create_directories(server_.file("xet")); }
  Result<remote::HubCommit> upload(std::uint64_t* sent = nullptr) const {
    remote::HubUpload upload;
    upload.repository = "org/model";
    upload.message = "Add model.gguf";
    const remote::HubFile file{path(), "model.gguf", kBytes, std::string(64, 'a')};
    return remote::upload_to_hub(upload, {&file, 1}, {}, [&](std::uint64_t bytes) {
      if (sent) *sent += bytes;
    });
  }
  Result<bool> is_offered() const {
    remote::HubUpload upload;
    upload.repository = "org/model";
    return remote::offers_xet(upload, {});
  }
  // Returns what the commit has under the name.
  boost::json::value committed(const std::string& commit) const {
    return boost::json::parse(read_text(server_.file("hub/org/model/" + commit + "/model.gguf.xet")));
  }

 private:
  static TestServer start_server() {
    ::setenv("GGUFMILL_TEST_HUB_MOST", "1000000000000", 1);
    return TestServer();
  }
  std::string path() const { return folder_.file("model.gguf"); }
  std::string python() const { return folder_.file("python"); }

  TempDir folder_;
  TestServer server_;
};

}  // namespace

TEST_CASE("a file of more than 50 GB is sent by Xet, and by nothing else") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const LargeFile file;
  {
    CHECK_FALSE(file.is_offered().value());
    const auto refused = file.upload();
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ExitCode::kUsage);
    CHECK(
        refused.error().what ==
        "'model.gguf' has 55.88 GiB, but the hub accepts files of at most 46.57 GiB without Xet: it does not offer Xet "
        "for this repository");
  }
  file.offer_xet();
  CHECK(file.is_offered().value());
  std::uint64_t sent = 0;
  const auto commit = file.upload(&sent);
  if (!commit) FAIL(render(commit.error()));
  CHECK(sent == kBytes);
  CHECK(file.committed(commit.value().id).at("size").to_number<std::uint64_t>() == kBytes);
}
