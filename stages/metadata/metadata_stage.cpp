#include "stages/metadata/metadata_stage.h"

#include <fmt/format.h>

#include "stages/metadata/value_of.h"

namespace ggufmill {
namespace {

class MetadataStage : public Stage {
 public:
  explicit MetadataStage(ConfigNode value) : value_(std::move(value)) {}

  Result<Model> apply(Model model) const override {
    if (const ConfigNode* keys = value_.find("remove"))
      for (const ConfigNode& key : keys->items)
        if (!model.metadata.remove(key.scalar))
          model.warnings.push_back(
              fmt::format("metadata key '{}' is to be removed, but the model has none", key.scalar));
    BOOST_OUTCOME_TRY(assign("set", model.metadata, &Metadata::set));
    BOOST_OUTCOME_TRY(assign("append", model.metadata, &Metadata::set_at_end));
    return model;
  }

 private:
  using Setter = void (Metadata::*)(std::string, MetadataValue);

  Status assign(std::string_view field, Metadata& metadata, Setter setter) const {
    const ConfigNode* values = value_.find(field);
    if (!values) return ok();
    for (const ConfigNode::Entry& entry : values->entries) {
      BOOST_OUTCOME_TRY(auto value, metadata_value_of(entry.value, metadata.find(entry.key)));
      (metadata.*setter)(entry.key, std::move(value));
    }
    return ok();
  }

  ConfigNode value_;
};

FieldSpec value_field() {
  FieldSpec scalar{"", FieldKind::kString, "true, false, a number or a text; keeps the type the key has."};
  FieldSpec list{"", FieldKind::kList, "An array; keeps the element type the key has."};
  list.item.push_back({"", FieldKind::kAny, "An element."});
  FieldSpec map{"", FieldKind::kMap, "A value of a given type, or the text of a file."};
  map.fields.push_back({"type", FieldKind::kString, "A metadata type; with [] for an array."});
  map.fields.back().example = "uint64";
  map.fields.push_back({"value", FieldKind::kAny, "The value."});
  map.fields.push_back({"file", FieldKind::kPath, "A file whose bytes are the value, a string: a chat template."});
  FieldSpec any{"", FieldKind::kOneOf, "The value."};
  any.alternatives = {scalar, list, map};
  return any;
}

}  // namespace

StageSpec metadata_stage() {
  StageSpec spec;
  spec.field = {"metadata", FieldKind::kMap, "Sets and removes metadata keys; `remove` comes first."};
  spec.field.example = "{set: {general.license: mit}, remove: [general.url]}";
  FieldSpec set{"set", FieldKind::kDictionary,
                "Keys and their values; a key that is there keeps its place, a new one goes to the end."};
  set.example = "{general.license: mit, general.tags: [a, b], llama.context_length: {type: uint32, value: 8192}}";
  set.item.push_back(value_field());
  FieldSpec append{"append", FieldKind::kDictionary, "As `set`, but a key that is there moves to the end."};
  append.example = "{general.name: mine}";
  append.item.push_back(value_field());
  FieldSpec remove{"remove", FieldKind::kList, "Keys to leave out."};
  remove.example = "[general.url]";
  remove.item.push_back({"", FieldKind::kString, "A key."});
  spec.field.fields = {set, append, remove};
  spec.per_output = true;
  spec.make = [](const ConfigNode& value) -> Result<std::unique_ptr<Stage>> {
    return std::unique_ptr<Stage>(std::make_unique<MetadataStage>(value));
  };
  return spec;
}

}  // namespace ggufmill
