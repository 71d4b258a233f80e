#pragma once
// One HTTP request and its answer, over libcurl. Nothing else knows libcurl.

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

namespace ggufmill::remote {

// What S3 signs requests with (AWS signature, version 4).
struct SigningKey {
  std::string id, secret, token;  // the last is of temporary keys alone, or empty
  std::string region;
};

// Times after which a server counts as gone.
struct Patience {
  std::chrono::milliseconds connect{20'000};
  std::chrono::seconds stall{30};  // so long less than 1 KiB a second
};

struct Request {
  std::string url;
  std::vector<std::string> headers{};  // "Name: value"
  std::optional<SigningKey> key{};
  Patience patience{};
  const std::atomic<bool>* stop = nullptr;  // once it is set the request ends; null: never
};

struct Answer {
  enum class Outcome {
    kAnswered,  // with `status`; the body came whole, or as far as it was wanted
    kBroken,    // by the network or the server: another attempt may do better
    kFailed,    // nothing to be had this way: a certificate, say
    kEndless,   // headers without end
    kStopped,
  };
  Outcome outcome = Outcome::kFailed;
  std::string problem{};  // libcurl's words, without an address; empty where it answered
  bool connected = true;  // false: no server was reached
  bool is_certificate_refused = false;

  long status = 0;
  std::vector<std::pair<std::string, std::string>> headers{};  // of the last answer; names in small letters
  std::string redirect{};                                      // where it sends to: may be secret; empty: nowhere
  std::chrono::seconds retry_after{0};
  std::int64_t modified = 0;  // seconds since 1970; 0: not said

  std::string_view header(std::string_view name) const;  // empty: not there
};

// Takes the body, piece by piece, when the headers of `answer` are there. False: no more is wanted.
using BodySink = std::function<bool(const Answer& answer, std::span<const std::byte> piece)>;

// GET, without following redirects. Connections are kept for later requests to the same server. Proxies are those of
// the environment (https_proxy, no_proxy, ...), certificates those of CURL_CA_BUNDLE, SSL_CERT_FILE and SSL_CERT_DIR,
// else the system's. Thread-safe; throws std::bad_alloc alone.
Answer get(const Request& request, const BodySink& sink);

// "https://HOST:PORT": who may be sent the same credentials. Empty: not a URL.
std::string origin_of(const std::string& url);

}  // namespace ggufmill::remote
