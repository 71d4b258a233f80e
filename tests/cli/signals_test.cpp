// Ends the program by signals: one that cannot stop by itself ends at once, and a batch keeps and reports what is done.

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// Accepts connections, and never answers.
class SilentServer {
 public:
  SilentServer() {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    auto* const any = reinterpret_cast<sockaddr*>(&address_);
    if (socket_ < 0 || bind(socket_, any, size) != 0 || listen(socket_, 8) != 0 ||
        getsockname(socket_, any, &size) != 0)
      throw std::runtime_error("no socket");
  }
  ~SilentServer() { close(socket_); }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;
  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(ntohs(address_.sin_port)) + "/" + path;
  }

 private:
  const int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address_{};
};

// Runs the program, and sends it SIGTERM after some seconds. Exit code 137: it had not ended 20 seconds later.
ProcessResult run_and_end(const std::string& seconds, std::vector<std::string> words, const TempDir& folder) {
  words.insert(words.begin(), {"/usr/bin/env", "timeout", "--preserve-status", "--kill-after=20", seconds,
                               GGUFMILL_BUILD_DIR "/bin/ggufmill"});
  return run_process(words, folder.path());
}

// Makes a job of a model that takes no time, and of one that takes some seconds.
void make_batch(const TempDir& folder) {
  for (const auto& [name, count] : {std::pair("a", 1), std::pair("b", 60)}) {
    std::string tensors;
    for (int i = 0; i < count; ++i)
      tensors += std::string(i == 0 ? "" : ",") + R"({"name":"blk.)" + std::to_string(i) +
                 R"(.ffn_down.weight","type":"BF16","dims":[1024,)" + (count == 1 ? "1" : "1024") +
                 R"(],"dist":"normal","seed":1})";
    write_text(folder.file("spec.json"), R"({"metadata":[],"tensors":[)" + tensors + "]}");
    const std::string model = folder.file(std::string(name) + ".gguf");
    REQUIRE(
        run_process({GGUFMILL_BUILD_DIR "/bin/ggufmill-synth", "model", folder.file("spec.json"), model}).exit_code ==
        0);
  }
  write_text(folder.file("job.yaml"),
             "version: 1\nmatrix: {sources: [a.gguf, b.gguf]}\nlimits: {threads: 1}\noutputs:\n"
             "  - {gguf: 'out/{name}.gguf', quantize: {type: IQ2_S, encoder: {search: {effort: 1}}}}\n");
}

// Checks that the job was stopped and reports the outputs that it finished.
void check_stopped(const ProcessResult& ended) {
  INFO(ended.err);
  CHECK(ended.exit_code == 128 + 15);
  CHECK(ended.err.find("1 written, 0 unchanged, 0 failed, 1 not run") != std::string::npos);
  CHECK(ended.err.find("finished outputs are kept; the same command continues") != std::string::npos);
  CHECK(ended.err.find("nothing was written") == std::string::npos);
}

}  // namespace

TEST_CASE("a verb that waits for a server ends when it is told to") {
  const SilentServer server;
  const TempDir folder;
  CHECK(run_and_end("1", {"inspect", server.url("model.gguf")}, folder).exit_code == 128 + 15);
}

TEST_CASE("a batch that is interrupted says what was written") {
  const TempDir folder;
  make_batch(folder);
  check_stopped(run_and_end("3", {"run", "job.yaml", "--isa", "reference"}, folder));
}

TEST_CASE("one request that arrives twice is one request") {
  const TempDir folder;
  make_batch(folder);
  check_stopped(run_process(
      {"/bin/sh", "-c", "\"$0\" run job.yaml --isa reference & sleep 3; kill $!; sleep .02; kill $!; wait $!",
       GGUFMILL_BUILD_DIR "/bin/ggufmill"},
      folder.path()));
}
