// The front matter of a card: the YAML before its Markdown, which the hub reads.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "pipeline/api/publish/card/card_values.h"
#include "pipeline/config/yaml_words.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

// Tags of the base model's files, which are not those of the card's.
constexpr std::string_view kFormatTags[] = {"safetensors", "pytorch"};

// Trainers write the path of a folder instead of a name.
bool is_hub_name(std::string_view name) {
  const auto is_part = [](std::string_view part) {
    constexpr std::string_view kPunctuation = "-_.";
    return !part.empty() && part.front() != '.' && std::ranges::all_of(part, [&](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             kPunctuation.find(c) != kPunctuation.npos;
    });
  };
  const std::size_t slash = name.find('/');
  return slash != name.npos && is_part(name.substr(0, slash)) && is_part(name.substr(slash + 1));
}

void add_scalar(std::string& yaml, std::string_view key, const std::string& value) {
  if (!value.empty()) yaml += fmt::format("{}: {}\n", key, yaml_scalar(is_utf8(value) ? value : printable(value)));
}

void add_list(std::string& yaml, std::string_view key, const std::vector<std::string>& values) {
  if (values.empty()) return;
  yaml += fmt::format("{}:\n", key);
  for (const std::string& value : values)
    yaml += fmt::format("- {}\n", yaml_scalar(is_utf8(value) ? value : printable(value)));
}

void add_license(std::string& yaml, const Card& card) {
  if (card.base.license.size() == 1)
    add_scalar(yaml, "license", card.base.license.front());
  else
    add_list(yaml, "license", card.base.license);
}

// A file of the base model's repository is not in the card's.
std::string license_url(const Card& card) {
  const std::string& link = card.base.license_link;
  if (link.empty() || link.find("://") != link.npos || card.base_model.empty()) return link;
  return fmt::format("{}{}/blob/main/{}", kHub, card.base_model, link);
}

std::vector<std::string> tags_of(const Card& card) {
  std::vector<std::string> tags = {"gguf"};
  if (card.importance) tags.emplace_back("imatrix");
  for (const std::string& tag : card.base.tags) {
    if (std::ranges::find(kFormatTags, std::string_view(tag)) != std::end(kFormatTags)) continue;
    if (std::ranges::find(tags, tag) == tags.end()) tags.push_back(tag);
  }
  return tags;
}

// Returns the relation of the model to its base models. If the source has no name on the hub, its card decides.
std::string relation_of(const Card& card) {
  if (card.use == CardUse::kAdapter) return "adapter";
  if (!card.base_model.empty()) return "quantized";
  if (!card.base.base_model_relation.empty()) return card.base.base_model_relation;
  return base_models_of(card).size() > 1 ? "merge" : "finetune";
}

}  // namespace

std::string front_matter_of(const Card& card) {
  std::string yaml;
  const std::vector<std::string> bases = base_models_of(card);
  if (bases.size() == 1)
    add_scalar(yaml, "base_model", bases.front());
  else
    add_list(yaml, "base_model", bases);
  if (!bases.empty()) add_scalar(yaml, "base_model_relation", relation_of(card));
  add_license(yaml, card);
  add_scalar(yaml, "license_name", card.base.license_name);
  add_scalar(yaml, "license_link", license_url(card));
  add_list(yaml, "language", card.base.language);
  add_scalar(yaml, "pipeline_tag", card.base.pipeline_tag);
  add_scalar(yaml, "quantized_by", card.quantized_by);
  add_list(yaml, "tags", tags_of(card));
  yaml.pop_back();  // there is always a tag
  return yaml;
}

std::vector<std::string> base_models_of(const Card& card) {
  if (!card.base_model.empty()) return {card.base_model};
  std::vector<std::string> names;
  for (const std::string& name : card.base.base_model)
    if (is_hub_name(name)) names.push_back(name);
  return names;
}

}  // namespace ggufmill
