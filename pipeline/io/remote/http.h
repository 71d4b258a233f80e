#pragma once
// One HTTP request and its response, through libcurl. No other file depends on libcurl, and http_missing.cpp replaces
// this one if it was not found.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/lifetime.h"
#include "pipeline/io/remote/signature.h"

namespace ggufmill::remote {

// Returns false if the program was built without libcurl; no function below is then called.
bool is_http_available();

// Timeouts after which a server counts as unreachable. A request may take total(), however slowly its bytes trickle in;
// it grows with what the request transfers, so that it suits outputs of terabytes.
struct Patience {
  std::chrono::milliseconds connect{20'000};
  std::chrono::seconds stall{30};        // maximum time below `stall_speed`
  std::uint64_t stall_speed = 1 << 10;   // bytes per second
  std::chrono::seconds answer{300};      // for a request and its response without their contents
  std::uint64_t least_speed = 16 << 10;  // bytes per second, on average over the request; not 0

  // Returns the longest time of a request that transfers this many bytes in both directions together.
  std::chrono::milliseconds total(std::uint64_t bytes) const;
};

// Bytes that a request sends.
struct RequestBody {
  std::uint64_t bytes = 0;
  std::string hash{kUnsignedBody};  // as for signing_headers()
  // Reads bytes of the body; false ends the request. Called with ranges in order, which start over if the request has
  // to be sent again on another connection.
  std::function<bool(std::uint64_t offset, std::span<std::byte> into)> read{};
};

struct Request {
  std::string url;                     // complete, with its scheme
  std::vector<std::string> headers{};  // "Name: value"; why_not_sent() decides which are allowed
  std::optional<SigningKey> key{};
  Patience patience{};
  const std::atomic<bool>* stop = nullptr;       // cancels the request once set; null: never
  const std::atomic<bool>* abandoned = nullptr;  // likewise
  std::string method = "GET";
  const RequestBody* body = nullptr;  // with PUT and POST; null: none. Must outlive the call
  // Sent at most once. Otherwise libcurl sends a request again if an idle connection turns out to be closed.
  bool is_once = false;
  bool is_direct = false;                // not through a proxy, whatever the environment says
  std::uint64_t answer_bytes = 1 << 20;  // expected in the response at most, for Patience::total()
};

struct Answer {
  enum class Outcome {
    kAnswered,  // `status` is valid; the body is complete, or as far as it was wanted
    kBroken,    // network or server failure: another attempt may succeed
    kFailed,    // permanent failure, such as a bad certificate
    kEndless,   // too many header lines
    kStopped,
  };
  Outcome outcome = Outcome::kFailed;
  std::string problem{};  // libcurl's message, without an address; empty if the server responded
  bool connected = true;  // false: no server was reached
  bool is_certificate_refused = false;

  long status = 0;
  std::vector<std::pair<std::string, std::string>> headers{};  // of the last response; names in lower case
  std::string redirect{};                                      // redirect target: may be secret; empty: none
  std::chrono::seconds retry_after{0};
  std::int64_t modified = 0;  // seconds since 1970; 0: unknown

  std::string_view header(std::string_view name) const GGUFMILL_OUTLIVES_RESULT;  // empty if it is missing
};

// Receives the body piece by piece, once the headers of `answer` are available. Returns false if no more is wanted.
using BodySink = std::function<bool(const Answer& answer, std::span<const std::byte> piece)>;

// Sends a request, without following redirects. One with an address or a header that is not allowed is not sent
// (kFailed). A token that goes to this machine over plain HTTP goes there directly, not through a proxy. Connections
// are kept for later requests to the same server. Proxies are taken from the environment (https_proxy, no_proxy, ...),
// certificates from certificate_file() and SSL_CERT_DIR. Thread-safe; throws only std::bad_alloc.
Answer send(const Request& request, const BodySink& sink);

// Returns the file of the certificates that servers are checked with: CURL_CA_BUNDLE, SSL_CERT_FILE, that of libcurl or
// where another system has it, the one installed with ggufmill; the first that is set or exists. Empty if there is
// none.
std::string certificate_file();

// Returns libcurl and the libraries that it uses: "7.88.1 OpenSSL/3.0.17 zlib/1.2.13"; empty without libcurl.
std::string http_libraries();

// The parts of a URL that decide where a request goes, in lower case.
struct UrlPlace {
  std::string scheme, host, port;  // host: an IPv6 address is in brackets
  bool has_user = false;           // a user or a password
};
// Returns nullopt if `url` is not an absolute URL of printable ASCII characters, as libcurl understands it.
std::optional<UrlPlace> place_of_url(const std::string& url);

// Returns "https://HOST:PORT", the scope to which credentials may be sent; empty if `url` is not a URL.
std::string origin_of(const std::string& url);

// Returns true if the host is this machine: localhost, ::1, or an address of 127.0.0.0/8 in numbers.
bool is_this_machine(const UrlPlace& place);

}  // namespace ggufmill::remote
