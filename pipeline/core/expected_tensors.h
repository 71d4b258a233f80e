#pragma once
// The table of the tensors that llama.cpp's loader expects of each architecture, configs/complete_models.tsv, and the
// values of its expressions for a model. The comments in the table describe its language.

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pipeline/core/model.h"

namespace ggufmill {

std::string_view complete_model_table();

// A line about a tensor: columns of the table, empty where it has "-".
struct ExpectedTensor {
  std::string_view tensor, shape, layers, presence, when;
};
inline constexpr std::string_view kOptionalIf = "optional if ";  // of `presence`, before an expression

// The part of the table for one architecture.
struct ExpectedTensors {
  std::unordered_map<std::string_view, std::string_view> numbers;  // expressions by name
  std::vector<ExpectedTensor> lines;
};
ExpectedTensors expected_tensors(std::string_view architecture);

// Returns the keys, without the prefix of the architecture, on which the names, shapes and presence of its tensors
// depend: "embedding_length", "block_count", ... For an architecture that the table does not have, those on which any
// number depends that all architectures share.
std::set<std::string_view> sizing_keys(std::string_view architecture);

// Returns the sizes of a shape, which commas divide.
std::vector<std::string_view> sizes_of(std::string_view shape);

// The values of expressions for one model, whose metadata and tensors they name. Refers to both arguments. Not
// thread-safe: values are computed once.
class ModelNumbers {
 public:
  using Number = std::optional<std::int64_t>;  // nullopt: not known

  ModelNumbers(const Model& model, std::string architecture, const ExpectedTensors& expected);

  Number value(std::string_view expression, std::uint64_t layer);
  // Returns a name of the table with the values of its {expressions}; nullopt if one of them is not known.
  std::optional<std::string> full_name(std::string_view name, std::uint64_t layer);
  // Returns the tensor with such a name; null if the model has none.
  const Tensor* find(std::string_view name, std::uint64_t layer);
  // Returns true if one of the expressions that were evaluated is malformed. Its value is not known.
  bool is_malformed() const { return malformed_; }

 private:
  struct Parser;
  Number number(std::string_view name, std::uint64_t layer);
  const MetadataValue* metadata(std::string_view key) const;

  const Model& model_;
  std::string architecture_;
  const ExpectedTensors& expected_;
  std::unordered_map<std::string_view, const Tensor*> tensors_;
  std::map<std::pair<std::string_view, std::uint64_t>, Number> known_;
  bool malformed_ = false;
};

// Returns the expressions of the table that are malformed. For tests.
std::vector<std::string> malformed_expressions();

}  // namespace ggufmill
