#include "stages/quantize/objective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipeline/config/bound_fields.h"
#include "pipeline/core/model.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMaxObjectiveBytes = 1 << 20;
constexpr std::string_view kKinds[] = {"stream", "relative", "probe", "absolute"};  // in the order of ObjectiveKind

Form<Objective::Block> block_form() {
  using Block = Objective::Block;
  return map_of<Block>(
             {
                 field("writes", &Block::writes, "The matrix that writes its result into the residual stream.")
                     .required()
                     .example("ffn_down"),
                 field("others", &Block::others, "The other matrices of this part of the layer.")
                     .required()
                     .example("ffn_down"),
             })
      .doc("A part of a layer.");
}

Form<Objective::Multiplier> multiplier_form() {
  using Multiplier = Objective::Multiplier;
  return map_of<Multiplier>({
                                field("match", &Multiplier::match, "Pattern to find in the tensor name.")
                                    .required()
                                    .example("ffn_down"),
                                field("times", &Multiplier::times, "The multiplier.").required().example("1.25"),
                            })
      .doc("Tensors, and the multiplier of their sensitivity.");
}

Form<Objective> objective_form() {
  return map_of<Objective>(
             {
                 field("description", &Objective::description, "What it is and what it needs."),
                 field("formula", &Objective::formula, "The sum that is minimized."),
                 field("kind", &Objective::kind, enumeration<ObjectiveKind>(kKinds),
                       "How sensitivities are determined.")
                     .required()
                     .example("stream"),
                 field("head", &Objective::head, "Weight of the head (stream).").example("5"),
                 field("embedding", &Objective::embedding, "Pattern for the embedding (stream).").example("ffn_down"),
                 field("output", &Objective::output, "Pattern for the head (stream).").example("ffn_down"),
                 field("blocks", &Objective::blocks, list_of(block_form()), "The parts of a layer, in order."),
                 field("multipliers", &Objective::multipliers, list_of(multiplier_form()),
                       "Multipliers for tensors; the first match counts."),
             })
      .doc("An objective: what the choice of types minimizes.");
}

Result<Objective> parse_objective(std::string_view text, const std::string& name) {
  return parse_document(text, name, objective_form());
}

// Shares of the residual stream that tensors write.
class Stream {
 public:
  Stream(const Objective& objective, const Measurement& all, const ExpertUse& experts) : objective_(objective) {
    // Energy of the tensors that write to the stream, in the order of layers and, within a layer, of the objective's
    // blocks.
    for (const MeasuredTensor& tensor : all.tensors) {
      const auto layer = layer_of(tensor.name);
      if (layer)
        for (std::size_t b = 0; b < objective.blocks.size(); ++b)
          if (is(objective.blocks[b].writes, tensor.name)) written_[{*layer, b}] += energy_written(tensor, experts);
      if (!layer && objective.embedding && is(*objective.embedding, tensor.name) && tensor.shape.dims[1] > 0)
        embedding_ = tensor.energy / static_cast<double>(tensor.shape.dims[1]);
      has_output_ = has_output_ || (!layer && objective.output && is(*objective.output, tensor.name));
    }
    double so_far = embedding_;
    for (const auto& [place, energy] : written_) {
      so_far += energy;
      share_[place] = so_far > 0 ? energy / so_far : 0;
    }
  }

  // Returns the sensitivity of a tensor, or nullopt if the tensor has no role.
  std::optional<double> of(const MeasuredTensor& tensor) const {
    const auto layer = layer_of(tensor.name);
    if (!layer) {
      if (objective_.output && is(*objective_.output, tensor.name)) return objective_.head;
      if (!objective_.embedding || !is(*objective_.embedding, tensor.name)) return {};
      return has_output_ ? 1 : objective_.head;  // tied: also the head
    }
    for (std::size_t b = 0; b < objective_.blocks.size(); ++b) {
      const Objective::Block& block = objective_.blocks[b];
      if (!is(block.writes, tensor.name) && !is(block.others, tensor.name)) continue;
      const auto found = share_.find({*layer, b});
      if (found != share_.end()) return found->second;
    }
    return {};
  }

 private:
  // Returns the mean energy over tokens. If k of n experts are used with weights of 1/k each, a product counts 1/k^2,
  // and this for k of n tokens: build_moe_ffn of llama.cpp (src/llama-graph.cpp) multiplies the results of
  // `ffn_down_exps` by the weights and adds them up.
  static double energy_written(const MeasuredTensor& tensor, const ExpertUse& experts) {
    const auto n = static_cast<double>(tensor.shape.dims[2]), k = static_cast<double>(experts.used);
    if (tensor.shape.rank < 3 || n <= 1 || k == 0) return tensor.weighted_energy;
    return tensor.weighted_energy * experts.scale * experts.scale / (n * k);
  }

  static bool is(const Pattern& pattern, const std::string& name) {
    const Result<bool> found = pattern.matches(name);
    return found && found.value();
  }

  const Objective& objective_;
  std::map<std::pair<std::uint64_t, std::size_t>, double> written_, share_;  // by layer and block
  double embedding_ = 0;
  bool has_output_ = false;
};

double weights_of(const MeasuredTensor& tensor) { return static_cast<double>(tensor.shape.elements()); }

Result<double> from_probe(const MeasuredTensor& tensor, const Probes& probes) {
  const auto probe = probes.find(tensor.name);
  if (probe == probes.end())
    return usage_error(fmt::format("the sensitivity of tensor {} is missing", quoted_name(tensor.name)),
                       "`ggufmill probe` measures sensitivities");
  const MeasuredType* type = tensor.find(probe->second.type);
  const double square = type ? tensor.relative_square(*type) : 0;
  if (square <= 0)
    return usage_error(fmt::format("the sensitivity of tensor {} is for {}, whose error was not measured",
                                   quoted_name(tensor.name), probe->second.type),
                       "add it to `candidates` and measure again");
  return std::max(probe->second.divergence, 0.0) / square;
}

Result<double> sensitivity(const Objective& objective, const MeasuredTensor& tensor, const Stream& stream,
                           const Probes& probes) {
  if (objective.kind == ObjectiveKind::kRelative) return weights_of(tensor);
  if (objective.kind == ObjectiveKind::kAbsolute) return tensor.weighted ? tensor.weighted_energy : tensor.energy;
  if (objective.kind == ObjectiveKind::kProbe) return from_probe(tensor, probes);
  if (const auto found = stream.of(tensor)) return *found;
  return usage_error(
      fmt::format("tensor {} has no role in objective '{}'", quoted_name(tensor.name), objective.name),
      "use another objective such as `relative`, which needs no roles, or copy this one and extend `blocks`");
}

}  // namespace

FieldSpec objective_fields() { return objective_form().spec; }

Result<Objective> find_objective(const std::string& name_or_path, const Origin& asked) {
  std::vector<std::string> names;
  for (const BuiltInObjective& built_in : built_in_objectives()) {
    names.emplace_back(built_in.name);
    if (built_in.name != name_or_path) continue;
    BOOST_OUTCOME_TRY(Objective objective, parse_objective(built_in.text, name_or_path));
    objective.name = name_or_path;
    return objective;
  }
  if (!names_file(name_or_path)) {
    const std::string meant = did_you_mean(name_or_path, names);
    return error_at(asked, fmt::format("unknown objective {}", quoted_name(name_or_path)),
                    meant.empty() ? "`ggufmill recipe objectives` lists them; a file name ends in .yaml"
                                  : fmt::format("did you mean '{}'?", meant));
  }
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(name_or_path, kMaxObjectiveBytes));
  BOOST_OUTCOME_TRY(Objective objective, parse_objective(text, name_or_path));
  objective.name = objective.file = name_or_path;
  return objective;
}

Result<std::vector<double>> sensitivities(const Objective& objective, const std::vector<const MeasuredTensor*>& tensors,
                                          const Measurement& all, const Probes& probes, const ExpertUse& experts) {
  if (objective.kind == ObjectiveKind::kStream && std::ranges::none_of(all.tensors, &MeasuredTensor::weighted))
    return usage_error(fmt::format("objective '{}' needs an importance matrix", objective.name),
                       "measure with one: stages: [{importance: {file: imatrix.gguf}}]; `relative` does not need one");
  const Stream stream(objective, all, experts);
  std::vector<double> counts;
  for (const MeasuredTensor* tensor : tensors) {
    BOOST_OUTCOME_TRY(double counted, sensitivity(objective, *tensor, stream, probes));
    for (const Objective::Multiplier& multiplier : objective.multipliers) {
      BOOST_OUTCOME_TRY(const bool fits, multiplier.match.matches(tensor->name));
      if (!fits) continue;
      counted *= multiplier.times;
      break;
    }
    counts.push_back(counted);
  }
  return counts;
}

}  // namespace ggufmill
