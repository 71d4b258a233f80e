#pragma once
// Text-level helpers of the reader, independent of the YAML structure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/config_node.h"

namespace ggufmill {

// Returns the lines without their line endings (LF or CR LF).
std::vector<std::string> split_lines(std::string_view text);

// Returns the position of byte `offset` of `text`, marking `length` bytes.
Position position_of(std::string_view text, std::size_t offset, int length = 1);

struct TextFault {
  std::size_t offset = 0;
  std::string what;
  std::string help;
};
// Finds the first byte that is not allowed in our YAML 1.2 texts: invalid UTF-8, a control character, a directive
// (%YAML, %TAG).
std::optional<TextFault> find_text_fault(std::string_view text);

// Number of bytes of a scalar on its first line, from `offset`, including its quotes. `value` is its parsed value.
int scalar_length(std::string_view text, std::size_t offset, std::string_view value);

// Returns true if a quote opens at `offset` and is never closed.
bool is_unclosed_quote(std::string_view text, std::size_t offset);

}  // namespace ggufmill
