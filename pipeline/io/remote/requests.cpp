#include "pipeline/io/remote/requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>

#include "pipeline/core/text.h"
#include "pipeline/io/output_store.h"
#include "pipeline/io/remote/server_text.h"

namespace ggufmill::remote {
namespace {

constexpr unsigned kMaxRedirects = 10;
constexpr std::chrono::milliseconds kLook{50};  // interval at which a wait checks `stop`

bool is_redirect(const Answer& answer) {
  return answer.outcome == Answer::Outcome::kAnswered && answer.status >= 301 && answer.status <= 308 &&
         answer.status != 304;
}

}  // namespace

bool may_pass(const Answer& answer) {
  if (answer.outcome == Answer::Outcome::kBroken) return true;
  if (answer.outcome != Answer::Outcome::kAnswered) return false;
  return answer.status == 206 || answer.status == 200 ||  // a body that ended early
         answer.status == 408 || answer.status == 425 || answer.status == 429 ||
         (answer.status >= 500 && answer.status != 501 && answer.status != 505);
}

namespace {

std::string describe(const Answer& answer) {
  if (answer.outcome != Answer::Outcome::kAnswered) return answer.problem;
  if (answer.status == 206 || answer.status == 200) return "the response ended early";
  return fmt::format("the server answered {}", answer.status);
}

}  // namespace

Status check_named_url(const Address& address, const std::string& from, const std::string& to, std::string_view verb) {
  const auto place = place_of_url(to), origin = place_of_url(from);
  if (!place) return input_error(address.text, fmt::format("the server {} to an invalid URL", verb));
  if (place->scheme != "https" && place->scheme != "http")
    return input_error(
        address.text,
        fmt::format("the server {} to an address with the unknown scheme {}", verb, quoted_answer(place->scheme)),
        "only https and http are supported");
  if (place->has_user)
    return input_error(address.text, fmt::format("the server {} to an address with a user or a password", verb));
  if (place->scheme != "https" && (!origin || origin->scheme == "https"))
    return input_error(address.text, fmt::format("the server {} from https to an unencrypted address", verb),
                       "the data could be read or modified in transit");
  return ok();
}

Result<Answer> follow(Place& place, const Address& address, const std::vector<std::string>& headers,
                      const Settings& settings, const BodySink& sink, const std::function<void(const Answer&)>& look,
                      std::uint64_t answer_bytes) {
  for (unsigned redirects = 0;; ++redirects) {
    Request request{place.access.url, headers, {}, settings.patience, settings.stop, settings.abandoned};
    if (place.access.keys) {
      BOOST_OUTCOME_TRY(request.key, place.access.keys->now(settings.stop));
    }
    request.headers.insert(request.headers.end(), place.access.headers.begin(), place.access.headers.end());
    request.answer_bytes = answer_bytes;
    Answer answer = send(request, sink);
    if (!is_redirect(answer)) return answer;
    look(answer);
    if (place.access.keys)
      return input_error(address.text, "the bucket is in another region",
                         "set AWS_REGION to its region, or AWS_ENDPOINT_URL_S3 to its endpoint");
    BOOST_OUTCOME_TRY(check_named_url(address, place.access.url, answer.redirect, "redirects"));
    if (redirects == kMaxRedirects)
      return input_error(address.text, fmt::format("the server redirects more than {} times", kMaxRedirects));
    if (origin_of(place.access.url) != origin_of(answer.redirect)) {
      place.access.headers.clear();
      place.access.is_anonymous = true;
    }
    place.access.url = std::move(answer.redirect);
    place.is_redirected = true;
  }
}

Status Attempts::wait_after(const Answer& answer, const Access& access) {
  if (answer.outcome == Answer::Outcome::kStopped) return interrupted();
  if (!may_pass(answer)) return refusal(address_, answer, access);
  return wait_after(answer);
}

Status Attempts::wait_after(const Answer& answer) {
  const Retries& retries = settings_.retries;
  ++attempts_;
  if (attempts_ >= (answer.connected ? retries.attempts : retries.attempts_to_connect)) return given_up(answer);
  if (answer.retry_after > retries.longest_retry_after) return given_up(answer);
  thread_local std::minstd_rand random{std::random_device()()};
  auto wait = std::min(retries.longest_wait, retries.first_wait * (1u << std::min(attempts_ - 1, 16u)));
  wait -= std::chrono::milliseconds(std::uniform_int_distribution<long long>(0, wait.count() / 2)(random));
  wait = std::max<std::chrono::milliseconds>(wait, answer.retry_after);
  const auto until = std::chrono::steady_clock::now() + wait;
  if (until - begun_ > retries.total) return given_up(answer);
  while (std::chrono::steady_clock::now() < until) {
    if (settings_.stopped()) return interrupted();
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(kLook, until - std::chrono::steady_clock::now()));
  }
  return ok();
}

Error Attempts::given_up(const Answer& answer) const {
  Error error{ExitCode::kTransient, address_.text, describe(answer), "", "try again later"};
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - begun_).count();
  error.detail = fmt::format("given up after {} in {} s", counted(attempts_, "attempt"), seconds);
  if (answer.retry_after.count() != 0)
    error.detail += fmt::format("; the server asks to wait {} s before retrying", answer.retry_after.count());
  if (!answer.connected) error.help = "check the address, the network, and the proxy (https_proxy), then try again";
  return error;
}

Error refusal(const Address& address, const Answer& answer, const Access& access) {
  if (answer.outcome == Answer::Outcome::kEndless) return input_error(address.text, answer.problem);
  if (answer.outcome != Answer::Outcome::kAnswered)
    return {ExitCode::kIo, address.text, answer.problem.empty() ? "the request failed" : answer.problem, "",
            answer.is_certificate_refused
                ? "certificates are taken from the system, or from CURL_CA_BUNDLE or SSL_CERT_FILE"
                : ""};
  if (answer.status == 401 || answer.status == 403)
    return {ExitCode::kIo, address.text, fmt::format("the server refuses access ({})", answer.status), "",
            address.scheme->how_to_get_in(access)};
  if (answer.status == 404 || answer.status == 410)
    return input_error(address.text, fmt::format("the file does not exist ({})", answer.status),
                       address.scheme->has_revisions() ? "check the model, the revision, and the file name" : "");
  return input_error(address.text, fmt::format("the server answered {}", answer.status));
}

}  // namespace ggufmill::remote
