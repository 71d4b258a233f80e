#pragma once
// Checkpoints of compressed-tensors, whose configuration has groups: which weights are stored in which way.

#include <boost/json/value.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/pattern.h"

namespace ggufmill::huggingface {

// Formats of groups.
inline constexpr std::string_view kPackedFormat = "pack-quantized", kNvfp4Format = "nvfp4-pack-quantized",
                                  kMxfp4Format = "mxfp4-pack-quantized";

struct QuantizedTensors;

struct CompressedGroup {
  std::string format;             // "float-quantized", "pack-quantized", ...
  boost::json::value weights;     // the group's `weights`; null if it has none
  std::set<std::string> names;    // of modules
  std::vector<Pattern> patterns;  // of the beginnings of modules' names
  bool is_for_classes = false;    // a class of modules, such as Linear, is among its targets
};

class CompressedGroups {
 public:
  // Reads `config_groups` of a quantization_config. Without groups, one group has the format of the configuration.
  // Exit code 4, without a place, if it is not an object of groups.
  static Result<CompressedGroups> read(const boost::json::value& config);

  // Returns the group of a module ("model.layers.0.mlp.up_proj"): the first that names it, else the first with a
  // pattern that matches, else the first for a class, as compressed-tensors chooses (Apache-2.0:
  // quantization/utils/helpers.py). A single group is that of all modules. Exit code 4 if there is none.
  Result<const CompressedGroup*> group_of(std::string_view module) const;
  bool have_format(std::string_view format) const;

 private:
  std::vector<CompressedGroup> groups_;
};

// Returns the group of a weight.
Result<const CompressedGroup*> group_of(const QuantizedTensors& checkpoint, const CompressedGroups& groups,
                                        std::string_view weight);

}  // namespace ggufmill::huggingface
