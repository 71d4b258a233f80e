// Keys that another program of the user gives: `aws sso login`, by the token that it leaves, and credential_process.

#include <fmt/format.h>

#include <chrono>
#include <ctime>

#include "pipeline/core/digest.h"
#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "pipeline/io/command.h"
#include "pipeline/io/platform/paths.h"
#include "pipeline/io/remote/aws_sources.h"
#include "pipeline/io/remote/credentials.h"
#include "pipeline/io/remote/server_text.h"
#include "pipeline/io/remote/written_time.h"

namespace ggufmill::remote {
namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kProcessTime{60};

}  // namespace

Found of_sign_on(const Chain& chain) {
  const AwsSection profile = chain.files.config(chain.profile);
  const std::string account = value_of(profile, "sso_account_id"), role = value_of(profile, "sso_role_name");
  if (account.empty() || role.empty()) return std::nullopt;
  const std::string name = value_of(profile, "sso_session");
  const AwsSection session = name.empty() ? profile : chain.files.session(name);
  const std::string start = value_of(session, "sso_start_url"), region = value_of(session, "sso_region");
  const std::string own = fmt::format("profile {}", quoted_name(chain.profile));
  if (start.empty() || region.empty())
    return usage_error(fmt::format("the single sign-on of {} is missing sso_start_url or sso_region", own),
                       "run `aws configure sso`");
  const std::string help = fmt::format("run `aws sso login --profile {}`", chain.profile);
  Digest digest(DigestKind::kSha1);
  digest.add(name.empty() ? start : name);
  const std::string path = fmt::format("{}/.aws/sso/cache/{}.json", home_folder(), digest.hex());
  BOOST_OUTCOME_TRY(const std::string text, text_of_file(path, "the cache of `aws sso login`"));
  const std::string from = fmt::format("single sign-on of {}", own);
  const auto cached = parse_json(path, text);
  const auto token = cached ? json_string(cached.value(), "accessToken") : std::nullopt;
  const auto expires = cached ? json_string(cached.value(), "expiresAt") : std::nullopt;
  if (!token || !expires) return Error{ExitCode::kIo, from, "nobody has logged in", "", help};
  if (seconds_of_iso_time(std::string(*expires)) <= std::time(nullptr))
    return Error{ExitCode::kIo, from, "the login has expired", "", help};
  BOOST_OUTCOME_TRY(const std::string bearer, checked_secret(std::string(*token), fmt::format("'{}'", path)));
  BOOST_OUTCOME_TRY(const std::string portal,
                    safe_url(endpoint_of_service(chain.files, "sso"),
                             fmt::format("https://portal.sso.{}.{}", region, domain_of(region))));
  Request request = request_to(
      fmt::format("{}/federation/credentials?{}", portal, form_of({{"account_id", account}, {"role_name", role}})),
      chain);
  request.headers = {"x-amz-sso_bearer_token: " + bearer};
  const Said said = ask(request);
  if (!said.is_ok()) return failed(from, said, help);
  const auto document = parse_json(from, said.text);
  const json::value* const given = document ? json_member(document.value(), "roleCredentials") : nullptr;
  if (!given) return Error{ExitCode::kIo, from, "the answer has no key", "", help};
  BOOST_OUTCOME_TRY(auto key, key_of_json(*given, {"accessKeyId", "secretAccessKey", "sessionToken", ""}, from));
  if (const json::value* const time = json_member(*given, "expiration"); key && time && time->is_int64())
    key->expires = time->get_int64() / 1000;
  return key;
}

std::optional<std::vector<std::string>> words_of_command(std::string_view line) {
  std::vector<std::string> words;
  bool is_in_word = false;
  char quote = '\0';
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == '\0' && (c == ' ' || c == '\t')) {
      is_in_word = false;
      continue;
    }
    if (!is_in_word) words.emplace_back();
    is_in_word = true;
    const bool is_escape = c == '\\' && quote != '\'' && i + 1 < line.size() &&
                           (quote == '\0' || line[i + 1] == '"' || line[i + 1] == '\\');
    if (is_escape)
      words.back() += line[++i];
    else if (quote == '\0' && (c == '"' || c == '\''))
      quote = c;
    else if (c == quote)
      quote = '\0';
    else
      words.back() += c;
  }
  if (quote != '\0') return std::nullopt;
  return words;
}

Found of_process(const Chain& chain) {
  const std::string line = value_of(chain.files.both(chain.profile), "credential_process");
  if (line.empty()) return std::nullopt;
  const std::string from = fmt::format("credential_process of profile {}", quoted_name(chain.profile));
  const auto words = words_of_command(line);
  if (!words || words->empty()) return usage_error(fmt::format("{} is not a command line", from), "close its quotes");
  const auto ran = run_command(*words, {.stop = chain.stop,
                                        .time_limit = kProcessTime,
                                        .secrets = Secrets::kKeep,
                                        .help = "run it yourself to see what it waits for"});
  if (!ran) return ran.error();
  if (ran.value().exit_code != 0)
    return Error{ExitCode::kIo, from, fmt::format("the program ended with exit code {}", ran.value().exit_code),
                 masked(trimmed(ran.value().err)), "run it yourself to see what is missing"};
  const auto document = parse_json(from, ran.value().out);
  const json::value* const version = document ? json_member(document.value(), "Version") : nullptr;
  if (!version || !version->is_int64() || version->get_int64() != 1)
    return Error{ExitCode::kIo, from, "the program prints no key", "",
                 "it has to print {\"Version\": 1, \"AccessKeyId\": ..., \"SecretAccessKey\": ...}"};
  return key_of_json(document.value(), {"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"}, from);
}

}  // namespace ggufmill::remote
