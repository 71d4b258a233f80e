#pragma once
// The types of a converted checkpoint's tensors, and of its file.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/checkpoint.h"
#include "pipeline/core/error.h"
#include "pipeline/core/model.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/map/tensor_map.h"
#include "stages/huggingface/map/values.h"

namespace ggufmill::huggingface {

// Returns the tensor type that the option names, which must not be kAuto.
const TypeInfo& tensor_type_of(OutType type);

// Returns BF16 or F16, depending on which of them the first such tensor of two or more dimensions has; F16 by default.
OutType guess_type(const std::vector<NamedTensor>& tensors);

// Merges the experts' gate and up weights into one tensor, at the position of the later of the two. `origin`: of the
// option that asks for it, for messages.
Status fuse_experts(std::vector<MappedTensor>& tensors, const Architecture& architecture, const Origin& origin);

// Merges the queries, keys, and values of every layer that has all three, each made from a tensor of its own, into one
// tensor of their rows in this order, at the position of the last of them; likewise their biases. Layers with some of
// the biases, and those from `layers` on, stay as they are.
Status fuse_qkv(std::vector<MappedTensor>& tensors, std::uint64_t layers);
// The value of a map that limits the layers; by default, all are fused.
inline constexpr std::string_view kFusableLayers = "fusable_layers";

// The inputs of the choice of a tensor's type.
struct TensorTypes {
  const Architecture& architecture;
  OutType out_type;
  bool fp8_as_q8_0;
};

// Returns the tensor with the type that the reference gives to it, or F16 if its rows are not whole blocks of that
// type. `folder` is for messages.
Result<Tensor> converted_tensor(MappedTensor mapped, const TensorTypes& types, const Facts& facts,
                                const std::string& folder);

}  // namespace ggufmill::huggingface
