#pragma once
// Converts the tensors of a checkpoint according to an architecture's map: to other names, shapes and values, in the
// order in which the reference writes them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/core/lifetime.h"
#include "pipeline/core/model.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/checkpoint/quantized_checkpoint.h"
#include "stages/huggingface/map/architecture.h"

namespace ggufmill::huggingface {

struct MappedTensor {
  std::string name;  // GGUF name
  ExpressionRef values;
  bool was_fp8 = false;  // refers to the checkpoint tensor that completed it
  bool computed = false;
  const TypeInfo* stored = nullptr;  // of the checkpoint tensor that completed it
  bool weights_only = false;         // see NamedTensor; of that tensor
  bool is_whole = false;             // made from all of one checkpoint tensor, from which nothing else is made
  std::string source{};              // name of the checkpoint tensor that completed it; empty if it is computed
};

// A tensor of the checkpoint that is missing.
struct MissingPart {
  std::string name;  // as the map's rules see it
  std::optional<std::uint32_t> layer;
  std::vector<std::string> makes;  // names in the GGUF of the tensors that are made from it
};

// Renames the checkpoint's tensors to the names that the map's rules see; removes the tensors that the map drops. Exit
// code 4 if two tensors get the same name.
Result<std::vector<NamedTensor>> rename_tensors(const Architecture& architecture, const Facts& facts,
                                                std::vector<NamedTensor> tensors);

// Returns the function that renames tensors to the names that the map's rules see. It refers to `architecture`. Exit
// code 4 for values of config.json that do not fit the rules.
Result<ModuleRenamer> name_renamer(GGUFMILL_OUTLIVES_RESULT const Architecture& architecture, const Facts& facts);

// Returns the function that renames modules to the names that the map's rules see. It refers to `architecture`. Exit
// code 4 for values of config.json that do not fit the rules.
Result<ModuleRenamer> module_renamer(GGUFMILL_OUTLIVES_RESULT const Architecture& architecture, const Facts& facts);

// The inverse: converts the names that the rules see to the checkpoint's. Prefixes that mark a model as part of a
// larger one are not restored. Exit code 2 if the result would not be converted to the same name again.
Status restore_names(const Architecture& architecture, const Facts& facts, std::vector<Tensor>& tensors);

// Returns the tensors with `first` set, then the computed ones, then those of `early` rules, then the others, then
// those of `last` rules, each at the position of the last of its parts in `tensors`; those of rules `by_layer` come
// before all of `early` rules, in the order of the rules, then of the layers. Exit code 4 for a tensor without a
// matching rule, missing parts, missing required tensors, and shapes that do not fit; all errors are reported together,
// up to a limit. `where` is for messages: the checkpoint's folder. If `missing` is given, missing tensors are
// appended to it instead of being errors.
Result<std::vector<MappedTensor>> map_tensors(const Architecture& architecture, const Facts& facts,
                                              const std::vector<NamedTensor>& tensors, const std::string& where,
                                              std::vector<MissingPart>* missing = nullptr);

// Returns for each tensor of the GGUF the tensor of the checkpoint that the map would make it from. If the rules accept
// several names, it is the one that resembles the names in `present` most; if no rule makes the tensor, it is its own
// name in the GGUF.
Result<std::vector<MissingPart>> parts_of(const Architecture& architecture, const Facts& facts,
                                          const std::vector<std::string>& present,
                                          const std::vector<std::string>& gguf_names);

}  // namespace ggufmill::huggingface
