#pragma once
// The tensors whose errors are measured for the targets of a job.

#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/job.h"
#include "pipeline/core/lifetime.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/plan/plan.h"
#include "stages/quantize/quantize_stage.h"

namespace ggufmill {

// A tensor of a model, and the rows of it that are measured.
struct SampledTensor {
  const Tensor* all = nullptr;
  Tensor rows;
  std::string identity;  // measured_identity() of the rows

  // The rows of the whole tensor divided by the rows of the sample.
  double scale() const { return static_cast<double>(all->shape().rows()) / static_cast<double>(rows.shape().rows()); }
};

// The tensors for which the targets of a job choose types, with all their candidates. A tensor whose values,
// importance, sample or encoders differ between outputs has one entry for each.
struct Wanted {
  Wanted() = default;
  Wanted(Wanted&&) = default;  // not copyable: the members point into each other
  Wanted& operator=(Wanted&&) = default;

  std::vector<Undecided> models;      // the samples point into these, so none may move
  std::deque<SampledTensor> samples;  // a deque never moves its elements
  std::vector<Measured> tensors;      // point to the rows of samples
  std::map<std::pair<std::string_view, std::string>, std::size_t> places;  // in `tensors`, by name and identity
  std::map<const Tensor*, const SampledTensor*> sample_of;
  std::vector<std::string> warnings{};
};

// Returns the model that the unmeasured targets of a job share. Fails with exit code 2 if they want several.
Result<Model> measured_model(const Job& job);
// Returns what the unmeasured targets of a job have to know. `shared` is measured_model(); it and the job must outlive
// the result. Fails with exit code 2 if there is no such target, or if the importance that all candidates of a tensor
// need is missing.
Result<Wanted> wanted_of(GGUFMILL_OUTLIVES_RESULT const Job& job, GGUFMILL_OUTLIVES_RESULT const Model& shared,
                         const Kernels& kernels);

}  // namespace ggufmill
