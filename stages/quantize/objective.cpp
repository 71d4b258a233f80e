#include "stages/quantize/objective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

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
                 field("norm", &Block::norm, "The norm of what these matrices write, which determines its energy.")
                     .example("post_ffw_norm"),
                 field(
                     "norm_with", &Block::norm_with,
                     "The norm follows these matrices only in layers with a tensor that matches this; in other layers, "
                     "the tensor of that name is the norm before the next part.")
                     .example("ffn_norm"),
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

Form<Objective::Caution> caution_form() {
  using Caution = Objective::Caution;
  return map_of<Caution>(
             {
                 field("at_least", &Caution::at_least, tensor_type({}), "The type with the fewest bits.")
                     .required()
                     .example("Q3_K"),
                 field("tokens", &Caution::tokens, "Tokens that an expert must have seen.").example("64"),
                 field("experts", &Caution::experts, "Share of a tensor's experts that may have seen fewer.")
                     .example("0.5"),
             })
      .doc("Tensors of layers whose importance is missing or rests on few tokens.");
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
                 field("parts", &Objective::parts, list_of(regex().doc("Pattern for tensors.").example("_exps")),
                       "Parts of a layer's parts, whose results are added: a tensor counts with the energy of its own; "
                       "all that match none are one, too (stream)."),
                 field("scaled_by_width", &Objective::scaled_by_width,
                       "Architectures that multiply embeddings by the square root of their length (stream).")
                     .example("^gemma"),
                 field("scaled_blocks", &Objective::scaled_blocks,
                       "Architectures that multiply what blocks write by ARCH.residual_scale (stream).")
                     .example("^granite"),
                 field("least_use", &Objective::least_use,
                       "Experts count by the tokens that they saw, but at least this share of their tensor's mean.")
                     .example("0.1"),
                 field("cautious", &Objective::cautious, caution_form(),
                       "The smallest type for tensors whose importance is missing or rests on few tokens."),
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
  Stream(const Objective& objective, const Measurement& all, const StreamFacts& facts)
      : objective_(objective), facts_(facts), has_output_(facts.has_output) {
    std::vector<std::pair<Place, const MeasuredTensor*>> writers;
    for (const MeasuredTensor& tensor : all.tensors) {
      const auto layer = layer_of(tensor.name);
      if (layer)
        for (std::size_t b = 0; b < objective.blocks.size(); ++b)
          if (is(objective.blocks[b].writes, tensor.name)) writers.push_back({{*layer, b}, &tensor});
      if (!layer && objective.embedding && is(*objective.embedding, tensor.name) && tensor.shape.dims[1] > 0)
        embedding_ = tensor.energy / static_cast<double>(tensor.shape.dims[1]);
      has_output_ = has_output_ || (!layer && objective.output && is(*objective.output, tensor.name));
    }
    for (const auto& [place, tensor] : writers)
      if (has_importance(*tensor)) add_known(place, *tensor);
    for (const auto& [place, tensor] : writers) add_written(place, *tensor);
    double so_far = embedding_ * facts.embedding_scale * facts.embedding_scale;
    for (auto& [place, written] : written_) {  // in the order of layers and, within a layer, of the objective's blocks
      const auto norm = facts.norms.find(place);
      const double energy =
          (norm == facts.norms.end() ? written.energy : norm->second) * facts.block_scale * facts.block_scale;
      so_far += energy;
      written.share = so_far > 0 ? energy / so_far : 0;
    }
  }

  // Returns the sensitivity of a tensor, or nullopt if the tensor has no role.
  std::optional<double> of(const MeasuredTensor& tensor) const {
    const auto layer = layer_of(tensor.name);
    if (!layer) {
      if (objective_.output && is(*objective_.output, tensor.name)) return objective_.head;
      if (!objective_.embedding || !is(*objective_.embedding, tensor.name)) return {};
      return has_output_ ? 1 : 1 + objective_.head;  // tied: its error has both effects
    }
    for (std::size_t b = 0; b < objective_.blocks.size(); ++b) {
      const Objective::Block& block = objective_.blocks[b];
      if (!is(block.writes, tensor.name) && !is(block.others, tensor.name)) continue;
      const auto found = written_.find({*layer, b});
      if (found != written_.end()) return found->second.share * found->second.part(part_of(tensor.name));
    }
    return {};
  }

  const std::vector<std::string>& estimated() const { return estimated_; }
  bool has_known() const { return !known_.empty(); }  // importance of a matrix that writes

 private:
  using Place = std::pair<std::uint64_t, std::size_t>;  // layer and block

  // Energy that a block of a layer adds to the residual stream.
  struct Written {
    double energy = 0;                      // before norms and scales
    std::map<std::size_t, double> by_part;  // the same, by part
    double share = 0;                       // of the stream up to and with this block

    // Returns the share of a part. A part that writes nothing, such as a router, affects all others.
    double part(std::size_t part) const {
      const auto found = by_part.find(part);
      return found == by_part.end() || energy <= 0 ? 1 : found->second / energy;
    }
  };

  // A weighted energy of 0 (importance of 0 in all columns) carries no information.
  static bool has_importance(const MeasuredTensor& tensor) {
    return tensor.weighted && (tensor.weighted_energy > 0 || tensor.energy <= 0);
  }

  void add_known(Place place, const MeasuredTensor& tensor) {
    if (tensor.weighted_energy <= 0 || tensor.energy <= 0) return;
    const double importance = tensor.weighted_energy / tensor.energy;
    known_[{place.second, part_of(tensor.name)}].emplace(place.first, importance);
    known_logarithms_.push_back(std::log(importance));
  }

  // Estimates the mean importance of a matrix by that of the same matrices of the nearest layers or, if there are none,
  // by that of all matrices that write.
  double estimated_importance(Place place, const MeasuredTensor& tensor) const {
    const auto found = known_.find({place.second, part_of(tensor.name)});
    if (found == known_.end())
      return std::exp(std::accumulate(known_logarithms_.begin(), known_logarithms_.end(), 0.0) /
                      static_cast<double>(known_logarithms_.size()));
    const std::map<std::uint64_t, double>& layers = found->second;
    const auto next = layers.upper_bound(place.first);
    if (next == layers.begin()) return next->second;
    if (next == layers.end()) return std::prev(next)->second;
    return std::sqrt(next->second * std::prev(next)->second);
  }

  // Returns the weighted energy, which is estimated without importance.
  double weighted_energy(Place place, const MeasuredTensor& tensor) {
    if (has_importance(tensor) || place.first >= facts_.first_extra_layer) return tensor.weighted_energy;
    estimated_.push_back(tensor.name);
    return known_.empty() ? 0 : tensor.energy * estimated_importance(place, tensor);
  }

  void add_written(Place place, const MeasuredTensor& tensor) {
    Written& written = written_[place];
    const double energy = energy_written(tensor, weighted_energy(place, tensor));
    written.energy += energy;
    written.by_part[part_of(tensor.name)] += energy;
  }

  std::size_t part_of(const std::string& name) const {
    std::size_t part = 0;
    while (part < objective_.parts.size() && !is(objective_.parts[part], name)) ++part;
    return part;
  }

  // Returns the mean energy over tokens. If k of n experts are used with weights of 1/k each, a product counts 1/k^2,
  // and this for k of n tokens: build_moe_ffn of llama.cpp (src/llama-graph.cpp) multiplies the results of
  // `ffn_down_exps` by the weights and adds them up.
  double energy_written(const MeasuredTensor& tensor, double weighted_energy) const {
    const double n = static_cast<double>(tensor.shape.dims[2]), k = static_cast<double>(facts_.experts_used);
    if (tensor.shape.rank < 3 || n <= 1 || k == 0) return weighted_energy;
    return weighted_energy * facts_.expert_scale * facts_.expert_scale / (n * k);
  }

  static bool is(const Pattern& pattern, const std::string& name) {
    const Result<bool> found = pattern.matches(name);
    return found && found.value();
  }

  const Objective& objective_;
  const StreamFacts& facts_;
  std::map<Place, Written> written_;
  // The mean importance of matrices that write, by block and part, then by layer.
  std::map<std::pair<std::size_t, std::size_t>, std::map<std::uint64_t, double>> known_;
  std::vector<double> known_logarithms_;
  std::vector<std::string> estimated_;
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
  const auto text = read_text_file(name_or_path, kMaxObjectiveBytes);
  if (!text) return named_at(asked, text.error(), "check the path");
  BOOST_OUTCOME_TRY(Objective objective, parse_objective(text.value(), name_or_path));
  objective.name = objective.file = name_or_path;
  return objective;
}

Result<Sensitivities> sensitivities(const Objective& objective, const std::vector<const MeasuredTensor*>& tensors,
                                    const Measurement& all, const Probes& probes, const StreamFacts& facts) {
  if (objective.kind == ObjectiveKind::kStream && std::ranges::none_of(all.tensors, &MeasuredTensor::weighted))
    return usage_error(fmt::format("objective '{}' needs an importance matrix", objective.name),
                       "measure with one: stages: [{importance: {file: imatrix.gguf}}]; `relative` does not need one");
  const Stream stream(objective, all, facts);
  Sensitivities found;
  found.estimated = stream.estimated();
  if (!found.estimated.empty() && !stream.has_known())
    return usage_error(fmt::format("objective '{}' needs the importance of tensors that write to the residual stream, "
                                   "but {} has none, and no other does",
                                   objective.name, quoted_name(found.estimated.front())),
                       "use a complete importance matrix, or objective: relative, which does not need one");
  for (const MeasuredTensor* tensor : tensors) {
    BOOST_OUTCOME_TRY(double counted, sensitivity(objective, *tensor, stream, probes));
    for (const Objective::Multiplier& multiplier : objective.multipliers) {
      BOOST_OUTCOME_TRY(const bool fits, multiplier.match.matches(tensor->name));
      if (!fits) continue;
      counted *= multiplier.times;
      break;
    }
    found.counts.push_back(counted);
  }
  return found;
}

}  // namespace ggufmill
