// Text that shows users a choice of types.

#include <fmt/format.h>

#include <string>
#include <vector>

#include "pipeline/core/text.h"
#include "stages/quantize/stream_facts.h"
#include "stages/quantize/target.h"

namespace ggufmill {
namespace {

// Returns the number of names and the first few.
std::string listed(const std::vector<std::string>& names) {
  return fmt::format(" ({} in total): {}", names.size(), list_some(names));
}

// Reports the tensors whose importance is missing or rests on few tokens.
void warn_of_little_known(const Objective& objective, const Choice& choice, Model& model) {
  std::vector<std::string> careful, careless;
  for (const ChosenTensor& chosen : choice.tensors) {
    const Tensor& tensor = model.tensors[chosen.tensor];
    if (is_little_known(objective, tensor))
      (chosen.is_cautious ? careful : careless).push_back(quoted_name(tensor.name));
  }
  const auto warn = [&](const std::vector<std::string>& names, const char* what, const char* why) {
    if (names.empty()) return;
    model.warnings.push_back(
        fmt::format("{} below {} for tensors whose importance is missing or rests on few tokens{}{}", what,
                    objective.cautious->at_least->name, why, listed(names)));
  };
  warn(careful, "no type", "");
  warn(careless, "types", ", because larger ones do not fit or are not candidates");
}

// Reports the tensors whose energy is estimated.
void warn_of_estimated(const Choice& choice, Model& model) {
  std::vector<std::string> names;
  for (const std::string& name : choice.estimated) names.push_back(quoted_name(name));
  if (names.empty()) return;
  model.warnings.push_back(
      "the sensitivity of layers is estimated from other layers, because tensors that write to the residual stream "
      "have no importance" +
      listed(names));
}

// Reports the tensors that any type suits, because their sensitivity was measured to be zero or less.
void warn_of_worthless(const TargetOptions& target, const Choice& choice, Model& model) {
  if (target.objective.kind != ObjectiveKind::kProbe) return;
  std::vector<std::string> names;
  for (const ChosenTensor& chosen : choice.tensors) {
    const std::string& name = model.tensors[chosen.tensor].name;
    const auto probe = target.probes.find(name);
    if (probe == target.probes.end() || probe->second.divergence > 0) continue;
    const std::string line = probe->second.line > 0 ? fmt::format(", line {}", probe->second.line) : "";
    names.push_back(fmt::format("{} ({:.4g}{})", quoted_name(name), probe->second.divergence, line));
  }
  if (!names.empty())
    model.warnings.push_back(
        fmt::format("{}: tensors with a divergence of zero or less count nothing, so they get the smallest types{}",
                    target.sensitivities, listed(names)));
}

// Describes what was minimized, and what was gained over the recipes of the same size.
std::string describe_choice(const TargetOptions& target, const Choice& choice) {
  std::string text = fmt::format("loss {:.4g} by '{}'", choice.loss, target.objective.name);
  for (const RecipeGain& gain : choice.gains) {
    const auto& part = target.budgets[gain.budget].tensors;
    text +=
        fmt::format("; {:.4g} of {}'s {:.4g} at its size{}", gain.recipe_loss > 0 ? gain.loss / gain.recipe_loss : 1,
                    gain.recipe, gain.recipe_loss, part ? fmt::format(" for '{}'", part->text()) : "");
  }
  return text;
}

}  // namespace

void report_choice(const TargetOptions& target, const Choice& choice, Model& model) {
  if (!choice.is_proven) model.warnings.push_back("the choice of types is good, but not proven to be optimal");
  warn_of_little_known(target.objective, choice, model);
  warn_of_estimated(choice, model);
  warn_of_worthless(target, choice, model);
  model.notes.set(notes::kChoice, describe_choice(target, choice));
}

}  // namespace ggufmill
