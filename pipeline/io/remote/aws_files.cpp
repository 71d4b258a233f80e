#include "pipeline/io/remote/aws_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "pipeline/core/text.h"
#include "pipeline/io/platform/paths.h"
#include "pipeline/io/remote/credentials.h"

namespace ggufmill::remote {
namespace {

constexpr const char *kConfigVariable = "AWS_CONFIG_FILE", *kCredentialsVariable = "AWS_SHARED_CREDENTIALS_FILE";

std::string path_of(const char* variable, std::string_view name) {
  if (std::string path = environment(variable); !path.empty()) {
    if (path.starts_with("~/")) return home_folder() + path.substr(1);
    return path;
  }
  return fmt::format("{}/.aws/{}", home_folder(), name);
}

// Returns the name of a section, "profile a" for `[profile "a"]`; nullopt if the line is none.
std::optional<std::string> section_name(std::string_view line) {
  if (!line.starts_with('[')) return std::nullopt;
  std::string name(trimmed(line.substr(1, line.find(']') - 1)));
  std::erase(name, '"');
  return name;
}

// Returns the values of the sections of this name; nullopt if there is none.
std::optional<AwsSection> find(std::string_view text, std::string_view section) {
  std::optional<AwsSection> values;
  bool is_inside = false;
  std::string above;  // the key of which indented lines are parts
  while (!text.empty()) {
    const std::string_view whole = text.substr(0, text.find('\n')), line = trimmed(whole);
    text.remove_prefix(std::min(text.size(), whole.size() + 1));
    if (const auto name = section_name(line)) {
      is_inside = *name == section;
      if (is_inside && !values) values.emplace();
      above.clear();
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!is_inside || equals == line.npos || line.starts_with('#') || line.starts_with(';')) continue;
    const std::string key = lower_case(trimmed(line.substr(0, equals)));
    const bool is_part = !above.empty() && (whole.front() == ' ' || whole.front() == '\t');
    (*values)[is_part ? above + "." + key : key] = trimmed(line.substr(equals + 1));
    if (!is_part) above = trimmed(line.substr(equals + 1)).empty() ? key : "";
  }
  return values;
}

// The default profile may be called [default], too.
std::optional<AwsSection> find_profile(std::string_view config, std::string_view profile) {
  auto section = find(config, fmt::format("profile {}", profile));
  return section || profile != "default" ? section : find(config, "default");
}

}  // namespace

Result<AwsFiles> AwsFiles::read() {
  AwsFiles files;
  files.config_path_ = path_of(kConfigVariable, "config");
  files.credentials_path_ = path_of(kCredentialsVariable, "credentials");
  BOOST_OUTCOME_TRY(files.config_, text_of_file(files.config_path_, kConfigVariable));
  BOOST_OUTCOME_TRY(files.credentials_, text_of_file(files.credentials_path_, kCredentialsVariable));
  return files;
}

std::string AwsFiles::chosen_profile() {
  std::string name = environment({"AWS_PROFILE", "AWS_DEFAULT_PROFILE"});
  return name.empty() ? "default" : name;
}

AwsSection AwsFiles::config(std::string_view profile) const {
  return find_profile(config_, profile).value_or(AwsSection());
}

AwsSection AwsFiles::credentials(std::string_view profile) const {
  return find(credentials_, profile).value_or(AwsSection());
}

AwsSection AwsFiles::both(std::string_view profile) const {
  AwsSection all = credentials(profile);
  all.merge(config(profile));
  return all;
}

AwsSection AwsFiles::session(std::string_view name) const {
  return find(config_, fmt::format("sso-session {}", name)).value_or(AwsSection());
}

AwsSection AwsFiles::services(std::string_view name) const {
  return find(config_, fmt::format("services {}", name)).value_or(AwsSection());
}

bool AwsFiles::has_profile(std::string_view profile) const {
  return find_profile(config_, profile) || find(credentials_, profile);
}

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

std::string value_of(const AwsSection& section, std::string_view name) {
  const auto found = section.find(std::string(name));
  return found == section.end() ? std::string() : found->second;
}

}  // namespace ggufmill::remote
