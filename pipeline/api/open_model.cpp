#include "pipeline/api/open_model.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace {

const SourceSpec& best_source(const std::string& path, const Registry& registry, FileForm form) {
  const bool by_contents = form == FileForm::kConverted || is_folder(path);
  const auto fit = [&](const SourceSpec& spec) {
    const SourceFit found = spec.fit ? spec.fit(path) : SourceFit::kNone;
    return found == SourceFit::kContents && !by_contents ? SourceFit::kNone : found;
  };
  return *std::ranges::max_element(registry.sources, {}, fit);
}

bool has_field(const FieldSpec& spec, std::string_view name) {
  const auto is_it = [&](const FieldSpec& field) { return field.name == name; };
  return std::ranges::any_of(spec.fields, is_it) ||
         std::ranges::any_of(spec.alternatives, [&](const FieldSpec& form) { return has_field(form, name); });
}

ConfigNode scalar_node(std::string text) {
  ConfigNode node;
  node.kind = ConfigNode::Kind::kScalar;
  node.scalar = std::move(text);
  return node;
}

// Returns the value of the source's key in a pipeline file.
ConfigNode value_for(const FieldSpec& spec, const std::string& path, const SourceSettings& settings) {
  ConfigNode value;
  value.kind = ConfigNode::Kind::kMap;
  for (const auto& [name, setting] : settings)
    if (has_field(spec, name)) value.entries.push_back({name, {}, scalar_node(setting)});
  if (value.entries.empty()) return scalar_node(path);
  value.entries.push_back({"path", {}, scalar_node(path)});
  return value;
}

}  // namespace

Result<Model> open_model(const std::string& path, SourceSettings settings, const Registry& registry, FileForm form,
                         Incomplete incomplete) {
  settings.emplace_back("allow_missing", incomplete == Incomplete::kWarn ? "true" : "false");
  BOOST_OUTCOME_TRY(const std::string at, pinned(path));
  const SourceSpec& spec = best_source(at, registry, form);
  BOOST_OUTCOME_TRY(const auto source, spec.make(value_for(spec.field, at, settings)));
  return source->open();
}

}  // namespace ggufmill
