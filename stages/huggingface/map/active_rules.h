#pragma once
// The rules of a map that apply to one model.

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/lifetime.h"
#include "stages/huggingface/map/architecture.h"

namespace ggufmill::huggingface {

struct ActiveRule {
  const CheckpointRule* rule = nullptr;
  std::vector<const TensorOutput*> outputs;  // those whose condition is true
  std::vector<CountByLayer> counts;          // per output: the number of tensors in its stack
  std::vector<bool> required_in;             // by layer; empty: the rule has no such list
};

class ActiveRules {
 public:
  // Evaluates the conditions and counts of the rules. The result refers to `architecture`. Exit code 4 for values of
  // config.json that do not fit them.
  static Result<ActiveRules> choose(GGUFMILL_OUTLIVES_RESULT const Architecture& architecture, const Facts& facts);

  const std::vector<ActiveRule>& all() const GGUFMILL_OUTLIVES_RESULT { return rules_; }  // in the order of the map
  std::uint64_t layers() const { return layers_; }                                        // according to config.json

  // Returns true if a rule matches the name, whether or not the model has its layer and expert.
  bool has_rule_for(const std::string& name) const;
  // Returns true if a rule makes numbers of the tensor, rather than blocks, a table of integers, or nothing.
  bool makes_weight_of(const std::string& name) const;
  // Returns true if the number of the layer, if there is one, is less than the number of layers.
  bool has_layer_of(const NamePattern::Match& match) const {
    return !match.numbers.layer || *match.numbers.layer < layers_;
  }

 private:
  std::uint64_t layers_ = 0;
  std::vector<ActiveRule> rules_;
};

}  // namespace ggufmill::huggingface
