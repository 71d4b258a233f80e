#pragma once
// Access to the Hugging Face hub.

#include <string>
#include <string_view>

#include "pipeline/core/error.h"
#include "pipeline/io/remote/remote_scheme.h"

namespace ggufmill::remote {

inline constexpr std::string_view kHubHelp =
    "an address of the hub is hf://ORG/NAME@REVISION or hf://ORG/NAME@REVISION/FILE";

// Largest document that the hub may answer with, in bytes. A list of 100,000 files has some 6 MiB, a page of a list
// less.
inline constexpr std::size_t kMaxHubAnswer = 16 << 20;

// Returns access to a path of the hub, such as "/api/models/ORG/NAME", with the user's token. Exit code 2 if the
// endpoint or the token is malformed.
Result<Access> access_to_hub(const std::string& path);

}  // namespace ggufmill::remote
