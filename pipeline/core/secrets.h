#pragma once
// The treatment of this process's secrets, such as HF_TOKEN, when it starts another program.

#include <cstdint>
#include <string_view>

namespace ggufmill {

enum class Secrets : std::uint8_t { kRemove, kKeep };
inline constexpr std::string_view kSecretsWords[] = {"remove", "keep"};  // indexed by Secrets

}  // namespace ggufmill
