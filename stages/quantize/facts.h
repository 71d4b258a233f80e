#pragma once
// What the rules of a recipe may ask of a model and of a tensor.

#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/core/model.h"
#include "stages/quantize/tensor_class.h"

namespace ggufmill {

struct ModelFacts {
  std::string architecture;         // general.architecture; empty where there is none
  std::uint64_t layers = 0;         // ARCH.block_count, and what was pruned: as the reference counts
  std::uint64_t experts = 0;        // ARCH.expert_count
  std::uint64_t heads = 0;          // ARCH.attention.head_count, of the first layer
  std::uint64_t kv_heads = 0;       // ARCH.attention.head_count_kv, of the first layer; `heads` where there is none
  std::uint64_t value_tensors = 0;  // how many tensors are of the class attn_values
  bool tied = true;                 // there is no output.weight: the token embedding is the head as well
  bool importance = false;          // an importance matrix is given

  std::uint64_t head_groups() const { return kv_heads ? heads / kv_heads : 0; }
};

ModelFacts facts_of(const Model& model);

// Whether facts are read from the metadata key, of some architecture.
bool decides_types(std::string_view key);

struct TensorFacts {
  const Tensor* tensor = nullptr;
  TensorClass tensor_class = TensorClass::kOther;
  // Place among the tensors of its kind that a recipe has decided so far, of `kind_count`.
  std::uint64_t order = 0;
  std::uint64_t kind_count = 0;
  // Layer by its name ("blk.N.") in models with experts, where order and layer differ; else `order`.
  std::uint64_t depth = 0;
};

// Counts the kinds while tensors are taken one after the other. Not thread-safe.
class PlaceCounter {
 public:
  explicit PlaceCounter(const ModelFacts& model) : model_(model) {}
  // The facts of the next tensor that a recipe decides; counts it.
  TensorFacts next(const Tensor& tensor);

 private:
  const ModelFacts& model_;
  std::uint64_t values_ = 0, ups_ = 0, gates_ = 0, downs_ = 0;
};

}  // namespace ggufmill
