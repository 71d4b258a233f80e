#include "pipeline/io/remote/aws_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <map>
#include <set>
#include <thread>
#include <utility>

#include "pipeline/core/digest.h"
#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "pipeline/io/child_environment.h"
#include "pipeline/io/command.h"
#include "pipeline/io/platform/paths.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/io/remote/credentials.h"
#include "pipeline/io/remote/http.h"
#include "pipeline/io/remote/requests.h"
#include "pipeline/io/remote/server_text.h"
#include "pipeline/io/remote/written_time.h"
#include "pipeline/io/remote/xml.h"

namespace ggufmill::remote {
namespace {

namespace json = boost::json;
using Found = Result<std::optional<AwsKey>>;

constexpr std::int64_t kRenewBefore = 600;  // seconds before a key expires
constexpr std::size_t kMaxAnswer = 1 << 20;
// Addresses of a machine's own services, which answer at once or not at all.
constexpr std::chrono::milliseconds kNearby{1000};

constexpr std::int64_t kBetweenRenewals = 60;  // seconds, while the key is valid: its source may have no newer one
constexpr std::chrono::seconds kProcessTime{60};

struct Chain {
  const AwsFiles& files;
  std::string profile, region;
  const std::atomic<bool>* stop = nullptr;
  // False for the source of a role: the environment has the keys of the program, not of the profile.
  bool uses_environment = true;
};

// Returns the URL of a service that gets and gives secrets: the one that the user has set, or `usual`. Exit code 2 if
// that is no URL, or would send them to another machine in the clear.
Result<std::string> safe_url(const AwsEndpoint& set, const std::string& usual) {
  BOOST_OUTCOME_TRY(std::string url, endpoint_of(set.url, set.from, usual));
  const auto place = place_of_url(url);
  if (!place || (place->scheme != "https" && !is_this_machine(*place)))
    return usage_error(fmt::format("the endpoint in {} would get secrets without encryption", set.from),
                       "write https://, or set AWS_ENDPOINT_URL_S3 if the endpoint is that of buckets only");
  return url;
}

// Returns the key of checked parts. Exit code 2 if there is only half of a key, or if it is malformed.
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

// ---- requests ----

struct Said {
  Answer answer;
  std::string text;
  bool is_ok() const { return answer.outcome == Answer::Outcome::kAnswered && answer.status / 100 == 2; }
};

Error failed(const std::string& from, const Said& said, const std::string& help) {
  const bool was_answered = said.answer.outcome == Answer::Outcome::kAnswered;
  const bool is_passing = !was_answered || said.answer.status >= 500 || said.answer.status == 429;
  return {is_passing ? ExitCode::kTransient : ExitCode::kIo, from,
          was_answered ? fmt::format("the server gives no key: it answers {}", said.answer.status)
                       : fmt::format("cannot be asked for a key: {}", masked(said.answer.problem)),
          trimmed(said.text).empty() ? "" : quoted_answer(trimmed(said.text)), help};
}

// Sends a request, again after temporary failures. A secret in the answer is for the caller to remember.
Said ask(Request request, unsigned attempts = 3) {
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

// Names of the members of an answer that has a key.
struct KeyNames {
  const char *id, *secret, *token, *expires;
};
constexpr KeyNames kRoleNames{"AccessKeyId", "SecretAccessKey", "Token", "Expiration"};
constexpr KeyNames kProcessNames{"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"};

// Exit code 6 if it is a text, but no time.
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

Found key_of_answer(const Said& said, const KeyNames& names, const std::string& from) {
  const auto document = parse_json(from, said.text);
  if (!document) return Error{ExitCode::kIo, from, "the answer is not JSON", "", ""};
  return key_of_json(document.value(), names, from);
}

// ---- 1, 5, 7: keys as they are ----

Found of_environment(const Chain&) {
  return key_of(environment(kAwsKeyIdVariable), environment(kAwsKeyVariable), environment(kAwsSessionVariable),
                "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)");
}

Found of_section(const AwsSection& section, const std::string& path) {
  return key_of(value_of(section, "aws_access_key_id"), value_of(section, "aws_secret_access_key"),
                value_of(section, "aws_session_token"), fmt::format("'{}'", path));
}

Found of_credentials_file(const Chain& chain) {
  return of_section(chain.files.credentials(chain.profile), chain.files.credentials_path());
}
Found of_config_file(const Chain& chain) {
  return of_section(chain.files.config(chain.profile), chain.files.config_path());
}

// ---- 2, 3: roles, by the Security Token Service ----

std::string form_of(const std::vector<std::pair<std::string_view, std::string>>& values) {
  std::string form;
  for (const auto& [name, value] : values) {
    std::string encoded = percent_encoded(value);
    for (std::size_t at = 0; (at = encoded.find('/', at)) != encoded.npos; at += 3) encoded.replace(at, 1, "%2F");
    form += fmt::format("{}{}={}", form.empty() ? "" : "&", name, encoded);
  }
  return form;
}

std::string session_name(const std::string& wanted) {
  return wanted.empty() ? fmt::format("ggufmill-{}", std::time(nullptr)) : wanted;
}

// Asks the Security Token Service for a role's key. `signed_by`: null for a role by web identity.
Found ask_for_role(const Chain& chain, const std::string& form, const SigningKey* signed_by, const std::string& from,
                   const std::string& help) {
  BOOST_OUTCOME_TRY(const std::string url,
                    safe_url(endpoint_of_service(chain.files, "sts"),
                             fmt::format("https://sts.{}.{}", chain.region, domain_of(chain.region))));
  Request request = request_to(url + "/", chain);
  request.method = "POST";
  request.headers = {"Content-Type: application/x-www-form-urlencoded; charset=utf-8"};
  if (signed_by) {
    request.key = *signed_by;
    request.key->region = chain.region;
    request.key->service = "sts";
  }
  RequestBody body{form.size(), sha256_hex(form), [&](std::uint64_t offset, std::span<std::byte> into) {
                     std::copy_n(reinterpret_cast<const std::byte*>(form.data()) + offset, into.size(), into.begin());
                     return true;
                   }};
  request.body = &body;
  const Said said = ask(request);
  if (!said.is_ok()) return failed(from, said, help);
  const auto document = parse_xml(said.text);
  const XmlElement* result = document && !document->children.empty() ? &document->children.front() : nullptr;
  const XmlElement* const given = result ? result->child("Credentials") : nullptr;
  if (!given) return Error{ExitCode::kIo, from, "the answer has no key", "", help};
  const auto text = [&](std::string_view name) { return std::string(trimmed(given->text_of(name))); };
  BOOST_OUTCOME_TRY(auto key, key_of(text("AccessKeyId"), text("SecretAccessKey"), text("SessionToken"), from));
  if (key) {
    BOOST_OUTCOME_TRY(key->expires, expiry_of(text("Expiration"), from));
  }
  return key;
}

Found of_web_identity(const Chain& chain) {
  const AwsSection profile = chain.files.both(chain.profile);
  const auto setting = [&](const char* variable, std::string_view name) {
    std::string text = chain.uses_environment ? environment(variable) : "";
    return text.empty() ? value_of(profile, name) : text;
  };
  const std::string file = setting("AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
  if (file.empty()) return std::nullopt;
  const std::string role = setting("AWS_ROLE_ARN", "role_arn");
  if (role.empty())
    return usage_error("AWS_WEB_IDENTITY_TOKEN_FILE is set, but no role",
                       "set AWS_ROLE_ARN, or role_arn in the profile");
  BOOST_OUTCOME_TRY(const std::string text, text_of_file(file, "AWS_WEB_IDENTITY_TOKEN_FILE"));
  if (trimmed(text).empty())
    return usage_error(fmt::format("AWS_WEB_IDENTITY_TOKEN_FILE: {} has no token", quoted_name(file)),
                       "name a file that this user may read");
  const std::string token(trimmed(text));
  remember_secret(token);
  const std::string form =
      form_of({{"Action", "AssumeRoleWithWebIdentity"},
               {"Version", "2011-06-15"},
               {"RoleArn", role},
               {"RoleSessionName", session_name(setting("AWS_ROLE_SESSION_NAME", "role_session_name"))},
               {"WebIdentityToken", token}});
  return ask_for_role(chain, form, nullptr, fmt::format("role {} by web identity", quoted_name(role)),
                      "check the role (AWS_ROLE_ARN) and its trust policy");
}

Found of_profile(const Chain& chain);
Found of_container(const Chain& chain);
Found of_instance(const Chain& chain);

// Returns the key with which a profile's role is asked for.
Found source_of_role(const Chain& chain, const AwsSection& profile, std::set<std::string>& visited);

Found of_role(const Chain& chain, std::set<std::string>& visited) {
  const AwsSection profile = chain.files.both(chain.profile);
  const std::string role = value_of(profile, "role_arn");
  if (role.empty() || !value_of(profile, "web_identity_token_file").empty()) return std::nullopt;
  const std::string from = fmt::format("role {} of profile {}", quoted_name(role), quoted_name(chain.profile));
  BOOST_OUTCOME_TRY(const auto source, source_of_role(chain, profile, visited));
  if (!source)
    return usage_error(fmt::format("there is no key to take on {} with", from),
                       "check source_profile or credential_source of the profile");
  std::vector<std::pair<std::string_view, std::string>> values{
      {"Action", "AssumeRole"},
      {"Version", "2011-06-15"},
      {"RoleArn", role},
      {"RoleSessionName", session_name(value_of(profile, "role_session_name"))}};
  if (const std::string id = value_of(profile, "external_id"); !id.empty()) values.emplace_back("ExternalId", id);
  if (const std::string time = value_of(profile, "duration_seconds"); !time.empty())
    values.emplace_back("DurationSeconds", time);
  if (!value_of(profile, "mfa_serial").empty())
    return usage_error(fmt::format("{} needs a code (mfa_serial), which ggufmill cannot ask for", from),
                       "get a key with the tools of AWS, and set it in the environment: "
                       "eval \"$(aws configure export-credentials --format env)\"");
  return ask_for_role(chain, form_of(values), &source->key, from, "check the role and its trust policy");
}

Found of_role(const Chain& chain) {
  std::set<std::string> visited;
  return of_role(chain, visited);
}

Found source_of_role(const Chain& chain, const AwsSection& profile, std::set<std::string>& visited) {
  const std::string source = value_of(profile, "source_profile"), kind = value_of(profile, "credential_source");
  const std::string own = fmt::format("profile {}", quoted_name(chain.profile));
  if (!source.empty() && !kind.empty())
    return usage_error(fmt::format("{} has source_profile and credential_source", own), "keep one of them");
  if (kind == "Environment") return of_environment(chain);
  if (kind == "EcsContainer") return of_container(chain);
  if (kind == "Ec2InstanceMetadata") return of_instance(chain);
  if (!kind.empty())
    return usage_error(fmt::format("{} has the unknown credential_source {}", own, quoted_name(kind)),
                       "it is Environment, EcsContainer, or Ec2InstanceMetadata");
  if (source.empty())
    return usage_error(fmt::format("{} has role_arn, but nothing that may take on the role", own),
                       "set source_profile or credential_source in the profile");
  if (!chain.files.has_profile(source))
    return usage_error(fmt::format("{} has the source_profile {}, which does not exist", own, quoted_name(source)),
                       fmt::format("add it to '{}'", chain.files.config_path()));
  const Chain of_source{chain.files, source, chain.region, chain.stop, false};
  const bool is_itself = source == chain.profile;
  if (!visited.insert(source).second && !is_itself)
    return usage_error(fmt::format("the roles of {} refer to each other", own), "check source_profile of each");
  if (!is_itself) {
    BOOST_OUTCOME_TRY(auto key, of_role(of_source, visited));
    if (key) return key;
  }
  return of_profile(of_source);
}

// ---- 4: single sign-on ----

Found of_sign_on(const Chain& chain) {
  const AwsSection profile = chain.files.config(chain.profile);
  const std::string account = value_of(profile, "sso_account_id"), role = value_of(profile, "sso_role_name");
  if (account.empty() || role.empty()) return std::nullopt;
  const std::string name = value_of(profile, "sso_session");
  const AwsSection session = name.empty() ? profile : chain.files.session(name);
  const std::string start = value_of(session, "sso_start_url"), region = value_of(session, "sso_region");
  const std::string own = fmt::format("profile {}", quoted_name(chain.profile));
  if (start.empty() || region.empty())
    return usage_error(fmt::format("the single sign-on of {} lacks sso_start_url or sso_region", own),
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

// ---- 6: a program ----

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
  // What it prints is secret, and what it says about an error need not be ours to show.
  if (ran.value().exit_code != 0)
    return Error{ExitCode::kIo, from, fmt::format("the program ended with exit code {}", ran.value().exit_code),
                 masked(trimmed(ran.value().err)), "run it yourself to see what it lacks"};
  const auto document = parse_json(from, ran.value().out);
  const json::value* const version = document ? json_member(document.value(), "Version") : nullptr;
  if (!version || !version->is_int64() || version->get_int64() != 1)
    return Error{ExitCode::kIo, from, "the program prints no key", "",
                 "it has to print {\"Version\": 1, \"AccessKeyId\": ..., \"SecretAccessKey\": ...}"};
  return key_of_json(document.value(), kProcessNames, from);
}

// ---- 8, 9: roles of containers and instances ----

// An address to which a token may be sent without encryption: that of this machine, or of the agents of containers.
bool is_own_agent(const UrlPlace& place) {
  return is_this_machine(place) || place.host == "169.254.170.2" || place.host == "169.254.170.23" ||
         place.host == "[fd00:ec2::23]";
}

Found of_container(const Chain& chain) {
  const std::string from = "the role of the container";
  std::string url = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI");
  if (const std::string path = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); !path.empty())
    url = "http://169.254.170.2" + path;
  if (url.empty()) return std::nullopt;
  const auto place = place_of_url(url);
  if (!place || (place->scheme != "https" && !is_own_agent(*place)))
    return usage_error("AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor an address of this machine",
                       "a token must not be sent to another machine in the clear");
  std::string token = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (const std::string file = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); !file.empty()) {
    BOOST_OUTCOME_TRY(const std::string text, text_of_file(file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"));
    token = trimmed(text);
  }
  Request request = place->scheme == "https" ? request_to(url, chain) : nearby_request(url, chain);
  if (!token.empty()) {
    remember_secret(token);
    request.headers = {"Authorization: " + token};
  }
  const Said said = ask(request);
  if (!said.is_ok()) return failed(from, said, "check the container's role");
  return key_of_answer(said, kRoleNames, from);
}

std::string instance_service() {
  std::string url = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  while (url.ends_with('/')) url.pop_back();
  if (!url.empty()) return url;
  return lower_case(environment("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE")) == "ipv6" ? "http://[fd00:ec2::254]"
                                                                                     : "http://169.254.169.254";
}

Found of_instance(const Chain& chain) {
  if (lower_case(environment("AWS_EC2_METADATA_DISABLED")) == "true") return std::nullopt;
  const std::string from = "the role of the instance", service = instance_service();
  const std::string roles = service + "/latest/meta-data/iam/security-credentials/";
  Request session = nearby_request(service + "/latest/api/token", chain);
  session.method = "PUT";
  session.headers = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"};
  RequestBody nothing{0, std::string(kUnsignedBody), [](std::uint64_t, std::span<std::byte>) { return true; }};
  session.body = &nothing;
  const Said token = ask(session, 2);
  const bool is_busy =
      token.answer.outcome == Answer::Outcome::kAnswered && (token.answer.status >= 500 || token.answer.status == 429);
  if (is_busy) return failed(from, token, "try again later");
  if (!token.is_ok()) return std::nullopt;  // not an instance
  remember_secret(trimmed(token.text));
  const std::string header = fmt::format("X-aws-ec2-metadata-token: {}", trimmed(token.text));
  const auto get = [&](std::string url) {
    Request request = nearby_request(std::move(url), chain);
    request.headers = {header};
    return ask(request);
  };
  const Said names = get(roles);
  if (names.answer.status == 404 || (names.is_ok() && trimmed(names.text).empty())) return std::nullopt;  // no role
  if (!names.is_ok()) return failed(from, names, "check the instance's role");
  const std::string name(trimmed(std::string_view(names.text).substr(0, names.text.find('\n'))));
  const Said said = get(roles + percent_encoded(name));
  if (!said.is_ok()) return failed(from, said, "check the instance's role");
  return key_of_answer(said, kRoleNames, from);
}

// ---- all of them ----

template <class... Providers>
Found first_of(const Chain& chain, Providers... providers) {
  for (Found (*const provider)(const Chain&) : {providers...}) {
    BOOST_OUTCOME_TRY(auto key, provider(chain));
    if (key) return key;
  }
  return std::nullopt;
}

// What a profile has besides a role of another one.
Found of_profile(const Chain& chain) {
  return first_of(chain, of_web_identity, of_sign_on, of_credentials_file, of_process, of_config_file);
}

Found find_key(const std::string& region, const std::atomic<bool>* stop) {
  BOOST_OUTCOME_TRY(const AwsFiles files, AwsFiles::read());
  const Chain chain{files, AwsFiles::chosen_profile(), region, stop};
  return first_of(chain, of_environment, static_cast<Found (*)(const Chain&)>(of_role), of_profile, of_container,
                  of_instance);
}

// All that decides which key is found.
std::string settings_text(const AwsFiles& files, const std::string& region) {
  std::string text = files.text() + '\0' + region;
  for (const char* name :
       {kAwsKeyIdVariable, kAwsKeyVariable, kAwsSessionVariable, "AWS_PROFILE", "AWS_DEFAULT_PROFILE", "HOME",
        "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_EC2_METADATA_DISABLED", "AWS_EC2_METADATA_SERVICE_ENDPOINT",
        "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_STS", "AWS_ENDPOINT_URL_SSO"})
    text += '\0' + environment(name);
  return text;
}

}  // namespace

std::string_view domain_of(std::string_view region) {
  return region.starts_with("cn-") ? "amazonaws.com.cn" : "amazonaws.com";
}

AwsEndpoint endpoint_of_service(const AwsFiles& files, std::string_view service) {
  if (lower_case(environment("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")) == "true") return {};
  std::string upper(service);
  std::ranges::transform(upper, upper.begin(), [](char c) { return c >= 'a' && c <= 'z' ? char(c - 'a' + 'A') : c; });
  for (const std::string& variable : {"AWS_ENDPOINT_URL_" + upper, std::string("AWS_ENDPOINT_URL")})
    if (std::string url = environment(variable.c_str()); !url.empty()) return {std::move(url), variable};
  const AwsSection profile = files.config(AwsFiles::chosen_profile());
  const std::string from = fmt::format("'{}' (endpoint_url)", files.config_path());
  if (const std::string name = value_of(profile, "services"); !name.empty())
    if (std::string url = value_of(files.services(name), fmt::format("{}.endpoint_url", service)); !url.empty())
      return {std::move(url), from};
  return {value_of(profile, "endpoint_url"), from};
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

Result<std::shared_ptr<AwsKeys>> AwsKeys::find(const AwsFiles& files, const std::string& region) {
  static std::mutex mutex;
  struct Known {
    std::shared_ptr<AwsKeys> keys;
    std::int64_t since;  // seconds; that there is none counts for a while only
  };
  static std::map<std::string, Known> known;  // by settings_text()
  constexpr std::size_t kMaxKnown = 64;
  const std::string settings = settings_text(files, region);
  const std::scoped_lock lock(mutex);
  const std::int64_t time = std::time(nullptr);
  if (const auto found = known.find(settings);
      found != known.end() && (found->second.keys || time - found->second.since < kBetweenRenewals))
    return found->second.keys;
  BOOST_OUTCOME_TRY(auto key, find_key(region, nullptr));
  std::shared_ptr<AwsKeys> keys;
  if (key) keys.reset(new AwsKeys(std::move(*key), region));
  if (known.size() >= kMaxKnown) known.clear();
  known.insert_or_assign(settings, Known{keys, time});
  return keys;
}

Result<SigningKey> AwsKeys::now(const std::atomic<bool>* stop) {
  const std::scoped_lock lock(mutex_);
  const std::int64_t time = std::time(nullptr);
  const bool is_over = key_.expires && *key_.expires <= time;
  if (key_.expires && *key_.expires - time < kRenewBefore && (is_over || time - renewed_ >= kBetweenRenewals)) {
    renewed_ = time;
    auto renewed = find_key(region_, stop);
    if (renewed && renewed.value()) {
      key_ = std::move(*renewed.value());
    } else if (is_over) {
      if (!renewed) return renewed.error();
      return Error{ExitCode::kIo, key_.from, "the key has expired, and there is no other", "", "log in again"};
    }
  }
  SigningKey key = key_.key;
  key.region = region_;
  return key;
}

std::string AwsKeys::from() {
  const std::scoped_lock lock(mutex_);
  return key_.from;
}

}  // namespace ggufmill::remote
