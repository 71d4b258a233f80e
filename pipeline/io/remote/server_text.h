#pragma once
// Text that servers send, as messages may show it: without secrets. Every message that quotes a server uses it.

#include <string>
#include <string_view>

namespace ggufmill::remote {

// Records a token, a key, or another secret that masked() must recognize. Thread-safe.
void remember_secret(std::string_view secret);

// Returns `text` with "..." instead of secrets: remembered ones and pieces of at least 8 characters of them, as they
// are or percent-encoded, in upper or lower case; tokens of the hub; credentials after "Bearer" and "Basic"; values
// whose names say that they are secret (token=, Signature=, X-Amz-Credential=, ...); users, passwords, and queries of
// URLs. Thread-safe.
std::string masked(std::string_view text);
// Returns true if the text contains a remembered secret of at least 8 characters. Thread-safe.
bool has_secret(std::string_view text);

// Returns the text of a server in quotes for a message: masked, without control characters, at most `width` bytes.
std::string quoted_answer(std::string_view text, std::size_t width = 200);

}  // namespace ggufmill::remote
