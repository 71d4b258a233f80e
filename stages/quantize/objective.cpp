#include "stages/quantize/objective.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/model.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMostObjectiveBytes = 1 << 20;
constexpr std::string_view kKinds[] = {"stream", "relative", "probe", "absolute"};  // in the order of ObjectiveKind

FieldSpec regex_field(std::string name, std::string doc) {
  FieldSpec field{std::move(name), FieldKind::kRegex, std::move(doc)};
  field.example = "ffn_down";
  return field;
}

Result<Objective> read_objective(const ConfigNode& root) {
  Objective objective;
  const auto text = [&](const char* name) {
    const ConfigNode* node = root.find(name);
    return node ? node->scalar : std::string();
  };
  objective.description = text("description");
  objective.formula = text("formula");
  objective.kind = static_cast<ObjectiveKind>(std::ranges::find(kKinds, text("kind")) - std::begin(kKinds));
  if (const ConfigNode* head = root.find("head")) {
    BOOST_OUTCOME_TRY(objective.head, to_number(*head));
  }
  for (auto [name, into] : {std::pair{"embedding", &objective.embedding}, std::pair{"output", &objective.output}})
    if (const ConfigNode* node = root.find(name)) {
      BOOST_OUTCOME_TRY(*into, to_pattern(*node));
    }
  if (const ConfigNode* blocks = root.find("blocks"))
    for (const ConfigNode& node : blocks->items) {
      BOOST_OUTCOME_TRY(Pattern writes, to_pattern(*node.find("writes")));
      BOOST_OUTCOME_TRY(Pattern others, to_pattern(*node.find("others")));
      objective.blocks.push_back({std::move(writes), std::move(others)});
    }
  if (const ConfigNode* multipliers = root.find("multipliers"))
    for (const ConfigNode& node : multipliers->items) {
      BOOST_OUTCOME_TRY(Pattern match, to_pattern(*node.find("match")));
      BOOST_OUTCOME_TRY(const double times, to_number(*node.find("times")));
      objective.multipliers.push_back({std::move(match), times});
    }
  return objective;
}

Result<Objective> parse_objective(std::string_view text, const std::string& name) {
  Diagnostics errors;
  const auto document = read_document(text, name, errors);
  if (document) lint(document->root, objective_fields(), errors);
  if (!errors.empty()) return errors.together();
  return read_objective(document->root);
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

FieldSpec objective_fields() {
  FieldSpec block{"", FieldKind::kMap, "A part of a layer."};
  block.fields = {regex_field("writes", "The matrix that writes its result into the residual stream."),
                  regex_field("others", "The other matrices of this part of the layer.")};
  FieldSpec blocks{"blocks", FieldKind::kList, "The parts of a layer, in order."};
  FieldSpec multiplier{"", FieldKind::kMap, "Tensors, and the multiplier of their sensitivity."};
  multiplier.fields = {regex_field("match", "Pattern to find in the tensor name."),
                       {"times", FieldKind::kNumber, "The multiplier."}};
  multiplier.fields[1].example = "1.25";
  for (FieldSpec* map : {&block, &multiplier})
    for (FieldSpec& field : map->fields) field.required = true;
  FieldSpec multipliers{"multipliers", FieldKind::kList, "Multipliers for tensors; the first match counts."};
  blocks.item = {std::move(block)};
  multipliers.item = {std::move(multiplier)};
  FieldSpec all{"", FieldKind::kMap, "An objective: what the choice of types minimizes."};
  all.fields = {{"description", FieldKind::kString, "What it is and what it needs."},
                {"formula", FieldKind::kString, "The sum that is minimized."},
                {"kind", FieldKind::kEnum, "How sensitivities are determined."},
                {"head", FieldKind::kNumber, "Weight of the head (stream)."},
                regex_field("embedding", "Pattern for the embedding (stream)."),
                regex_field("output", "Pattern for the head (stream)."),
                std::move(blocks),
                std::move(multipliers)};
  all.fields[2].required = true;
  all.fields[2].example = "stream";
  all.fields[2].choices = {std::begin(kKinds), std::end(kKinds)};
  all.fields[3].example = "5";
  return all;
}

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
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(name_or_path, kMostObjectiveBytes));
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
