// Roles whose keys the Security Token Service gives.

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "pipeline/core/digest.h"
#include "pipeline/core/text.h"
#include "pipeline/io/remote/aws_sources.h"
#include "pipeline/io/remote/credentials.h"
#include "pipeline/io/remote/server_text.h"
#include "pipeline/io/remote/xml.h"

namespace ggufmill::remote {
namespace {

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

}  // namespace

Found of_role(const Chain& chain) {
  std::set<std::string> visited;
  return of_role(chain, visited);
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
    return usage_error("there is a file with a web identity (AWS_WEB_IDENTITY_TOKEN_FILE), but no role",
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

}  // namespace ggufmill::remote
