#include "stages/metadata/metadata_stage.h"

#include <fmt/format.h>

#include "pipeline/core/metadata_keys.h"
#include "pipeline/core/text.h"
#include "pipeline/io/io.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMaxFileBytes = 1ull << 30;

Result<std::string> text_of(const ValueFile& from) {
  BOOST_OUTCOME_TRY(const auto file, open_source(from.path));
  if (file->bytes() > kMaxFileBytes)
    return error_at(from.origin, fmt::format("'{}' has {} bytes, more than the limit of 1 GiB for a metadata value",
                                             from.path, file->bytes()));
  std::string text(static_cast<std::size_t>(file->bytes()), '\0');
  BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

// A string is the text as it is. Other values may have white space around them.
Result<MetadataValue> value_in(const ValueFile& from, const std::string& key, const MetadataValue* before) {
  WrittenValue written{.may_be_list = true, .origin = from.origin};
  BOOST_OUTCOME_TRY(written.text, text_of(from));
  const std::string type = !from.type.empty() ? from.type : before ? full_type_name(*before) : std::string();
  const std::string_view expected = type.empty() ? known_type(key, false) : type;
  if (expected.empty() || expected == "string") return value_of(written, "string");
  constexpr const char* kSpace = " \t\r\n";
  written.text.erase(written.text.find_last_not_of(kSpace) + 1);
  written.text.erase(0, written.text.find_first_not_of(kSpace));
  return from.type.empty() ? value_for(key, written, before) : value_of(written, from.type, from.origin);
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
    BOOST_OUTCOME_TRY(assign(present(options_.replace, model), model, &Metadata::set));
    BOOST_OUTCOME_TRY(assign(options_.set, model, &Metadata::set));
    BOOST_OUTCOME_TRY(assign(options_.append, model, &Metadata::set_at_end));
    return model;
  }

  std::vector<std::string> inputs() const override {
    std::vector<std::string> paths;
    for (const auto* settings : {&options_.set, &options_.append, &options_.replace})
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

  static std::vector<MetadataSetting> present(std::vector<MetadataSetting> settings, const Model& model) {
    std::erase_if(settings, [&](const MetadataSetting& setting) { return !model.metadata.find(setting.key); });
    return settings;
  }

  static Status assign(const std::vector<MetadataSetting>& settings, Model& model, Setter setter) {
    for (const MetadataSetting& setting : settings) {
      const MetadataValue* before = model.metadata.find(setting.key);
      BOOST_OUTCOME_TRY(auto value, value_of_setting(setting, before));
      warn_of_type(setting.key, before, value, model.warnings);
      if (is_split_key(setting.key))
        model.warnings.push_back(
            fmt::format("metadata key '{}' has no effect: it describes the shards, which the options of the output "
                        "determine",
                        setting.key));
      (model.metadata.*setter)(setting.key, std::move(value));
    }
    return ok();
  }

  static Result<MetadataValue> value_of_setting(const MetadataSetting& setting, const MetadataValue* before) {
    if (const auto* written = std::get_if<WrittenValue>(&setting.value))
      return value_for(setting.key, *written, before);
    if (const auto* file = std::get_if<ValueFile>(&setting.value)) {
      auto value = value_in(*file, setting.key, before);
      if (value || !value.error().where.empty()) return value;
      Error error = std::move(value).error();
      error.where = file->path;
      return error;
    }
    return std::get<MetadataValue>(setting.value);
  }

  static void warn_of_type(const std::string& key, const MetadataValue* before, const MetadataValue& after,
                           std::vector<std::string>& warnings) {
    const std::string type = full_type_name(after), old_type = before ? full_type_name(*before) : type;
    const KnownKey* known = known_key(key);
    const bool is_known = known && (is_one_of(type, known->types) || is_one_of(type, known->specification));
    const bool is_same = type == old_type || (type == "array[]" && old_type.ends_with("[][]"));  // no item has a type
    std::string text = is_same ? std::string() : fmt::format("changes from type {} to {}", old_type, type);
    if (known && !is_known)
      text +=
          fmt::format("{} type {}, but llama.cpp expects {}", text.empty() ? "has" : "; it has", type, known->types);
    if (!text.empty()) warnings.push_back(fmt::format("metadata key '{}' {}", key, text));
  }

  MetadataOptions options_;
};

// A value that is written as a map: one of a given type, or the contents of a file.
struct MapValue {
  TypedValue typed{};
  std::optional<ValueFile> file{};
};

using Value = MetadataSetting::Value;

Result<Value> value_of_map(MapValue map, const ConfigNode& node) {
  if (map.file && map.typed.value)
    return error_at(node, "'value' and 'file' cannot both give the value", "remove one of them");
  if (map.file) {
    map.file->type = map.typed.type.value_or("");
    return Value(std::move(*map.file));
  }
  map.typed.origin = origin_of(node);
  BOOST_OUTCOME_TRY(MetadataValue value, value_of(map.typed));
  return Value(std::move(value));
}

Form<Value> value_form() {
  const auto as_value = [](WrittenValue written) -> Value { return written; };
  const auto file = shorthand(&ValueFile::path, path()).at(&ValueFile::origin);
  const auto map =
      map_of<MapValue>(fields_within(&MapValue::typed, typed_value_fields()) +
                       Fields<MapValue>{field("file", &MapValue::file, file,
                                              "A file that contains the value: the text of a string, such as a chat "
                                              "template, or a number or list, as the type of the key requires.")})
          .doc("A value of a given type, or the contents of a file.");
  return either<Value>(
             converted<Value>(
                 written_scalar("true, false, a number, or a string. An existing key keeps its type, and a new "
                                "key that llama.cpp or the GGUF specification knows has its known type."),
                 as_value),
             converted<Value>(written_list("An array, typed by the same rules."), as_value),
             converted<Value>(map, value_of_map))
      .doc("The value.");
}

Form<std::vector<MetadataSetting>> settings_form() {
  return converted<std::vector<MetadataSetting>>(dictionary_of(value_form()), [](NamedValues<Value> values) {
    std::vector<MetadataSetting> settings;
    for (auto& [key, value] : values) settings.push_back({key, std::move(value)});
    return settings;
  });
}

Form<MetadataOptions> metadata_form() {
  using Options = MetadataOptions;
  return map_of<Options>(
             {
                 field("set", &Options::set, settings_form(),
                       "Keys and their values; an existing key keeps its position, a new one is added at the end.")
                     .example(
                         "{general.license: mit, general.tags: [a, b], llama.context_length: {type: uint32, value: "
                         "8192}}"),
                 field("append", &Options::append, settings_form(), "Like `set`, but moves existing keys to the end.")
                     .example("{general.name: mine}"),
                 field("replace", &Options::replace, settings_form(),
                       "Like `set`, but only for keys that the model has.")
                     .example("{general.url: 'https://example.org/mine'}"),
                 field("remove", &Options::remove, list_of(text().doc("A key.")), "Keys to remove.")
                     .example("[general.url]"),
                 field("rename", &Options::rename, dictionary_of(text().doc("The new name.")),
                       "Keys and their new names; position and value are kept.")
                     .example("{general.url: general.source.url}"),
             })
      .doc("Sets, removes, and renames metadata keys; `remove` is applied first, then `rename`.")
      .example("{set: {general.license: mit}, remove: [general.url]}");
}

}  // namespace

std::unique_ptr<Stage> make_metadata_stage(MetadataOptions options) {
  return std::make_unique<MetadataStage>(std::move(options));
}

StageSpec metadata_stage() { return stage_spec("metadata", metadata_form(), make_metadata_stage); }

}  // namespace ggufmill
