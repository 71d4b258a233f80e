#include "stages/quantize/exclusion.h"

#include <fmt/format.h>

#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMostExclusionBytes = 1 << 20;

Result<Exclusion> parse_exclusion(std::string_view text, const std::string& name, const Types& types) {
  Diagnostics errors;
  const auto document = read_document(text, name, errors);
  if (document) lint(document->root, exclusion_fields(), errors, types);
  if (!errors.empty()) return errors.together();
  Exclusion exclusion;
  exclusion.name = name;
  for (auto [key, into] : {std::pair{"description", &exclusion.description}, std::pair{"source", &exclusion.source}})
    if (const ConfigNode* node = document->root.find(key)) *into = node->scalar;
  for (const ConfigNode& type : document->root.find("types")->items) exclusion.types.push_back(types.find(type.scalar));
  return exclusion;
}

}  // namespace

FieldSpec exclusion_fields() {
  FieldSpec types{"types", FieldKind::kList, "The excluded types."};
  types.required = true;
  types.item = {{"", FieldKind::kTypeName, "A type."}};
  types.item[0].example = "TQ1_0";
  types.minimum = 1;
  FieldSpec all{"", FieldKind::kMap, "Types excluded from a choice."};
  all.fields = {{"description", FieldKind::kString, "What the types have in common."},
                {"source", FieldKind::kString, "The source of this information."},
                std::move(types)};
  return all;
}

Result<Exclusion> find_exclusion(const std::string& name_or_path, const Origin& asked, const Types& types) {
  std::vector<std::string> names;
  for (const BuiltInExclusion& built_in : built_in_exclusions()) {
    if (built_in.name == name_or_path) return parse_exclusion(built_in.text, name_or_path, types);
    names.emplace_back(built_in.name);
  }
  if (!names_file(name_or_path)) {
    const std::string meant = did_you_mean(name_or_path, names);
    return error_at(asked, fmt::format("unknown exclusion list {}", quoted_name(name_or_path)),
                    meant.empty() ? "`ggufmill recipe exclusions` lists them; a file name ends in .yaml"
                                  : fmt::format("did you mean '{}'?", meant));
  }
  BOOST_OUTCOME_TRY(const std::string text, read_text_file(name_or_path, kMostExclusionBytes));
  BOOST_OUTCOME_TRY(Exclusion exclusion, parse_exclusion(text, name_or_path, types));
  exclusion.file = name_or_path;
  return exclusion;
}

}  // namespace ggufmill
