#pragma once
// Names of tensors with a layer and an expert in them.

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

// A name in which {layer} and {expert} stand for numbers: 'blk.{layer}.ffn_norm'.
class NameTemplate {
 public:
  // Each number once at most. The error has no place.
  static Result<NameTemplate> parse(std::string_view text);

  // Nothing where a number that it has is not given.
  std::optional<std::string> with(const NameNumbers& numbers) const;
  // The numbers, where `name` is such a name; decimal, without leading zeros, at most six digits.
  std::optional<NameNumbers> match(std::string_view name) const;
  const std::string& text() const { return text_; }
  bool has_layer() const { return has_layer_; }
  bool has_expert() const { return has_expert_; }

 private:
  struct Piece {
    std::string literal;  // before the number
    char number = 0;      // 'l', 'e', or 0 at the end
  };
  std::string text_;
  std::vector<Piece> pieces_;
  bool has_layer_ = false, has_expert_ = false;
};

// A template of a checkpoint's name: it also stands for the names with '.weight' or '.bias' behind, unless it ends so.
class NamePattern {
 public:
  static Result<NamePattern> parse(std::string_view text);

  struct Match {
    NameNumbers numbers;
    std::string suffix;  // ".weight", ".bias" or nothing: what the GGUF name gets, too
  };
  std::optional<Match> match(std::string_view name) const;
  const NameTemplate& name() const { return name_; }

 private:
  NameTemplate name_;
  bool open_ = false;  // takes the endings
};

}  // namespace ggufmill::huggingface
