#include "stages/metadata/metadata_stage.h"

#include <fmt/format.h>

#include "pipeline/io/io.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMostFileBytes = 1ull << 30;

Result<MetadataValue> text_of(const ValueFile& from) {
  BOOST_OUTCOME_TRY(const auto file, open_source(from.path));
  if (file->bytes() > kMostFileBytes)
    return error_at(from.origin, fmt::format("'{}' has {} bytes, more than the limit of 1 GiB for a metadata value",
                                             from.path, file->bytes()));
  std::string text(static_cast<std::size_t>(file->bytes()), '\0');
  BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(text))));
  return metadata_string(text);
}

class MetadataStage : public Stage {
 public:
  explicit MetadataStage(MetadataOptions options) : options_(std::move(options)) {}

  Result<Model> apply(Model model) const override {
    for (const std::string& key : options_.remove)
      if (!model.metadata.remove(key))
        model.warnings.push_back(fmt::format("metadata key '{}' cannot be removed: the model does not have it", key));
    for (const auto& [from, to] : options_.rename) {
      BOOST_OUTCOME_TRY(rename(from, to, model));
    }
    BOOST_OUTCOME_TRY(assign(options_.set, model.metadata, &Metadata::set));
    BOOST_OUTCOME_TRY(assign(options_.append, model.metadata, &Metadata::set_at_end));
    return model;
  }

  std::vector<std::string> inputs() const override {
    std::vector<std::string> paths;
    for (const auto* settings : {&options_.set, &options_.append})
      for (const MetadataSetting& setting : *settings)
        if (const auto* file = std::get_if<ValueFile>(&setting.value)) paths.push_back(file->path);
    return paths;
  }

 private:
  using Setter = void (Metadata::*)(std::string, MetadataValue);

  static Status rename(const std::string& from, const std::string& to, Model& model) {
    if (!model.metadata.find(from)) {
      model.warnings.push_back(fmt::format("metadata key '{}' cannot be renamed: the model does not have it", from));
      return ok();
    }
    if (model.metadata.find(to))
      return usage_error(
          fmt::format("metadata key '{}' cannot be renamed to '{}': the model already has that key", from, to),
          "remove it first");
    Metadata renamed;
    for (const MetadataEntry& entry : model.metadata.entries())
      renamed.add(entry.key == from ? to : entry.key, entry.value);
    model.metadata = std::move(renamed);
    return ok();
  }

  static Status assign(const std::vector<MetadataSetting>& settings, Metadata& metadata, Setter setter) {
    for (const MetadataSetting& setting : settings) {
      BOOST_OUTCOME_TRY(auto value, value_for(setting, metadata.find(setting.key)));
      (metadata.*setter)(setting.key, std::move(value));
    }
    return ok();
  }

  static Result<MetadataValue> value_for(const MetadataSetting& setting, const MetadataValue* before) {
    if (const auto* written = std::get_if<WrittenValue>(&setting.value)) return value_of(*written, before);
    if (const auto* file = std::get_if<ValueFile>(&setting.value)) return text_of(*file);
    return std::get<MetadataValue>(setting.value);
  }

  MetadataOptions options_;
};

Result<MetadataSetting> read_setting(const ConfigNode::Entry& entry) {
  const ConfigNode& node = entry.value;
  if (!node.is_map()) return MetadataSetting{entry.key, written_value(node)};
  if (const ConfigNode* file = node.find("file"))
    return MetadataSetting{entry.key, ValueFile{file->scalar, origin_of(*file)}};
  BOOST_OUTCOME_TRY(MetadataValue typed, typed_value_of(node));
  return MetadataSetting{entry.key, std::move(typed)};
}

Result<std::vector<MetadataSetting>> read_settings(const ConfigNode* map) {
  std::vector<MetadataSetting> settings;
  if (!map) return settings;
  for (const ConfigNode::Entry& entry : map->entries) {
    BOOST_OUTCOME_TRY(auto setting, read_setting(entry));
    settings.push_back(std::move(setting));
  }
  return settings;
}

Result<std::unique_ptr<Stage>> make(const ConfigNode& value) {
  MetadataOptions options;
  if (const ConfigNode* keys = value.find("remove"))
    for (const ConfigNode& key : keys->items) options.remove.push_back(key.scalar);
  if (const ConfigNode* keys = value.find("rename"))
    for (const ConfigNode::Entry& entry : keys->entries) options.rename.emplace_back(entry.key, entry.value.scalar);
  BOOST_OUTCOME_TRY(options.set, read_settings(value.find("set")));
  BOOST_OUTCOME_TRY(options.append, read_settings(value.find("append")));
  return make_metadata_stage(std::move(options));
}

FieldSpec value_field() {
  FieldSpec scalar{"", FieldKind::kString, "true, false, a number, or a string; an existing key keeps its type."};
  FieldSpec list{"", FieldKind::kList, "An array; an existing key keeps its element type."};
  list.item.push_back({"", FieldKind::kAny, "An element."});
  FieldSpec map{"", FieldKind::kMap, "A value of a given type, or the contents of a file."};
  map.fields = typed_value_fields();
  map.fields.push_back(
      {"file", FieldKind::kPath, "A file whose contents become the value, a string; for example a chat template."});
  FieldSpec any{"", FieldKind::kOneOf, "The value."};
  any.alternatives = {scalar, list, map};
  return any;
}

}  // namespace

std::unique_ptr<Stage> make_metadata_stage(MetadataOptions options) {
  return std::make_unique<MetadataStage>(std::move(options));
}

StageSpec metadata_stage() {
  StageSpec spec;
  spec.field = {"metadata", FieldKind::kMap,
                "Sets, removes, and renames metadata keys; `remove` is applied first, then `rename`."};
  spec.field.example = "{set: {general.license: mit}, remove: [general.url]}";
  FieldSpec set{"set", FieldKind::kDictionary,
                "Keys and their values; an existing key keeps its position, a new one is added at the end."};
  set.example = "{general.license: mit, general.tags: [a, b], llama.context_length: {type: uint32, value: 8192}}";
  set.item.push_back(value_field());
  FieldSpec append{"append", FieldKind::kDictionary, "Like `set`, but moves existing keys to the end."};
  append.example = "{general.name: mine}";
  append.item.push_back(value_field());
  FieldSpec remove{"remove", FieldKind::kList, "Keys to remove."};
  remove.example = "[general.url]";
  remove.item.push_back({"", FieldKind::kString, "A key."});
  FieldSpec rename{"rename", FieldKind::kDictionary, "Keys and their new names; position and value are kept."};
  rename.example = "{general.url: general.source.url}";
  rename.item.push_back({"", FieldKind::kString, "The new name."});
  spec.field.fields = {set, append, remove, rename};
  spec.per_output = true;
  spec.make = make;
  return spec;
}

}  // namespace ggufmill
