#pragma once
// Parsed addresses of sources on servers.

#include <string>
#include <string_view>

#include "pipeline/core/error.h"

namespace ggufmill::remote {

class RemoteScheme;

// An address contains no secrets: parts that could be secret are refused, so that addresses can appear in messages,
// plans and reports.
struct Address {
  const RemoteScheme* scheme = nullptr;  // never null in an address that a scheme has parsed
  std::string text{};                    // as printed; can be parsed again
  std::string place{};                   // hub: "ORG/NAME"; S3: the bucket; HTTP: empty
  std::string revision{};                // hub: branch, tag or commit
  std::string path{};                    // hub: the file, empty for the whole model; S3: the key; HTTP: the whole URL
  std::string type{};                    // hub: of the GGUF file, instead of its name; empty: none

  // Returns true if the content cannot move to another version: for the hub, if the revision is a commit; always true
  // for other schemes.
  bool is_pinned() const;
  // For the hub: return the same address with another revision, or another file.
  Address at(std::string_view commit) const;
  Address file(std::string_view name) const;
};

inline constexpr std::size_t kMaxAddressLength = 4096;  // bytes

// Returns an address, or a path, as it may be printed: an address without user, password and query, which may be
// secret. A path and the revision in an address of the hub stay.
std::string without_secrets(std::string_view text);
// Error (exit code 2): "the address '...' has a fragment". Shows `text` without_secrets().
Error bad_address(std::string_view text, std::string_view why, std::string_view help);
// Returns what follows "NAME://".
std::string_view without_scheme(std::string_view text);

// Returns true if `path` consists of segments none of which is empty, "." or "..", and contains no NUL.
bool is_plain_path(std::string_view path);
// Returns true for a letter, a digit, or one of "-._~".
bool is_plain(char c);
// Returns true if `name` consists of plain characters, and is not empty, "." or "..".
bool is_plain_name(std::string_view name);
// Encodes for the path of a URL: all bytes except plain characters and "/" become %XX.
std::string percent_encoded(std::string_view path);

}  // namespace ggufmill::remote
