#pragma once
// Credentials from the usual environment variables and files, which are read again for each source.

#include <initializer_list>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"

namespace ggufmill::remote {

inline constexpr std::size_t kMaxSecretLength = 8192;  // bytes

// Returns the variable; empty if it is not set.
std::string environment(const char* name);
// Returns the first of these variables that is set and not empty.
std::string environment(std::initializer_list<const char*> names);
// Returns the contents of a file of credentials or settings, which a user names in the variable `variable` or has in
// the usual place; empty if there is none, or if this user may not read it. Exit code 2 if it is neither a regular file
// nor empty, such as a pipe, or has more than kMaxFileBytes bytes. Never waits for the other end of a pipe.
Result<std::string> text_of_file(const std::string& path, std::string_view variable);
inline constexpr std::size_t kMaxFileBytes = 1 << 20;
// Returns `secret`, which messages will not show (remember_secret()). Exit code 2 if it is malformed; the message never
// contains it.
Result<std::string> checked_secret(std::string secret, std::string_view from);
// Returns `text` without trailing slashes, or `otherwise` if it is empty. Exit code 2 if it is not the URL of a server.
Result<std::string> endpoint_of(std::string text, std::string_view from, std::string_view otherwise);

}  // namespace ggufmill::remote
