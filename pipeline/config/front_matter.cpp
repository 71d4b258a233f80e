// The extraction and repair follow convert_hf_to_gguf.py (llama.cpp, gguf-py/gguf/metadata.py).

#include "pipeline/config/front_matter.h"

#include <utility>

namespace ggufmill {
namespace {

constexpr std::string_view kFence = "---";

// Line ends of Python's splitlines(), longest first.
constexpr std::string_view kLineEnds[] = {"\r\n", "\n",   "\r",       "\v",           "\f",          "\x1c",
                                          "\x1d", "\x1e", "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9"};

// Removes the first line from `text`, including its end, and returns it without the end.
std::string_view next_line(std::string_view& text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const std::string_view end : kLineEnds) {
      if (!text.substr(at).starts_with(end)) continue;
      const std::string_view line = text.substr(0, at);
      text.remove_prefix(at + end.size());
      return line;
    }
  }
  return std::exchange(text, {});
}

void replace_all(std::string& text, std::string_view old, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(old, at)) != std::string::npos; at += by.size())
    text.replace(at, old.size(), by);
}

}  // namespace

std::string front_matter(std::string_view readme) {
  if (next_line(readme) != kFence) return {};
  std::string yaml = "\n";
  while (!readme.empty()) {
    const std::string_view line = next_line(readme);
    if (line == kFence) break;
    std::string put_right = std::string(line) + '\n';
    replace_all(put_right, "- no\n", "- \"no\"\n");
    replace_all(put_right, "\t", "  ");
    yaml += put_right;
  }
  return yaml;
}

Result<ConfigNode> read_front_matter(std::string_view readme, const std::string& path, ConfigTexts& texts) {
  Diagnostics errors;
  std::optional<ConfigNode> root = read_foreign_yaml(front_matter(readme), path, texts, errors);
  if (errors.empty()) return std::move(*root);
  Error error = errors.together();
  error.code = ExitCode::kBadInput;
  return error;
}

}  // namespace ggufmill
