// The sources of each value and their precedence follow llama.cpp, gguf-py/gguf/metadata.py.

#include "stages/huggingface/general.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cmath>
#include <limits>
#include <map>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;
using std::string_view;

enum class Kind { kText, kTexts, kInteger, kReal, kModels };

// A key and the sources of its value: members of the model card, the first one with a value being used, or members of
// generation_config.json, the first existing one being used. A metadata file may override every key but the license.
struct Field {
  string_view key;
  Kind kind = Kind::kText;
  std::vector<string_view> generation = {};
  std::vector<string_view> card = {};
};

// Fields in the order in which they are written.
const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {"general.sampling.sequence", Kind::kText, {"sequence"}},
      {"general.sampling.top_k", Kind::kInteger, {"top_k"}},
      {"general.sampling.top_p", Kind::kReal, {"top_p"}},
      {"general.sampling.min_p", Kind::kReal, {"min_p"}},
      {"general.sampling.xtc_probability", Kind::kReal, {"xtc_probability"}},
      {"general.sampling.xtc_threshold", Kind::kReal, {"xtc_threshold"}},
      {"general.sampling.temp", Kind::kReal, {"temperature"}},
      {"general.sampling.penalty_last_n", Kind::kInteger, {"penalty_last_n"}},
      {"general.sampling.penalty_repeat", Kind::kReal, {"penalty_repeat", "repetition_penalty"}},
      {"general.sampling.mirostat", Kind::kInteger, {"mirostat"}},
      {"general.sampling.mirostat_tau", Kind::kReal, {"mirostat_tau"}},
      {"general.sampling.mirostat_eta", Kind::kReal, {"mirostat_eta"}},
      {"general.name", Kind::kText, {}, {"name", "model_name"}},
      {"general.author", Kind::kText, {}, {"author", "model_author", "model_creator"}},
      {"general.version", Kind::kText, {}, {"version", "model_version"}},
      {"general.organization", Kind::kText, {}, {"organization", "model_organization"}},
      {"general.finetune", Kind::kText, {}, {"finetune", "model_finetune"}},
      {"general.basename", Kind::kText, {}, {"basename", "model_basename", "model_type"}},
      {"general.description", Kind::kText, {}, {"description", "model_description"}},
      {"general.quantized_by"},
      {"general.size_label", Kind::kText, {}, {"size_label", "model_size_label"}},
      {"general.license", Kind::kText, {}, {"license"}},
      {"general.license.name", Kind::kText, {}, {"license_name"}},
      {"general.license.link", Kind::kText, {}, {"license_link"}},
      {"general.url"},
      {"general.doi"},
      {"general.uuid"},
      {"general.repo_url"},
      {"general.source.url", Kind::kText, {}, {"url", "model_url"}},
      {"general.source.doi", Kind::kText, {}, {"doi", "model_doi"}},
      {"general.source.uuid", Kind::kText, {}, {"uuid", "model_uuid"}},
      {"general.source.repo_url", Kind::kText, {}, {"repo_url", "model_repo_url"}},
      {"general.base_models", Kind::kModels, {}, {"base_model", "base_models", "base_model_sources"}},
      {"general.datasets", Kind::kModels, {}, {"datasets", "dataset", "dataset_sources"}},
      {"general.tags", Kind::kTexts, {}, {"tags", "pipeline_tag"}},
      {"general.languages", Kind::kTexts, {}, {"languages", "language"}},
  };
  return all;
}
constexpr string_view kLicense = "general.license";

// Keys of a base model or a data set, in order.
constexpr string_view kModelFields[] = {"name", "author", "version", "organization", "description",
                                        "url",  "doi",    "uuid",    "repo_url"};

// Returns true if Python treats the value as false: such a text is not written.
bool is_empty(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return true;
    case json::kind::bool_:
      return !value.get_bool();
    case json::kind::int64:
      return value.get_int64() == 0;
    case json::kind::double_:
      return value.get_double() == 0;
    case json::kind::string:
      return value.get_string().empty();
    case json::kind::array:
      return value.get_array().empty();
    case json::kind::object:
      return value.get_object().empty();
    default:
      return false;
  }
}

string_view word_for(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "nothing";
    case json::kind::bool_:
      return "a boolean";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "a list";
    case json::kind::object:
      return "an object";
    default:
      return "a number";
  }
}

// A value, and the file and the member that it comes from.
struct Found {
  json::value value;
  std::string file, member;
  Error error(string_view wanted) const {
    return input_error(file, fmt::format("{} is {}, not {}", quoted_name(member), word_for(value), wanted),
                       wanted == "a string" && !value.is_structured() ? "quote it" : "");
  }
};

std::optional<std::int32_t> as_int32(const json::value& value) {
  if (value.is_bool()) return value.get_bool();
  if (!value.is_int64()) return {};
  const std::int64_t number = value.get_int64();
  if (number < std::numeric_limits<std::int32_t>::min() || number > std::numeric_limits<std::int32_t>::max()) return {};
  return static_cast<std::int32_t>(number);
}

std::optional<double> as_float(const json::value& value) {
  if (value.is_bool()) return value.get_bool();
  if (!value.is_number()) return {};
  const auto number = value.to_number<double>();
  if (std::isfinite(number) && !std::isfinite(static_cast<float>(number))) return {};
  return number;
}

MetadataValue int32_value(std::int32_t number) {
  return metadata_unsigned(MetadataType::kInt32, static_cast<std::uint64_t>(static_cast<std::int64_t>(number)));
}

// Converts one element of a list; its type determines the metadata type.
std::optional<MetadataValue> item_value(const json::value& item) {
  if (const auto text = json_text(item)) return metadata_string(*text);
  if (item.is_bool()) return metadata_bool(item.get_bool());
  if (const auto number = as_int32(item)) return int32_value(*number);
  if (!item.is_double()) return {};
  const auto number = as_float(item);
  return number ? std::optional(metadata_float(MetadataType::kFloat32, *number)) : std::nullopt;
}

class GeneralMaker {
 public:
  GeneralMaker(const GeneralOptions& options, const json::object& config, const WeightCount& weights)
      : options_(options), folder_(options.folder), config_(config), weights_(weights) {}

  Result<General> make() {
    BOOST_OUTCOME_TRY(use_card());
    BOOST_OUTCOME_TRY(use_names());
    BOOST_OUTCOME_TRY(use_generation_config());
    BOOST_OUTCOME_TRY(use_metadata_file());
    if (options_.model_name) put("general.name", json::string(*options_.model_name), "", "--model-name");
    if (!found_.count("general.name")) put("general.name", json::string(folder_name_), "", "folder");
    if (!found_.count("general.size_label") && weights_.total > 0 && !weights_.is_adapter)
      put("general.size_label", json::string(size_label(weights_)), "", "");
    BOOST_OUTCOME_TRY(write());
    return std::move(out_);
  }

 private:
  void put(string_view key, json::value value, std::string file, std::string member) {
    if (value.is_null())
      found_.erase(std::string(key));
    else
      found_[std::string(key)] = {std::move(value), std::move(file), std::move(member)};
  }
  void put_new(string_view key, const std::optional<std::string>& text) {
    if (text && !found_.count(std::string(key))) put(key, json::string(*text), "", "");
  }
  std::optional<std::string> text_of(string_view key) const {
    const auto found = found_.find(std::string(key));
    if (found == found_.end()) return {};
    const auto text = json_text(found->second.value);
    return text ? std::optional(std::string(*text)) : std::nullopt;
  }

  // ---- sources of values ----

  Status use_card() {
    BOOST_OUTCOME_TRY(const json::object card, read_model_card(folder_, out_.warnings));
    const std::string file = folder_ / "README.md";
    for (const Field& field : fields()) {
      if (field.kind == Kind::kTexts) {
        use_texts(field, card, file);
        continue;
      }
      for (const string_view member : field.card) {
        const json::value* value = card.if_contains({member.data(), member.size()});
        if (!value || (field.kind == Kind::kText && value->is_null())) continue;
        put(field.key, field.kind == Kind::kModels ? models_in(*value) : *value, file, std::string(member));
        break;
      }
    }
    return ok();
  }

  // Collects the strings of all members; each is a string or a list.
  void use_texts(const Field& field, const json::object& card, const std::string& file) {
    json::array texts;
    for (const string_view member : field.card) {
      const json::value* value = card.if_contains({member.data(), member.size()});
      if (!value) continue;
      if (value->is_string()) texts.push_back(*value);
      if (const json::array* list = value->if_array()) texts.insert(texts.end(), list->begin(), list->end());
    }
    if (!texts.empty()) put(field.key, std::move(texts), file, std::string(field.card.front()));
  }

  // Returns a map for each model or data set that the card names, derived from its name.
  json::array models_in(const json::value& value) {
    json::array models;
    if (const auto id = json_text(value)) models.push_back(model_named(*id));
    const json::array* list = value.if_array();
    if (!list) return models;
    for (const json::value& item : *list) {
      if (const auto id = json_text(item))
        models.push_back(model_named(*id));
      else if (item.is_object())
        models.push_back(item);
      else {
        models.push_back(json::object());
        out_.warnings.push_back(fmt::format("{}: {} in base models or datasets does not describe one",
                                            (folder_ / "README.md").string(), word_for(item)));
      }
    }
    return models;
  }

  // `id` is a model id or the address of a repository.
  json::object model_named(string_view id) const {
    json::object model;
    const auto put_id = [&](string_view named) {
      ModelId parts = read_model_id(named, weights_);
      model["name"] = model_title(*parts.name);
      if (parts.organization) model["organization"] = model_title(*parts.organization);
      if (parts.version) model["version"] = *parts.version;
      return parts;
    };
    const bool is_web = id.starts_with("http://") || id.starts_with("https://");
    if (is_web || id.starts_with("ssh://")) {
      constexpr string_view kHub = "huggingface.co/";
      model["repo_url"] = json::string(id.data(), id.size());
      const string_view host = id.substr(id.find("://") + 3);
      if (!is_web || !host.starts_with(kHub)) return model;
      const string_view path = host.substr(kHub.size());
      const std::size_t slash = path.find('/');
      const bool two = slash != 0 && slash < path.size() - 1 && path.find('/', slash + 1) == string_view::npos;
      if (two && slash != string_view::npos) put_id(path);
      return model;
    }
    const ModelId parts = put_id(id);
    if (parts.organization)
      model["repo_url"] = fmt::format("https://huggingface.co/{}/{}", *parts.organization, *parts.name);
    return model;
  }

  // Uses the id in config.json, then the folder's name.
  Status use_names() {
    if (const json::value* id = config_.if_contains("_name_or_path"); id && !id->is_null()) {
      const auto text = json_text(*id);
      if (!text) return Found{*id, folder_ / "config.json", "_name_or_path"}.error("a string");
      if (std::count(text->begin(), text->end(), '/') <= 1) use_id(*text);  // otherwise a path on somebody's machine
    }
    folder_name_ = folder_name(options_.folder);
    if (!is_utf8(folder_name_))
      return input_error(folder_, "the folder's name, which the model would be named after, is not UTF-8",
                         "rename the folder");
    use_id(folder_name_);
    return ok();
  }

  void use_id(string_view id) {
    const ModelId parts = read_model_id(id, weights_);
    put_new("general.name", model_title(*parts.name));
    if (parts.organization) put_new("general.organization", model_title(*parts.organization));
    put_new("general.basename", parts.basename);
    put_new("general.finetune", parts.finetune);
    put_new("general.version", parts.version);
    put_new("general.size_label", parts.size_label);
  }

  Status use_generation_config() {
    const fs::path path = folder_ / "generation_config.json";
    if (!is_file(path)) return ok();
    bool is_malformed = false;
    const Result<json::value> config = read_checkpoint_json(path, kMaxJsonBytes, nullptr, &is_malformed);
    if (!config && !is_malformed) return config.error();
    if (!config || !config.value().is_object()) {
      const std::string why = config ? "not an object" : config.error().what;
      out_.warnings.push_back(fmt::format("{}: {}; ignored", path.string(), why));
      return ok();
    }
    for (const Field& field : fields()) {
      for (const string_view member : field.generation) {
        const json::value* value = json_member(config.value(), member);
        if (!value) continue;
        put(field.key, *value, path, std::string(member));
        break;
      }
    }
    return ok();
  }

  Status use_metadata_file() {
    if (!options_.metadata_file) return ok();
    const std::string& path = *options_.metadata_file;
    BOOST_OUTCOME_TRY(const json::value file, read_checkpoint_json(path));
    if (!file.is_object())
      return input_error(path, fmt::format("expected an object, got {}", word_for(file)),
                         R"(for example {"general.author": "Somebody"})");
    for (const auto& [name, value] : file.get_object()) {
      const string_view key(name.data(), name.size());
      const auto field =
          std::find_if(fields().begin(), fields().end(), [&](const Field& one) { return one.key == key; });
      if (field == fields().end() || key == kLicense)
        out_.warnings.push_back(fmt::format("{}: {} is not supported in this file; ignored", path, quoted_name(key)));
      else
        put(key, value, path, std::string(key));
    }
    return ok();
  }

  // ---- writing the metadata ----

  Status write() {
    out_.metadata.set("general.type", metadata_string(options_.type));
    for (const Field& field : fields()) {
      const auto found = found_.find(std::string(field.key));
      if (found == found_.end()) continue;
      BOOST_OUTCOME_TRY(field.kind == Kind::kModels ? write_models(field.key, found->second)
                        : field.kind == Kind::kText ? write_text(std::string(field.key), found->second)
                                                    : write_value(field, found->second));
    }
    out_.id.name = text_of("general.name");
    out_.id.organization = text_of("general.organization");
    out_.id.basename = text_of("general.basename");
    out_.id.finetune = text_of("general.finetune");
    out_.id.version = text_of("general.version");
    out_.id.size_label = text_of("general.size_label");
    return ok();
  }

  Status write_text(const std::string& key, const Found& found) {
    if (is_empty(found.value)) return ok();
    std::string text;
    if (const json::array* list = found.value.if_array(); list && key == kLicense) {
      for (const json::value& item : *list) {
        const auto one = json_text(item);
        if (!one) return found.error("a string or a list of strings");
        text += (text.empty() ? "" : ",") + std::string(*one);
      }
    } else {
      const auto one = json_text(found.value);
      if (!one) return found.error("a string");
      text = *one;
    }
    out_.metadata.set(key, metadata_string(text));
    return ok();
  }

  Status write_value(const Field& field, const Found& found) {
    const std::string key(field.key);
    if (field.kind == Kind::kInteger) {
      const auto number = as_int32(found.value);
      if (!number) return found.error("a 32-bit integer");
      out_.metadata.set(key, int32_value(*number));
    } else if (field.kind == Kind::kReal) {
      const auto number = as_float(found.value);
      if (!number) return found.error("a float32 number");
      out_.metadata.set(key, metadata_float(MetadataType::kFloat32, *number));
    } else {
      return write_list(key, found);
    }
    return ok();
  }

  Status write_list(const std::string& key, const Found& found) {
    const json::array* list = found.value.if_array();
    if (!list) return found.error("a list");
    std::vector<MetadataValue> items;
    for (const json::value& item : *list) {
      const auto value = item_value(item);
      if (!value || (!items.empty() && items.front().type != value->type))
        return input_error(found.file, fmt::format("{} contains {}", quoted_name(found.member), word_for(item)),
                           "quote every item: no and yes are booleans, 7 is a number");
      items.push_back(*value);
    }
    if (!items.empty()) out_.metadata.set(key, metadata_array(items.front().type, items));
    return ok();
  }

  // Writes general.base_models as general.base_model.count, general.base_model.0.name, ...
  Status write_models(string_view key, const Found& found) {
    const std::string prefix(key.substr(0, key.size() - 1));
    const json::array* models = found.value.if_array();
    if (!models) return found.error("a list of objects");
    out_.metadata.set(prefix + ".count", metadata_unsigned(MetadataType::kUint32, models->size()));
    for (std::size_t i = 0; i < models->size(); ++i) {
      if (!(*models)[i].is_object()) return found.error("a list of objects");
      for (const string_view field : kModelFields) {
        const json::value* value = json_member((*models)[i], field);
        if (!value) continue;
        BOOST_OUTCOME_TRY(write_text(fmt::format("{}.{}.{}", prefix, i, field),
                                     {*value, found.file, fmt::format("{}[{}].{}", found.member, i, field)}));
      }
    }
    return ok();
  }

  const GeneralOptions& options_;
  fs::path folder_;
  const json::object& config_;
  const WeightCount& weights_;
  std::string folder_name_;
  std::map<std::string, Found, std::less<>> found_;  // by key
  General out_;
};

}  // namespace

std::string folder_name(const std::string& folder) {
  if (is_address(folder)) return name_of_address(folder);
  fs::path path = folder;
  while (path.has_parent_path() && path != path.root_path() && (path.filename().empty() || path.filename() == "."))
    path = path.parent_path();
  if (!path.filename().empty() && path.filename() != "." && path.filename() != "..") return path.filename();
  std::error_code none;
  path = fs::weakly_canonical(fs::absolute(path, none), none);
  if (none == std::errc::not_enough_memory) throw std::bad_alloc();
  return path.filename();
}

Result<General> read_general(const GeneralOptions& options, const json::object& config, const WeightCount& weights) {
  return GeneralMaker(options, config, weights).make();
}

}  // namespace ggufmill::huggingface
