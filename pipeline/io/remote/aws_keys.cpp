#include "pipeline/io/remote/aws_keys.h"

#include <fmt/format.h>

#include <ctime>
#include <initializer_list>
#include <map>
#include <utility>

#include "pipeline/io/child_environment.h"
#include "pipeline/io/remote/aws_sources.h"
#include "pipeline/io/remote/credentials.h"
#include "pipeline/io/stop_scope.h"

namespace ggufmill::remote {
namespace {

constexpr std::int64_t kRenewBefore = 600;     // seconds before a key expires
constexpr std::int64_t kBetweenRenewals = 60;  // seconds, while the key is valid: its source may have no newer one

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

// Returns the key of the first place that has one.
Found first_of(const Chain& chain, std::initializer_list<Found (*)(const Chain&)> places) {
  for (const auto place : places) {
    BOOST_OUTCOME_TRY(auto key, place(chain));
    if (key) return key;
  }
  return std::nullopt;
}

Found find_key(const AwsFiles& files, const std::string& region, const std::atomic<bool>* stop) {
  return first_of({files, AwsFiles::chosen_profile(), region, stop},
                  {of_environment, of_role, of_profile, of_container, of_instance});
}

Found find_anew(const std::string& region, const std::atomic<bool>* stop) {
  BOOST_OUTCOME_TRY(const AwsFiles files, AwsFiles::read());
  return find_key(files, region, stop);
}

// Returns all that decides which key is found, as text.
std::string settings_text(const AwsFiles& files, const std::string& region) {
  std::string text = files.text() + '\0' + region + '\0' + environment("HOME");
  for (const auto& [name, value] : child_environment({}, Secrets::kKeep))
    if (name.starts_with("AWS_")) text += fmt::format("{0}{1}{0}{2}", '\0', name, value);
  return text;
}

}  // namespace

Found of_environment(const Chain&) {
  return key_of(environment(kAwsKeyIdVariable), environment(kAwsKeyVariable), environment(kAwsSessionVariable),
                "the environment (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)");
}

Found of_profile(const Chain& chain) {
  return first_of(chain, {of_web_identity, of_sign_on, of_credentials_file, of_process, of_config_file});
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
  BOOST_OUTCOME_TRY(auto key, find_key(files, region, stop_of_thread()));
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
    auto renewed = find_anew(region_, stop);
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
