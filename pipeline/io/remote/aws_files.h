#pragma once
// The configuration files of the tools of AWS: ~/.aws/config and ~/.aws/credentials.

#include <map>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"

namespace ggufmill::remote {

// The values of a section. A value with indented lines below it ("s3 =") has them as "s3.endpoint_url".
using AwsSection = std::map<std::string, std::string>;

class AwsFiles {
 public:
  // Reads AWS_CONFIG_FILE and AWS_SHARED_CREDENTIALS_FILE, or the files in ~/.aws. A file that does not exist is empty;
  // errors as for text_of_file().
  static Result<AwsFiles> read();

  // The profile that the user has chosen (AWS_PROFILE), else "default".
  static std::string chosen_profile();
  // Sections of the file `config`, of `credentials`, and both, where `credentials` counts if both have a value.
  AwsSection config(std::string_view profile) const;
  AwsSection credentials(std::string_view profile) const;
  AwsSection both(std::string_view profile) const;
  AwsSection session(std::string_view name) const;   // [sso-session NAME]
  AwsSection services(std::string_view name) const;  // [services NAME]
  bool has_profile(std::string_view profile) const;

  const std::string& config_path() const { return config_path_; }
  const std::string& credentials_path() const { return credentials_path_; }
  // All that was read, to see whether it has changed.
  std::string text() const { return config_ + '\0' + credentials_; }

 private:
  std::string config_path_, credentials_path_, config_, credentials_;
};

// Returns the domain of the services in the region: "amazonaws.com", or that of China.
std::string_view domain_of(std::string_view region);

// Returns the endpoint that the user has set for the service ("s3"), with what set it; empty ones if none is set.
struct AwsEndpoint {
  std::string url, from;
};
AwsEndpoint endpoint_of_service(const AwsFiles& files, std::string_view service);

// Returns the value, or an empty one.
std::string value_of(const AwsSection& section, std::string_view name);

}  // namespace ggufmill::remote
