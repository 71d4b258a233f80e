// Reads sources from servers that behave correctly and incorrectly: the result must be the file's bytes or a clear
// error.

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include "pipeline/io/io_service.h"
#include "pipeline/io/remote/remote_source.h"
#include "tests/remote/test_server.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"

using namespace ggufmill;
using namespace ggufmill::remote;
using namespace std::chrono_literals;

namespace {

std::string noise(std::size_t bytes) {
  std::mt19937 random(7);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// Returns settings for a local server.
Settings quick() {
  Settings settings;
  settings.retries.first_wait = 1ms;
  settings.retries.longest_wait = 20ms;
  settings.patience.stall = 1s;
  settings.patience.connect = 2s;
  return settings;
}

class Served {
 public:
  explicit Served(std::size_t bytes = 3 << 20) : content(noise(bytes)) {
    ::setenv("no_proxy", "*", 1);
    write_text(server.file("data.bin"), content);
  }
  Result<std::shared_ptr<const RemoteSource>> open(const std::string& how, const Settings& settings = quick(),
                                                   RemoteSource::Use use = RemoteSource::Use::kHeader) const {
    const auto address = web().parse(server.url(how + "/data.bin"));
    if (!address) return address.error();
    return RemoteSource::open(address.value(), settings, use);
  }
  // Returns the error of opening the file and reading all of it, which must have the given code.
  std::string fault(const std::string& how, ExitCode code) const {
    for (const RemoteSource::Use use : {RemoteSource::Use::kRun, RemoteSource::Use::kHeader}) {
      const std::string own = use == RemoteSource::Use::kRun ? "run" : "header";  // the server counts these separately
      const auto source = open(how.find('/') == how.npos ? how : how + "/" + own, quick(), use);
      std::string read(content.size(), '\0');
      Status status = ok();
      if (!source)
        status = source.error();
      else
        for (std::size_t at = 0; status && at < read.size(); at += 1 << 20)
          status = source.value()->read(at, std::as_writable_bytes(std::span(read).subspan(at, 1 << 20)));
      if (status) return "no error";
      if (status.error().code != code)
        return fmt::format("code {}: {}", static_cast<int>(status.error().code), render(status.error()));
      if (use == RemoteSource::Use::kHeader) return render(status.error());
    }
    return {};
  }

  TestServer server;
  std::string content;
};

bool has(const std::string& text, std::string_view part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a source on a server has the bytes of the file, whatever passes") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Served served;
  for (const std::string how :
       {"plain", "weak", "time", "hints", "redirect", "expiring", "busy503", "short", "reset", "stall"})
    for (const RemoteSource::Use use : {RemoteSource::Use::kHeader, RemoteSource::Use::kRun}) {
      CAPTURE(how, static_cast<int>(use));
      const auto source = served.open(how, quick(), use);
      if (!source) FAIL(render(source.error()));
      CHECK(source.value()->bytes() == served.content.size());
      for (const auto& [offset, bytes] : std::initializer_list<std::pair<std::size_t, std::size_t>>{
               {0, 4}, {4, 100}, {1 << 20, 70'000}, {(3 << 20) - 10, 10}, {5, 2'000'000}, {0, 3 << 20}}) {
        std::string read(bytes, '\0');
        const Status status = source.value()->read(offset, std::as_writable_bytes(std::span(read)));
        if (!status) FAIL_CHECK(render(status.error()));
        CHECK(read == served.content.substr(offset, bytes));
      }
      if (const Status status = source.value()->check_unchanged(); !status) FAIL_CHECK(render(status.error()));
      const auto again = served.open(how, quick(), RemoteSource::Use::kRun);
      REQUIRE(again);
      CHECK(is_same(*again.value()->describe(), *source.value()->describe()));
    }
}

TEST_CASE("reads in the background are many at once") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Served served;
  const auto source = served.open("redirect", quick(), RemoteSource::Use::kRun);
  REQUIRE(source);
  for (const IoKind kind : {IoKind::kThreads, IoKind::kAuto}) {
    std::string read(served.content.size(), '\0');
    std::atomic<int> failed = 0, done = 0;
    {
      const auto io = IoService::start(kind);
      REQUIRE(io);
      for (std::size_t at = 0; at < read.size(); at += 64 << 10)
        source.value()->start_read(*io.value(), at, std::as_writable_bytes(std::span(read).subspan(at, 64 << 10)),
                                   [&](const Status& status) {
                                     failed += status ? 0 : 1;
                                     ++done;
                                   });
    }  // waits for all reads
    CHECK(done == 48);
    CHECK(failed == 0);
    CHECK(read == served.content);
  }
}

TEST_CASE("small reads of a header take few requests") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Served served;
  const auto source = served.open("plain");
  REQUIRE(source);
  for (std::size_t at = 0; at < served.content.size(); at += 1000) {
    std::string read(std::min<std::size_t>(1000, served.content.size() - at), '\0');
    REQUIRE(source.value()->read(at, std::as_writable_bytes(std::span(read))));
    REQUIRE(read == served.content.substr(at, read.size()));
  }
  CHECK(served.server.requests().size() == 2);
}

TEST_CASE("a file of a few bytes, and one of none") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  for (const std::size_t bytes : {0, 1, 5}) {
    const Served served(bytes);
    const auto source = served.open("plain");
    REQUIRE(source);
    CHECK(source.value()->bytes() == bytes);
    std::string read(bytes, '\0');
    CHECK(source.value()->read(0, std::as_writable_bytes(std::span(read))));
    CHECK(read == served.content);
    std::byte more{};
    const Status past = source.value()->read(bytes, std::span(&more, 1));
    REQUIRE_FALSE(past);
    CHECK(past.error().code == ExitCode::kBadInput);
  }
}

TEST_CASE("a server that fails is waited for a while, and then given up") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Served served;
  CHECK(has(served.fault("always503", ExitCode::kTransient),
            "the server answered 503\n  given up after 8 attempts in 0 s\n"));
  CHECK(has(
      served.fault("later", ExitCode::kTransient),
      "the server answered 429\n  given up after 1 attempt in 0 s; the server asks to wait 20000 s before retrying"));
  const auto refused = web().parse("http://127.0.0.1:1/data.bin");
  const auto opened = RemoteSource::open(refused.value(), quick(), RemoteSource::Use::kRun);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ExitCode::kTransient);
  CHECK(has(render(opened.error()), "given up after 3 attempts"));
  Settings once = quick();
  once.retries.attempts = 1;
  const auto silent = served.open("silent", once);
  REQUIRE_FALSE(silent);
  CHECK(silent.error().code == ExitCode::kTransient);
}

TEST_CASE("a proxy's password is in no error") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Served served;
  ::setenv("no_proxy", "", 1);
  for (const char* proxy : {"http://user:SECRET@[bad", "strange://user:SECRET@127.0.0.1:1",
                            "http://user:SECRET@127.0.0.1:1", "http://user:SECRET@no.such.host.invalid:80"}) {
    CAPTURE(proxy);
    ::setenv("http_proxy", proxy, 1);
    const auto source = served.open("plain");
    CHECK_FALSE(source);
    if (!source) CHECK_FALSE(has(render(source.error()), "SECRET"));
  }
  ::unsetenv("http_proxy");
  ::setenv("no_proxy", "*", 1);
}

TEST_CASE("Retry-After is obeyed") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Served served;
  const auto begun = std::chrono::steady_clock::now();
  REQUIRE(served.open("busy429"));
  CHECK(std::chrono::steady_clock::now() - begun >= 1s);
}

TEST_CASE("a server that is slow but never stalls does not hold a run for hours") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Served served;
  Settings settings = quick();
  settings.retries.attempts = 1;
  settings.patience = {.connect = 500ms, .stall = 1s, .answer = 1s, .least_speed = 64 << 20};
  const auto begun = std::chrono::steady_clock::now();
  const auto source = served.open("trickle", settings);
  REQUIRE_FALSE(source);
  CHECK(source.error().code == ExitCode::kTransient);
  CHECK(std::chrono::steady_clock::now() - begun < 10s);
}

TEST_CASE("a wait ends when the user stops the run") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Served served;
  std::atomic<bool> stop = false;
  Settings slow = quick();
  slow.stop = &stop;
  slow.patience.stall = 60s;
  slow.retries.first_wait = slow.retries.longest_wait = 60s;
  for (const char* how : {"silent", "always503"}) {
    stop = false;
    auto opened = std::async(std::launch::async, [&] { return served.open(how, slow); });
    std::this_thread::sleep_for(200ms);
    const auto begun = std::chrono::steady_clock::now();
    stop = true;
    const auto source = opened.get();
    REQUIRE_FALSE(source);
    CHECK(source.error().code == ExitCode::kInterrupted);
    CHECK(std::chrono::steady_clock::now() - begun < 5s);
  }
}

TEST_CASE("what a server does wrong is an error at once") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Served served;
  const auto bad = [&](const std::string& how, std::string_view what) {
    return has(served.fault(how, ExitCode::kBadInput), what);
  };
  CHECK(bad("missing", "the file does not exist (404)"));
  CHECK(bad("norange", "the server does not support partial downloads (it ignores Range)"));
  CHECK(bad("nothing", "neither a strong ETag nor the time of the last change"));
  CHECK(bad("gzip", "the server compresses its responses"));
  CHECK(bad("loop", "redirects more than 10 times"));
  CHECK(has(served.fault("denied", ExitCode::kIo), "the server refuses access (403)"));
  CHECK(bad("interim", "more than 1000 header lines"));
  CHECK(bad("headers", "more than 1000 header lines"));
  CHECK(bad("ftp", "the server redirects to an address with the unknown scheme 'ftp'"));
  // After the first response.
  CHECK(bad("changed/1", "the file changed since its header was read\n  the server reports a different version"));
  CHECK(bad("longer/1", "the file changed since its header was read\n  1099511627776 bytes long, but 3145728 before"));
  CHECK(bad("shifted/1", "were requested"));
  CHECK(bad("wronglength/1", "the server sends 7 bytes but announced "));
}

TEST_CASE("a change at the end of a run is seen") {
  if (!has_server()) GGUFMILL_SKIP("no Python for the server");
  const Served served;
  const auto source = served.open("plain", quick(), RemoteSource::Use::kRun);
  REQUIRE(source);
  CHECK(source.value()->check_unchanged());
  write_text(served.server.file("data.bin"), served.content + "more");
  const Status changed = source.value()->check_unchanged();
  REQUIRE_FALSE(changed);
  CHECK(changed.error().code == ExitCode::kBadInput);
  const auto opened = ByteSource::open(*source.value()->describe(), IoMode::kCached);
  REQUIRE_FALSE(opened);
  CHECK(opened.error().code == ExitCode::kBadInput);
}
