#include "pipeline/io/remote/aws_sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/io/remote/credentials.h"
#include "pipeline/io/remote/requests.h"
#include "pipeline/io/remote/server_text.h"
#include "pipeline/io/remote/written_time.h"

namespace ggufmill::remote {
namespace {

constexpr std::size_t kMaxAnswer = 1 << 20;
constexpr std::chrono::milliseconds kNearby{1000};

}  // namespace

Found key_of(std::string id, std::string secret, std::string token, const std::string& from) {
  if (id.empty() && secret.empty()) return std::nullopt;
  if (id.empty() || secret.empty())
    return usage_error(fmt::format("{} has only half of a key", from), "set both the id and the secret of the key");
  AwsKey made{{std::move(id), std::move(secret), std::move(token), {}}, {}, from};
  for (std::string* const part : {&made.key.id, &made.key.secret, &made.key.token}) {
    BOOST_OUTCOME_TRY(*part, checked_secret(std::move(*part), from));
  }
  return made;
}

Result<std::optional<std::int64_t>> expiry_of(const std::string& text, const std::string& from) {
  if (text.empty()) return std::nullopt;
  const std::int64_t seconds = seconds_of_iso_time(text);
  if (seconds == 0)
    return Error{ExitCode::kIo, from, fmt::format("the key expires at {}, which is not a time", quoted_answer(text)),
                 "", "times look like 2026-11-28T08:00:00Z"};
  return seconds;
}

Found key_of_json(const json::value& document, const KeyNames& names, const std::string& from) {
  const auto text = [&](const char* name) { return std::string(json_string(document, name).value_or("")); };
  BOOST_OUTCOME_TRY(auto key, key_of(text(names.id), text(names.secret), text(names.token), from));
  if (!key) return Error{ExitCode::kIo, from, "the answer has no key", "", ""};
  BOOST_OUTCOME_TRY(key->expires, expiry_of(text(names.expires), from));
  return key;
}

Found key_of_answer(const Said& said, const std::string& from) {
  const auto document = parse_json(from, said.text);
  if (!document) return Error{ExitCode::kIo, from, "the answer is not JSON", "", ""};
  return key_of_json(document.value(), {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"}, from);
}

Error failed(const std::string& from, const Said& said, const std::string& help) {
  const bool was_answered = said.answer.outcome == Answer::Outcome::kAnswered;
  return {!was_answered || said.is_busy() ? ExitCode::kTransient : ExitCode::kIo, from,
          was_answered ? fmt::format("the server gives no key: it answers {}", said.answer.status)
                       : fmt::format("cannot be asked for a key: {}", masked(said.answer.problem)),
          trimmed(said.text).empty() ? "" : quoted_answer(trimmed(said.text)), help};
}

Said ask(Request request, unsigned attempts) {
  request.answer_bytes = kMaxAnswer;
  for (unsigned number = 1;; ++number) {
    Said said;
    said.answer = send(request, [&](const Answer&, std::span<const std::byte> piece) {
      const std::size_t bytes = std::min(piece.size(), kMaxAnswer - said.text.size());
      said.text.append(reinterpret_cast<const char*>(piece.data()), bytes);
      return bytes == piece.size();
    });
    if (said.is_ok() || number == attempts || said.answer.outcome == Answer::Outcome::kStopped ||
        !may_pass(said.answer))
      return said;
    std::this_thread::sleep_for(std::chrono::milliseconds(200) * (1u << number));
  }
}

Request request_to(std::string url, const Chain& chain) {
  Request request;
  request.url = std::move(url);
  request.stop = chain.stop;
  return request;
}

Request nearby_request(std::string url, const Chain& chain) {
  Request request = request_to(std::move(url), chain);
  request.is_direct = true;
  request.patience.connect = kNearby;
  request.patience.stall = std::chrono::seconds(5);
  request.patience.answer = std::chrono::seconds(10);
  return request;
}

Result<std::string> safe_url(const AwsEndpoint& set, const std::string& usual) {
  BOOST_OUTCOME_TRY(std::string url, endpoint_of(set.url, set.from, usual));
  const auto place = place_of_url(url);
  if (!place || (place->scheme != "https" && !is_this_machine(*place)))
    return usage_error(fmt::format("the endpoint in {} would get secrets without encryption", set.from),
                       "write https://, or set AWS_ENDPOINT_URL_S3 if the endpoint is that of buckets only");
  return url;
}

std::string form_of(const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string form;
  for (const auto& [name, value] : values) {
    std::string encoded = percent_encoded(value);
    for (std::size_t at = 0; (at = encoded.find('/', at)) != encoded.npos; at += 3) encoded.replace(at, 1, "%2F");
    form += fmt::format("{}{}={}", form.empty() ? "" : "&", name, encoded);
  }
  return form;
}

}  // namespace ggufmill::remote
