#pragma once
// Collects the steps of a plan, and proves that every place gets the values of its own tensor.

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "pipeline/core/model.h"
#include "pipeline/plan/plan.h"

namespace ggufmill {

// Returns the encoder that encodes the tensor: the one that it asks for, as far as its target type supports it.
Encoder used_encoder(const Tensor& tensor);

// The required contents of one place, taken from the tensor alone, so that steps can be checked against them.
struct WantedPlace {
  Place place;
  std::uint64_t bytes = 0;  // that the file reserves
  std::string tensor;       // its name in the output
  ExpressionRef values;     // from which it is written; never null
  const TypeInfo* type = nullptr;
  bool big_endian = false;
  Encoder encoder = {};    // the reference, if nothing is encoded
  std::string importance;  // fingerprint of the importance that is used; empty: none
  std::string covariance;  // key of the covariance that is used; empty: none
};

// Makes the steps of a plan: equal expressions share a step, and equal encodings of a step are merged. Not thread-safe.
class StepMaker {
 public:
  // `source`: the models from which steps take their names.
  explicit StepMaker(std::span<const Model> source);

  // Adds the tensor at a place of `bytes` bytes. A tensor without bytes needs no step.
  void add(const Tensor& tensor, const Place& place, std::uint64_t bytes, bool big_endian);
  // Returns the steps that have encodings, in the order of the sources' bytes.
  std::vector<Step> take();
  // All places that were added and have bytes, in order.
  std::span<const WantedPlace> wanted() const { return wanted_; }

 private:
  std::size_t step_of(const std::string& name, const ExpressionRef& values);

  std::vector<Step> steps_;
  // Outputs usually share the nodes themselves. The map owns its keys: a node that nobody else keeps would be freed,
  // and another tensor's node could get its address, and with it the wrong step.
  std::unordered_map<ExpressionRef, std::size_t> by_node_;
  std::unordered_map<std::string, std::size_t> by_key_;
  std::vector<WantedPlace> wanted_;
};

// Checks that each wanted place is written exactly once, from the values of its own tensor (the same extents of the
// same sources, in the same way), in its type, byte order and size, with its encoder and importance, and that nothing
// else is written. Fails with an internal error: only a bug can be the reason.
Status prove_steps(std::span<const Step> steps, std::span<const WantedPlace> wanted);

}  // namespace ggufmill
