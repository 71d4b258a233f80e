#pragma once
// What the reader needs to know about the text itself, without its YAML structure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/config/config_node.h"

namespace ggufmill {

// Lines without their ends (LF or CR LF).
std::vector<std::string> split_lines(std::string_view text);

// The place of byte `offset` of `text`, marking `length` bytes.
Position position_of(std::string_view text, std::size_t offset, int length = 1);

struct TextFault {
  std::size_t offset = 0;
  std::string what;
  std::string help;
};
// The first byte that no YAML 1.2 text of ours may hold: not UTF-8, a control character, a directive (%YAML, %TAG).
std::optional<TextFault> find_text_fault(std::string_view text);

// Bytes that a scalar takes in its first line, from `offset`, with its quotes. `value` is what it means.
int scalar_length(std::string_view text, std::size_t offset, std::string_view value);

// Whether a quote opens at `offset` and nothing closes it.
bool is_unclosed_quote(std::string_view text, std::size_t offset);

}  // namespace ggufmill
