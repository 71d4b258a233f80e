#pragma once
// Requests with redirects and retries: redirects are followed without leaking credentials, and temporary failures are
// retried.

#include <atomic>
#include <chrono>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/io/remote/remote_scheme.h"

namespace ggufmill::remote {

// Limits on the number and duration of retries. Waits double from the first to the longest, and are shortened by up to
// half at random, so that many readers do not retry at the same time.
struct Retries {
  unsigned attempts = 8;
  unsigned attempts_to_connect = 3;  // while no server was reached: the name may be wrong
  std::chrono::milliseconds first_wait{500}, longest_wait{30'000};
  std::chrono::seconds longest_retry_after{120};  // a server that asks for more is not waited for
  std::chrono::seconds total{600};                // no attempt starts later than this
};

struct Settings {
  Retries retries{};
  Patience patience{};
  const std::atomic<bool>* stop = nullptr;       // set by the user
  const std::atomic<bool>* abandoned = nullptr;  // set by the owner of the requests; ends them like `stop`

  bool stopped() const { return (stop && *stop) || (abandoned && *abandoned); }
};

// Destination of the next request: initially the result of RemoteScheme::access_to(), then the target of redirects.
struct Place {
  Access access;
  bool is_redirected = false;  // the URL comes from a server, and may contain a key
  bool is_by_xet = false;      // the URL is that of XetDownload
};

// The rule for every address that a server names: where it redirects to, resolved if it is relative, and where it wants
// content to be sent. Exit code 4 unless `to` is a complete http or https URL without user and password, and https if
// `from` is, the address that was asked. `verb` is what the server did, for the message: "redirects".
Status check_named_url(const Address& address, const std::string& from, const std::string& to, std::string_view verb);

// Follows up to 10 redirects, and sets `place` to the location that responded. Credentials are sent to their own origin
// (scheme, host and port) only, and never after a redirect to another one. `look` is called with each redirect
// response; `answer_bytes` as in Request. Exit code 4 for a redirect that check_named_url() refuses, for too many
// redirects, and for a bucket that redirects.
Result<Answer> follow(Place& place, const Address& address, const std::vector<std::string>& headers,
                      const Settings& settings, const BodySink& sink, const std::function<void(const Answer&)>& look,
                      std::uint64_t answer_bytes);

// Returns true if the request failed in a way that may be temporary, so that another attempt may succeed.
bool may_pass(const Answer& answer);

// The attempts at one operation.
class Attempts {
 public:
  Attempts(const Address& address, const Settings& settings)
      : address_(address), settings_(settings), begun_(std::chrono::steady_clock::now()) {}
  // Called after a response that is not the desired one: waits until the next attempt may start, or returns an error:
  // refusal() if a retry is useless, exit code 75 after the last attempt.
  Status wait_after(const Answer& answer, const Access& access);
  // Same, for an answer after which a retry is known to be useful.
  Status wait_after(const Answer& answer);

 private:
  Error given_up(const Answer& answer) const;
  const Address& address_;
  const Settings& settings_;
  const std::chrono::steady_clock::time_point begun_;
  unsigned attempts_ = 0;
};

// Converts a permanent failure to an error. Exit code 4 if the object is missing or the response is unexpected, 6 if
// access is refused or the request failed.
Error refusal(const Address& address, const Answer& answer, const Access& access);

}  // namespace ggufmill::remote
