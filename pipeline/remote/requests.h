#pragma once
// Requests that go through: redirects are followed with care for credentials, what may pass is tried again.

#include <atomic>
#include <chrono>
#include <string>

#include "pipeline/core/error.h"
#include "pipeline/remote/access.h"
#include "pipeline/remote/address.h"
#include "pipeline/remote/http.h"

namespace ggufmill::remote {

// How often and how long something is tried again. Waits double from the first to the longest, and are shortened by up
// to a half at random, so that many readers do not come back at once.
struct Retries {
  unsigned attempts = 8;
  unsigned attempts_to_connect = 3;  // while no server was reached: a name may be wrong
  std::chrono::milliseconds first_wait{500}, longest_wait{30'000};
  std::chrono::seconds longest_retry_after{120};  // a server that asks for more is not waited for
  std::chrono::seconds total{600};                // no attempt begins later
};

struct Settings {
  Retries retries{};
  Patience patience{};
  const std::atomic<bool>* stop = nullptr;
};

// Where a request goes next: at first what access_to() gives, then where servers sent it to.
struct Place {
  Access access;
  bool is_redirected = false;  // the URL is one that a server gave, and may have a key in it
};

// Follows up to 10 redirects, leaving `place` where the answer came from. Credentials go to their own origin (scheme,
// host and port) and never on from another. `look` is shown each answer that redirects. The error (exit code 4): from
// HTTPS to HTTP, too many, to something that is no URL.
Result<Answer> follow(Place& place, const Address& address, const std::vector<std::string>& headers,
                      const Settings& settings, const BodySink& sink, const std::function<void(const Answer&)>& look);

// The attempts at one thing.
class Attempts {
 public:
  Attempts(const Address& address, const Settings& settings)
      : address_(address), settings_(settings), begun_(std::chrono::steady_clock::now()) {}
  // After an answer that is not what was asked for: waits until the next attempt may begin. Or the error: what the
  // answer means (refusal()) where another attempt is of no use, exit code 75 after the last one.
  Status wait_after(const Answer& answer, const Access& access);

 private:
  Error given_up(const Answer& answer) const;
  const Address& address_;
  const Settings& settings_;
  const std::chrono::steady_clock::time_point begun_;
  unsigned attempts_ = 0;
};

// What an answer means that is no success and will not become one. Exit code 4 for what is not there, 6 for what is
// refused or cannot be had.
Error refusal(const Address& address, const Answer& answer, const Access& access);

}  // namespace ggufmill::remote
