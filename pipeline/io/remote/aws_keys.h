#pragma once
// Keys with which requests of S3 are signed, found where the SDKs of AWS find them, in their order. Sources: AWS SDKs
// and Tools Reference Guide, "Standardized credential providers"; botocore 1.43 (credentials.py).
//   1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//   2. a role of the profile: role_arn, with source_profile or credential_source
//   3. a role by web identity: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, or those of the profile
//   4. the profile's single sign-on, with the token that `aws sso login` has cached
//   5. the profile's key in ~/.aws/credentials
//   6. the profile's credential_process
//   7. the profile's key in ~/.aws/config
//   8. the role of the container: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI
//   9. the role of the instance: the instance metadata service, version 2

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/io/remote/aws_files.h"
#include "pipeline/io/remote/signature.h"

namespace ggufmill::remote {

// A key, and when it expires.
struct AwsKey {
  SigningKey key;                         // without its region
  std::optional<std::int64_t> expires{};  // seconds since 1970; nullopt: never
  std::string from;                       // for messages: "the role of the instance"
};

// Thread-safe.
class AwsKeys {
 public:
  // Returns the keys of the environment and of the files as they are now; null if there are none, for public buckets.
  // Objects for the same settings are shared, so that a role is asked for once. Ends once the stop of
  // this thread (stop_scope.h) is set. Exit code 2 if a setting is malformed, 6 if what it names refuses to give a key,
  // 75 if that cannot be reached.
  static Result<std::shared_ptr<AwsKeys>> find(const AwsFiles& files, const std::string& region);

  // Returns a key for requests in the region, which does not expire in the next minutes: it is renewed ten minutes
  // before it expires, at most once a minute. Errors as for find(); there is none as long as the key is valid. `stop`
  // cancels the renewal once set; null: never.
  Result<SigningKey> now(const std::atomic<bool>* stop);
  // Returns the place of the key, for messages.
  std::string from();

 private:
  AwsKeys(AwsKey key, std::string region) : key_(std::move(key)), region_(std::move(region)) {}

  std::mutex mutex_;  // guards the members below
  AwsKey key_;
  const std::string region_;
  std::int64_t renewed_ = 0;  // when it was tried last
};

}  // namespace ggufmill::remote
