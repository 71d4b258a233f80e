#include "pipeline/api/wanted_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "stages/importance/computed_importance.h"
#include "stages/quantize/candidates.h"

namespace ggufmill {
namespace {

bool takes(const TypeInfo& type, const Tensor& tensor, const Kernels& kernels) {
  if (tensor.shape().columns() % type.block_elements != 0) return false;
  if (&type == &tensor.source_type() || type.is_f32()) return true;
  const KernelChoice* encode = kernels.encode(type.id);
  return encode && (tensor.importance || !(encode->kernel->flags & GGUFMILL_NEEDS_IMPORTANCE));
}

// Open tensors of an output without importance, and the candidates that need it.
struct WithoutImportance {
  std::vector<std::string> tensors;     // quoted
  std::vector<std::string_view> types;  // each once

  void add(const Tensor& tensor, const std::vector<const TypeInfo*>& needing) {
    tensors.push_back(quoted_name(tensor.name));
    for (const TypeInfo* type : needing)
      if (std::ranges::count(types, type->name) == 0) types.push_back(type->name);
  }
};

// Returns the types that fit a tensor, but need importance, which it does not have.
Candidates types_without_importance(const Tensor& tensor, const Candidates& candidates, const Kernels& kernels) {
  Candidates types;
  for (const TypeInfo* type : candidates)
    if (!takes(*type, tensor, kernels) && tensor.shape().columns() % type->block_elements == 0 &&
        kernels.encode(type->id))
      types.push_back(type);
  return types;
}

Error no_importance(const WithoutImportance& without, const TargetOptions& target, const Model& model) {
  const bool is_given = model.notes.get(notes::kImportanceGiven);
  const std::string types = fmt::format("{}", fmt::join(without.types, ", "));
  Error error = error_at(
      target.origin,
      is_given ? fmt::format(
                     "the importance file has no data for some tensors, but all candidates that fit need it: {}", types)
               : fmt::format("no importance matrix is given, but all candidates that fit need one: {}", types),
      is_given ? "add `candidates` that do not need it, or set types: tensors: [{match: .., type: ..}]"
               : "add one: stages: [{importance: {file: imatrix.gguf}}]; or add `candidates` that do not need one");
  error.detail += fmt::format("{}tensors without importance: {} ({})", error.detail.empty() ? "" : "\n",
                              without.tensors.size(), list_some(without.tensors));
  return error;
}

std::string fewer_candidates(const WithoutImportance& without) {
  return fmt::format("{} without importance cannot become {}, which {} it: {}",
                     counted(without.tensors.size(), "tensor"), fmt::join(without.types, ", "),
                     without.types.size() == 1 ? "needs" : "need", list_some(without.tensors));
}

// Returns the type that a tensor is measured as if only its energy is needed: the largest candidate that changes
// values.
const TypeInfo* energy_type(const Tensor& tensor, const TargetOptions& target, const Kernels& kernels) {
  const TypeInfo* largest = nullptr;
  for (const TypeInfo* type : target.candidates)
    if (type != &tensor.source_type() && !type->is_f32() && takes(*type, tensor, kernels) &&
        (!largest || type->bits_per_weight() > largest->bits_per_weight()))
      largest = type;
  return largest ? largest : &type_named(tensor.source_type().name == "BF16" ? "F16" : "BF16");
}

// A tensor of a model, by index, and the types that it is measured as.
struct WantedTypes {
  std::size_t tensor = 0;
  std::vector<const TypeInfo*> types{};
};

// Returns what the target of an output has to know: candidates of the open tensors, and the energy of others. Refuses
// tensors without a candidate because they have no importance, and adds a warning for those that have fewer.
Result<std::vector<WantedTypes>> types_wanted(const Undecided& made, const Kernels& kernels,
                                              std::vector<std::string>& warnings) {
  const bool has_final_importance = std::ranges::none_of(made.model.problems, wants_importance);
  std::vector<WantedTypes> wanted;
  WithoutImportance refused, limited;
  BOOST_OUTCOME_TRY(const std::vector<Candidates> candidates, candidates_of(*made.target, made.model, made.open));
  for (std::size_t place = 0; place < made.open.size(); ++place) {
    const std::size_t i = made.open[place];
    const Tensor& tensor = made.model.tensors[i];
    Candidates types = candidates[place];
    std::erase_if(types, [&](const TypeInfo* type) { return !takes(*type, tensor, kernels); });
    const auto needing = types_without_importance(tensor, candidates[place], kernels);
    if (!needing.empty() && has_final_importance) (types.empty() ? refused : limited).add(tensor, needing);
    wanted.push_back({i, std::move(types)});
  }
  if (!refused.tensors.empty()) return no_importance(refused, *made.target, made.model);
  if (!limited.tensors.empty()) warnings.push_back(fewer_candidates(limited));
  for (const std::size_t i : made.energies)
    wanted.push_back({i, {energy_type(made.model.tensors[i], *made.target, kernels)}});
  return wanted;
}

Status add_target(const JobOutput& output, const Model& shared, const Kernels& kernels, Wanted& wanted) {
  BOOST_OUTCOME_TRY(auto found, undecided(output.stages, shared));
  if (!found || found->target->measurement) return ok();
  const Undecided& made = wanted.models.emplace_back(*std::move(found));
  BOOST_OUTCOME_TRY(const std::vector<WantedTypes> all, types_wanted(made, kernels, wanted.warnings));
  for (const auto& [i, types] : all) {
    const Tensor& tensor = made.model.tensors[i];
    BOOST_OUTCOME_TRY(Tensor rows, sampled(tensor, made.target->sample));
    const EncodersByType& encoders = made.target->encoders;
    const std::string identity = measured_identity(rows, encoders);
    const auto [known, is_new] = wanted.places.try_emplace({tensor.name, identity}, wanted.tensors.size());
    if (is_new) {
      const SampledTensor& sample = wanted.samples.emplace_back(SampledTensor{&tensor, rows, identity});
      wanted.tensors.push_back({&sample.rows, {}, {}, sample.scale() != 1});
      wanted.sample_of.emplace(&sample.rows, &sample);
    }
    Measured& measured = wanted.tensors[known->second];
    for (const TypeInfo* type : types)
      if (std::ranges::count(measured.types, type) == 0) {
        const auto own = encoders.find(type);
        measured.types.push_back(type);
        measured.encoders.push_back(own == encoders.end() ? tensor.encoder : own->second);
      }
  }
  return ok();
}

bool is_unmeasured(const std::shared_ptr<const Stage>& stage) {
  const TargetOptions* target = target_of(*stage);
  return target && !target->measurement;
}

// Returns the request of the outputs whose targets are not measured. All must want the same model, because a
// measurement is of one.
Result<PartRequest> measured_request(const Job& job) {
  const JobOutput* first = nullptr;
  for (const JobOutput& output : job.outputs) {
    if (std::ranges::none_of(output.stages, is_unmeasured)) continue;
    if (!first) first = &output;
    if (!output.request().is_same_model(first->request()))
      return error_at(output.origin, "the outputs with a target must be of the same part and outtype",
                      "choose types for the other part in a job of its own");
  }
  return first ? first->request() : PartRequest{};
}

}  // namespace

Result<Model> measured_model(const Job& job) {
  BOOST_OUTCOME_TRY(const PartRequest request, measured_request(job));
  return shared_model(job, request);
}

Result<Wanted> wanted_of(const Job& job, const Model& shared, const Kernels& kernels) {
  Wanted wanted;
  wanted.models.reserve(job.outputs.size());
  for (const JobOutput& output : job.outputs) {
    BOOST_OUTCOME_TRY(add_target(output, shared, kernels, wanted));
  }
  if (wanted.models.empty())
    return usage_error("no output of the job has a target, so there is nothing to measure",
                       "set a target, for example quantize: {target: {bits: 4.5}}");
  std::erase_if(wanted.tensors, [](const Measured& each) { return each.types.empty(); });
  return wanted;
}

}  // namespace ggufmill
