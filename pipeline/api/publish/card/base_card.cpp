#include "pipeline/api/publish/card/base_card.h"

#include <fmt/format.h>

#include "pipeline/config/front_matter.h"

namespace ggufmill {
namespace {

// A key and the member that it sets; exactly one of the two.
struct CardKey {
  std::string_view name;
  std::string BaseCard::*text = nullptr;
  std::vector<std::string> BaseCard::*list = nullptr;
};

constexpr CardKey kCardKeys[] = {
    {.name = "license", .list = &BaseCard::license},
    {.name = "license_name", .text = &BaseCard::license_name},
    {.name = "license_link", .text = &BaseCard::license_link},
    {.name = "language", .list = &BaseCard::language},
    {.name = "pipeline_tag", .text = &BaseCard::pipeline_tag},
    {.name = "library_name", .text = &BaseCard::library_name},
    {.name = "tags", .list = &BaseCard::tags},
    {.name = "base_model", .list = &BaseCard::base_model},
    {.name = "base_model_relation", .text = &BaseCard::base_model_relation},
};

std::string_view kind_name(const ConfigNode& node) {
  return node.is_map() ? "a map" : node.is_list() ? "a list" : "empty";
}

void warn(BaseCard& card, const ConfigNode& node, const std::string& what) {
  card.warnings.push_back(fmt::format("{}: {}; ignored", origin_of(node).where, what));
}

void read_list(BaseCard& card, const CardKey& key, const ConfigNode& node) {
  for (const ConfigNode& item : node.items) {
    if (item.is_scalar())
      (card.*key.list).push_back(item.scalar);
    else
      warn(card, item, fmt::format("an item of '{}' is {}, not text", key.name, kind_name(item)));
  }
}

void read_key(BaseCard& card, const CardKey& key, const ConfigNode& node) {
  if (node.kind == ConfigNode::Kind::kNull) return;
  if (key.list != nullptr && node.is_list()) return read_list(card, key, node);
  if (!node.is_scalar()) {
    const std::string_view wanted = key.list != nullptr ? "text or a list" : "text";
    return warn(card, node, fmt::format("'{}' is {}, not {}", key.name, kind_name(node), wanted));
  }
  if (node.scalar.empty()) return;
  if (key.list != nullptr)
    card.*key.list = {node.scalar};
  else
    card.*key.text = node.scalar;
}

}  // namespace

Result<BaseCard> read_base_card(std::string_view text, const std::string& path) {
  BaseCard card;
  ConfigTexts texts;
  BOOST_OUTCOME_TRY(const ConfigNode root, read_front_matter(text, path, texts));
  if (root.kind == ConfigNode::Kind::kNull) return card;
  if (!root.is_map()) {
    warn(card, root, "the text between the --- lines is not a map");
    return card;
  }
  for (const CardKey& key : kCardKeys)
    if (const ConfigNode* node = root.find(key.name)) read_key(card, key, *node);
  return card;
}

}  // namespace ggufmill
