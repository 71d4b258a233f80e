#pragma once
// The environment of the programs that this one starts.

#include <string_view>

#include "pipeline/core/secrets.h"
#include "pipeline/io/platform/process.h"

namespace ggufmill {

// Variables whose values this program reads as secrets. The names are those of the table in child_environment.cpp.
inline constexpr const char* kHubTokenVariable = "HF_TOKEN";
inline constexpr const char* kOldHubTokenVariable = "HUGGING_FACE_HUB_TOKEN";
inline constexpr const char* kAwsKeyIdVariable = "AWS_ACCESS_KEY_ID";
inline constexpr const char* kAwsKeyVariable = "AWS_SECRET_ACCESS_KEY";
inline constexpr const char* kAwsSessionVariable = "AWS_SESSION_TOKEN";

// Returns true if the variable is a secret: a token of the Hugging Face hub, a key of S3, or the address of a proxy
// with a password. The case of the name does not matter.
bool is_secret_variable(std::string_view name, std::string_view value);

// Returns the environment of a program: that of this process, without its secrets unless they are kept, and with the
// variables of `added` in place of those of the same name. Every program that ggufmill starts gets its environment from
// here. Not thread-safe with respect to setenv.
Variables child_environment(const Variables& added, Secrets secrets = Secrets::kRemove);

}  // namespace ggufmill
