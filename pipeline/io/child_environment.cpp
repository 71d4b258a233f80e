#include "pipeline/io/child_environment.h"

#include <algorithm>
#include <string>

#include "pipeline/io/platform/paths.h"

namespace ggufmill {
namespace {

// Names of secrets, in upper case; * stands for any characters. After those that this program reads come those that
// other programs for the same servers read.
constexpr const char* kSecrets[] = {kHubTokenVariable,
                                    kOldHubTokenVariable,
                                    kAwsKeyIdVariable,
                                    kAwsKeyVariable,
                                    kAwsSessionVariable,
                                    "HF_*TOKEN",
                                    "HF_*KEY",
                                    "HUGGING*TOKEN",
                                    "HUGGING*KEY",
                                    "AWS_*SECRET*",
                                    "AWS_ACCESS_KEY*",
                                    "AWS_SESSION_TOKEN*",
                                    "AWS_SECURITY_TOKEN*",
                                    "AWS_BEARER*",
                                    "AWS_*AUTHORIZATION_TOKEN"};

std::string upper_case(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return 'a' <= c && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return out;
}

}  // namespace

bool is_secret_variable(std::string_view name, std::string_view value) {
  const std::string upper = upper_case(name);
  if (upper.ends_with("_PROXY")) return value.find('@') != value.npos;  // USER:PASSWORD@HOST
  return std::ranges::any_of(kSecrets, [&](const char* secret) { return matches_wildcards(secret, upper); });
}

Variables child_environment(const Variables& added, Secrets secrets) {
  Variables all = own_variables();
  std::erase_if(all, [&](const auto& own) {
    return (secrets == Secrets::kRemove && is_secret_variable(own.first, own.second)) ||
           std::ranges::any_of(added, [&](const auto& each) { return each.first == own.first; });
  });
  all.insert(all.end(), added.begin(), added.end());
  return all;
}

}  // namespace ggufmill
