#pragma once
// The tensors of a checkpoint as an architecture's map says: other names, shapes and values, in the order in which the
// reference writes them.

#include <string>
#include <vector>

#include "pipeline/core/model.h"
#include "stages/huggingface/architecture.h"

namespace ggufmill::huggingface {

struct NamedTensor {
  std::string name;
  ExpressionRef values;
  bool was_fp8 = false;  // its numbers were stored in 8 bits
  bool first = false;    // comes before all that is not, computed tensors too
  // Further tensors, of one number each, that follow it under its name with another ending than '.weight', unless it
  // is 1. Of tensors that are stacked they become one.
  std::vector<std::pair<std::string, ExpressionRef>> beside{};
};

struct MappedTensor {
  std::string name;  // in GGUF
  ExpressionRef values;
  bool was_fp8 = false;  // the checkpoint tensor that completed it
  bool computed = false;
};

// The checkpoint's names as the map's rules see them; tensors that it leaves out are gone. Exit code 4 where two
// tensors get one name.
Result<std::vector<NamedTensor>> rename_tensors(const Architecture& architecture, const Facts& facts,
                                                std::vector<NamedTensor> tensors);

// The way back: names as the rules see them become the checkpoint's. Prefixes that say that a model is part of a larger
// one are not put back. Exit code 2 where the result would not be read as that name again.
Status restore_names(const Architecture& architecture, const Facts& facts, std::vector<Tensor>& tensors);

// Tensors that say so first, then computed ones, then those that come early, then the others, each where the last of
// its parts stands in `tensors`. Exit code 4 for a tensor that no rule names, parts that are missing, required tensors
// that are not there, and shapes that do not fit; all of them at once, up to a limit. `where` is for messages: the
// checkpoint's folder.
Result<std::vector<MappedTensor>> map_tensors(const Architecture& architecture, const Facts& facts,
                                              const std::vector<NamedTensor>& tensors, const std::string& where);

}  // namespace ggufmill::huggingface
