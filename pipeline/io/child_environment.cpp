#include "pipeline/io/child_environment.h"

#include <algorithm>
#include <string>

namespace ggufmill {
namespace {

// Names of secrets, in upper case; * stands for any characters. After those that this program reads come those that
// other programs for the same servers read.
constexpr std::string_view kSecrets[] = {kHubTokenVariable,
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

char upper(char c) { return 'a' <= c && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() == '*')
    return matches(pattern.substr(1), name) || (!name.empty() && matches(pattern, name.substr(1)));
  return !name.empty() && upper(name.front()) == pattern.front() && matches(pattern.substr(1), name.substr(1));
}

}  // namespace

bool is_secret_variable(std::string_view name, std::string_view value) {
  if (matches("*_PROXY", name)) return value.find('@') != value.npos;  // USER:PASSWORD@HOST
  return std::ranges::any_of(kSecrets, [&](std::string_view secret) { return matches(secret, name); });
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
