#include "pipeline/io/remote/http.h"

#include <fmt/format.h>

#include "pipeline/io/remote/header.h"
#include "pipeline/io/remote/list_bounds.h"
#include "pipeline/io/remote/remote_scheme.h"
#include "pipeline/io/remote/requests.h"
#include "tests/support/catch.h"

using ggufmill::ExitCode;
using ggufmill::Status;
using namespace ggufmill::remote;
using namespace std::chrono_literals;

namespace {

bool is_local(const std::string& url) {
  const auto place = place_of_url(url);
  return place && is_this_machine(*place);
}

std::string why_not_named(const std::string& from, const std::string& to) {
  const Address address{.scheme = &hub(), .text = "hf://org/name"};
  const Status status = check_named_url(address, from, to, "redirects");
  return status ? "" : status.error().what;
}

}  // namespace

TEST_CASE("only localhost and addresses of the loopback network are this machine") {
  for (const std::string host :
       {"localhost", "LOCALHOST:80", "127.0.0.1", "127.255.255.254:8080", "[::1]", "[::1]:1"}) {
    CAPTURE(host);
    CHECK(is_local("http://" + host + "/a"));
  }
  for (const std::string host : {"127.evil.example", "127.0.0.1.evil.example", "127.0.0.1.", "localhost.evil.example",
                                 "evil.example", "128.0.0.1", "127.0.0.1%2eevil.example", "[::2]", "[::1:1]",
                                 "user@evil.example", "127.0.0.1@evil.example", "localhost."}) {
    CAPTURE(host);
    CHECK_FALSE(is_local("http://" + host + "/a"));
  }
}

TEST_CASE("an address that a server names is complete, and encrypted if the server's own is") {
  CHECK(why_not_named("https://a/", "https://b:8080/x?y=z") == "");
  CHECK(why_not_named("http://a/", "http://b/x") == "");
  CHECK(why_not_named("http://a/", "https://b/x") == "");
  CHECK(why_not_named("https://a/", "http://b/x") == "the server redirects from https to an unencrypted address");
  CHECK(why_not_named("https://a/", "HTTP://a/x") == "the server redirects from https to an unencrypted address");
  for (const std::string url : {"", "b/x", "/x", "//b/x", "b:80/x", "127.0.0.1:80/x", "https://", "file:///etc/passwd",
                                "ftp://b/x", "https://user:password@b/x", "https://user@b/x", "https://b/x y",
                                "https://b/x\r\nHost: c", "https://b\\c/", "https://b/\xc3\xa4", "https://b:99999/x"}) {
    CAPTURE(url);
    CHECK_FALSE(why_not_named("http://a/", url).empty());
  }
}

TEST_CASE("headers are sent only if they are well-formed and not those of the connection") {
  CHECK(why_not_sent("X-Amz-Meta-a", " b c") == "");
  CHECK(why_not_sent("Authorization: Bearer x") == "");
  for (const char* name :
       {"", "a b", "a:b", "a\r\nb", "\xc3\xa4", "a\x01", "a;", "Host", "hOST", "Content-Length", "Transfer-Encoding",
        "Connection", "TE", "Trailer", "Upgrade", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "Expect"}) {
    CAPTURE(name);
    CHECK_FALSE(why_not_sent(name, "x").empty());
  }
  for (const std::string& value :
       {std::string("1\r\nX: y"), std::string("1\nX: y"), std::string("1\rX: y"), std::string("a\0b", 3),
        std::string("a\x7f"), std::string("\xc3\xa4"), std::string("a\tb"), std::string(kMaxHeaderValue + 1, 'a')}) {
    CAPTURE(value);
    CHECK_FALSE(why_not_sent("X-A", value).empty());
  }
  CHECK_FALSE(why_not_sent("no colon").empty());
}

TEST_CASE("the HTTP client sends no request with a malformed header or address") {
  const auto sink = [](const ggufmill::remote::Answer&, std::span<const std::byte>) { return true; };
  for (const Request& request : {Request{.url = "http://127.0.0.1:1/", .headers = {"X-A: 1\r\nX-Injected: yes"}},
                                 Request{.url = "http://127.0.0.1:1/", .headers = {"Host: evil"}},
                                 Request{.url = "127.0.0.1:1/"}, Request{.url = "http://127.0.0.1:1/a b"}}) {
    const ggufmill::remote::Answer answer = send(request, sink);
    CAPTURE(answer.problem);
    CHECK(answer.outcome == ggufmill::remote::Answer::Outcome::kFailed);
    CHECK(answer.problem.starts_with("nothing was sent: "));
  }
}

TEST_CASE("the time of a request grows with its content") {
  const Patience patience;
  CHECK(patience.total(0) < 10min);
  CHECK(patience.total(std::uint64_t{50} << 30) > std::chrono::hours(24));
  CHECK(patience.total(8 << 20) < 20min);
}

TEST_CASE("a list ends after the limits of pages and entries, and when its pages lead nowhere") {
  ListBounds pages("where");
  std::size_t count = 0;
  while (pages.add_page(1, std::to_string(count))) ++count;
  CHECK(count == kMaxListPages - 1);
  ListBounds entries("where");
  CHECK(entries.add_page(kMaxListEntries, ""));
  const Status more = entries.add_page(1, "");
  REQUIRE_FALSE(more);
  CHECK(more.error().code == ExitCode::kIo);
  ListBounds repeated("where");
  CHECK(repeated.add_page(1, "a"));
  CHECK(repeated.add_page(1, "b"));
  CHECK_FALSE(repeated.add_page(1, "a"));
  CHECK_FALSE(ListBounds("where").add_page(0, "a"));
}
