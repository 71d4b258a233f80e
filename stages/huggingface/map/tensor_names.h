#pragma once
// Tensor names that contain a layer and an expert number.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill::huggingface {

struct NameNumbers {
  std::optional<std::uint32_t> layer;
  std::optional<std::uint32_t> expert;
  bool operator==(const NameNumbers&) const = default;
};

// A name in which {layer} and {expert} are placeholders for numbers: 'blk.{layer}.ffn_norm'.
class NameTemplate {
 public:
  // Parses a template. Each placeholder may occur at most once. Errors carry no place.
  static Result<NameTemplate> parse(std::string_view text);

  // Returns nullopt if a required number is missing.
  std::optional<std::string> with(const NameNumbers& numbers) const;
  // Returns the numbers if `name` matches: decimal, without leading zeros, at most six digits.
  std::optional<NameNumbers> match(std::string_view name) const;
  const std::string& text() const { return text_; }
  bool has_layer() const { return has_layer_; }
  bool has_expert() const { return has_expert_; }

 private:
  struct Piece {
    std::string literal;  // precedes the number
    char number = 0;      // 'l', 'e', or 0 at the end
  };
  std::string text_;
  std::vector<Piece> pieces_;
  bool has_layer_ = false, has_expert_ = false;
};

// A template for checkpoint names: unless it ends in '.weight' or '.bias', it also matches names with these endings,
// and with those of the limits of a linear layer: '.input_min', '.input_max', '.output_min', '.output_max'.
class NamePattern {
 public:
  static Result<NamePattern> parse(std::string_view text);

  struct Match {
    NameNumbers numbers;
    std::string suffix;  // ".weight", ".bias", ".input_min" and so on, or empty; appended to the GGUF name
  };
  std::optional<Match> match(std::string_view name) const;
  const NameTemplate& name() const { return name_; }

 private:
  NameTemplate name_;
  bool open_ = false;  // accepts the endings
};

}  // namespace ggufmill::huggingface
