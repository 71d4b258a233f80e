#include "stages/huggingface/tokenizer/special_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cctype>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;
// Returns true if Python treats the value as true.
bool given(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return false;
    case json::kind::bool_:
      return value.get_bool();
    case json::kind::string:
      return !value.get_string().empty();
    case json::kind::object:
      return !value.get_object().empty();
    case json::kind::array:
      return !value.get_array().empty();
    default:
      return true;
  }
}

json::value member_or_null(const json::value& value, std::string_view name) {
  const json::value* member = json_member(value, name);
  return member ? *member : json::value();
}

// Returns the id in a template part {"SpecialToken": {"id": ...}} or {"Sequence": {"id": ...}}; null if there is none.
json::value id_in(const json::value& part, std::string_view kind) {
  const json::value* inner = json_member(part, kind);
  return inner ? member_or_null(*inner, "id") : json::value();
}

struct RoleKey {
  std::string_view role, id_key, added_key;  // empty added_key: no such key exists
};
constexpr RoleKey kRoleKeys[] = {
    {"bos", "tokenizer.ggml.bos_token_id", "tokenizer.ggml.add_bos_token"},
    {"eos", "tokenizer.ggml.eos_token_id", "tokenizer.ggml.add_eos_token"},
    {"unk", "tokenizer.ggml.unknown_token_id", ""},
    {"sep", "tokenizer.ggml.seperator_token_id", "tokenizer.ggml.add_sep_token"},
    {"pad", "tokenizer.ggml.padding_token_id", ""},
    {"mask", "tokenizer.ggml.mask_token_id", ""},
    {"eot", "tokenizer.ggml.eot_token_id", ""},
    {"eom", "tokenizer.ggml.eom_token_id", ""},
};
const RoleKey* key_of(std::string_view role) {
  const auto* found =
      std::find_if(std::begin(kRoleKeys), std::end(kRoleKeys), [&](const RoleKey& key) { return key.role == role; });
  return found == std::end(kRoleKeys) ? nullptr : found;
}

Status check_template(const std::string& where, std::string_view text) {
  if (text.size() <= kMaxChatTemplate) return ok();
  return input_error(where, fmt::format("a chat template of {} bytes; the limit is {}", text.size(), kMaxChatTemplate),
                     "remove or shorten chat_template");
}

}  // namespace

Result<TokenizerFiles> TokenizerFiles::read(const fs::path& folder) {
  TokenizerFiles files;
  files.folder = folder;
  if (is_file(folder / "tokenizer.json")) {
    BOOST_OUTCOME_TRY(files.tokenizer, read_tokenizer_json(folder / "tokenizer.json"));
  }
  const auto read_object = [&](std::string_view name, json::value& into) -> Status {
    if (!is_file(folder / name)) return ok();
    BOOST_OUTCOME_TRY(into, read_checkpoint_json(folder / name));
    if (!into.is_object()) return input_error(folder / name, "not an object");
    return ok();
  };
  BOOST_OUTCOME_TRY(read_object("tokenizer_config.json", files.tokenizer_config));
  BOOST_OUTCOME_TRY(read_object("config.json", files.config));
  return files;
}

Result<SpecialTokens> SpecialTokens::find(const TokenizerFiles& files, std::vector<std::string> roles,
                                          std::optional<std::uint64_t> tokens, std::vector<std::string>& warnings) {
  SpecialTokens out;
  out.roles_ = std::move(roles);
  out.tokens_ = tokens;
  out.warnings_ = &warnings;
  json::value config = files.tokenizer_config;
  if (files.tokenizer) {
    const json::value& document = files.tokenizer->document;
    if (const json::value* normalizer = json_member(document, "normalizer")) out.read_normalizer(*normalizer);
    if (given(config)) {
      json::object& object = config.as_object();
      if (!given(member_or_null(config, "bos_token")) && given(member_or_null(config, "cls_token")))
        object["bos_token"] = json::value(object["cls_token"]);
      if (!given(member_or_null(config, "eos_token")) && given(member_or_null(config, "sep_token")))
        object["eos_token"] = json::value(object["sep_token"]);
    }
    if (const json::value* step = json_member(document, "post_processor"); step && given(*step))
      out.read_post_processor(*step, config);
  }
  if (given(config)) {
    BOOST_OUTCOME_TRY(out.read_chat_templates(files, config));
  }
  BOOST_OUTCOME_TRY(out.read_ids(files, config));
  out.warnings_ = nullptr;
  return out;
}

void SpecialTokens::read_normalizer(const json::value& normalizer) {
  const auto name = json_string(normalizer, "type");
  const std::string_view type = name ? *name : "";
  const auto flag = [&](std::string_view member, std::optional<bool>& into) {
    const json::value* value = json_member(normalizer, member);
    if (value) into = value->is_bool() ? std::optional(value->get_bool()) : std::nullopt;
  };
  if (type == "Lowercase") lowercase_ = true;
  if (type == "StripAccents") strip_accents_ = true;
  if (type == "BertNormalizer") {
    flag("lowercase", lowercase_);
    flag("strip_accents", strip_accents_);
  }
  const json::array* items = type == "Sequence" ? json_array(normalizer, "normalizers") : nullptr;
  if (!items) return;
  for (const json::value& item : *items) read_normalizer(item);
}

void SpecialTokens::set_added(std::string_view role, bool value) {
  if (bool* const known = find_added(role))
    *known = value;
  else
    added_.emplace_back(role, value);
}

void SpecialTokens::set_added_if_unset(std::string_view role, bool value) {
  if (!find_added(role)) added_.emplace_back(role, value);
}

bool* SpecialTokens::find_added(std::string_view role) {
  const auto found = std::ranges::find(added_, role, &std::pair<std::string, bool>::first);
  return found == added_.end() ? nullptr : &found->second;
}

void SpecialTokens::read_post_processor(const json::value& step, json::value& config) {
  const json::array* list = json_array(step, "processors");
  const json::array alone = list ? json::array() : json::array{step};
  for (const json::value& processor : list ? *list : alone) {
    const auto type = json_string(processor, "type");
    if (!type) continue;
    if (*type == "TemplateProcessing") read_template_step(processor, config);
    if (*type == "ByteLevel")
      for (const std::string_view role : {"bos", "eos"}) set_added_if_unset(role, false);
    if (*type != "RobertaProcessing") continue;
    for (const std::string_view role : {"bos", "eos", "sep"}) set_added(role, true);
    if (!given(config)) continue;
    const auto default_to = [&](std::string_view token, std::string_view member, std::string_view otherwise) {
      if (given(member_or_null(config, token))) return;
      const json::array* pair = json_array(processor, member);
      json::value value = pair ? (pair->empty() ? json::value() : (*pair)[0]) : member_or_null(config, otherwise);
      config.as_object()[{token.data(), token.size()}] = std::move(value);
    };
    default_to("cls_token", "cls", "bos_token");
    default_to("sep_token", "sep", "eos_token");
  }
}

// Derives from a template of the form BOS A EOS or BOS A SEP B EOS which tokens are added. Tokens in the configuration
// may be strings or objects; as in the reference, a string equals only a string.
void SpecialTokens::read_template_step(const json::value& step, json::value& config) {
  const bool has_config = given(config);
  json::value none_bos, none_eos;  // without a configuration
  const auto get = [&](std::string_view name) { return member_or_null(config, name); };
  const auto put = [&](std::string_view name, const json::value& value) {
    config.as_object()[{name.data(), name.size()}] = value;
  };
  json::value first, last;
  const json::array* single = json_array(step, "single");
  if (single && single->size() > 1) {
    first = id_in(single->front(), "SpecialToken");
    if (given(first)) {
      if (!has_config) {
        none_bos = first;
      } else if (first != get("bos_token") && first != get("cls_token")) {
        const bool no_cls = !given(get("cls_token"));
        if (!given(get("bos_token"))) put("bos_token", first);
        if (no_cls) put("cls_token", first);
      }
      set_added("bos",
                first == (has_config ? get("bos_token") : none_bos) || (has_config && first == get("cls_token")));
    }
    last = id_in(single->back(), "SpecialToken");
    if (given(last)) {
      if (!has_config) {
        none_eos = last;
      } else if (last != get("eos_token")) {
        const auto has_role = [&](std::string_view role) {
          return std::find(roles_.begin(), roles_.end(), role) != roles_.end();
        };
        for (const std::string_view role : {"eot", "eom"}) {
          if (has_role(role)) continue;
          roles_.emplace_back(role);
          put(std::string(role) + "_token", get("eos_token"));
          break;
        }
        put("eos_token", last);
      }
      set_added("eos", true);
    }
  }
  const json::array* pair = json_array(step, "pair");
  if (!pair || pair->empty()) return;
  const std::size_t begin = given(first) && id_in(pair->front(), "SpecialToken") == first ? 1 : 0;
  const std::size_t end = pair->size() - (given(last) && id_in(pair->back(), "SpecialToken") == last ? 1 : 0);
  if (begin + 2 >= end || id_in((*pair)[begin], "Sequence") != "A" || id_in((*pair)[end - 1], "Sequence") != "B")
    return;
  const json::value sep = has_config ? get("sep_token") : json::value(), eos = has_config ? get("eos_token") : none_eos;
  const auto separates = [&](std::size_t at) {
    const json::value id = id_in((*pair)[at], "SpecialToken");
    return given(id) && (id == sep || id == eos);
  };
  const bool add = (separates(begin + 1) && !given(last)) || (end - begin == 4 && separates(begin + 2));
  set_added("sep", add);
  if (add && has_config && !given(sep)) put("sep_token", eos);
}

// Returns the text without white space at its ends.
static std::string_view without_space(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Returns the only template, or the one named `default`; empty if there is none.
static std::string_view default_template(const json::value& templates) {
  if (const json::array* const list = templates.if_array())
    for (const json::value& item : *list)
      if (json_string(item, "name") == "default") return json_string(item, "template").value_or("");
  return json_text(templates).value_or("");
}

Status SpecialTokens::read_chat_templates(const TokenizerFiles& files, const json::value& config) {
  json::value found;
  const std::string in_config = files.folder / "tokenizer_config.json", jinja = files.folder / "chat_template.jinja",
                    in_json = files.folder / "chat_template.json";
  std::string where = in_config;
  if (const json::value* own = json_member(config, "chat_template")) {
    found = *own;
  } else if (is_file(jinja)) {
    where = jinja;
    BOOST_OUTCOME_TRY(const std::string text, read_text_file(where, kMaxChatTemplate));
    std::vector<fs::path> further;
    const std::string others = files.folder / "additional_chat_templates";
    if (is_folder(others)) {
      BOOST_OUTCOME_TRY(const std::vector<std::string> paths, paths_in(others));
      for (const fs::path path : paths)
        if (path.extension() == ".jinja" && is_file(path)) further.push_back(path);
    }
    std::sort(further.begin(), further.end());
    if (further.empty()) {
      found = text;
    } else {
      json::array& list = found.emplace_array();
      list.push_back(json::object{{"name", "default"}, {"template", text}});
      for (const fs::path& path : further) {
        BOOST_OUTCOME_TRY(const std::string one, read_text_file(path, kMaxChatTemplate));
        list.push_back(json::object{{"name", path.stem().string()}, {"template", one}});
      }
    }
  } else if (is_file(in_json)) {
    where = in_json;
    BOOST_OUTCOME_TRY(const json::value document, read_checkpoint_json(where));
    found = member_or_null(document, "chat_template");
  }

  if (where == in_config && is_file(jinja)) {
    BOOST_OUTCOME_TRY(const std::string other, read_text_file(jinja, kMaxChatTemplate));
    if (without_space(default_template(found)) != without_space(other))
      warnings_->push_back(fmt::format(
          "{} {}; chat_template.jinja beside it, which transformers prefers, is another template and is not "
          "used; remove `chat_template` from tokenizer_config.json to use it",
          in_config,
          found.is_null() ? "has `chat_template: null`, so that no template is written"
                          : "has the chat template that is written"));
  }
  if (where == jinja && is_file(in_json)) {
    const auto other = read_checkpoint_json(in_json);
    if (other && without_space(json_string(other.value(), "chat_template").value_or("")) !=
                     without_space(default_template(found)))
      warnings_->push_back(
          fmt::format("{} is the chat template that is written; chat_template.json beside it is another "
                      "one and is not used",
                      jinja));
  }

  if (const auto text = json_text(found)) {
    chat_template_ = *text;
    return check_template(where, *chat_template_);
  }
  if (!found.is_array()) {
    if (!found.is_null())
      warnings_->push_back(fmt::format("{}: chat_template is neither a string nor a list; skipped", where));
    return ok();
  }
  for (const json::value& item : found.get_array()) {
    const auto name = json_string(item, "name"), text = json_string(item, "template");
    if (!name || name->empty() || !text) {
      warnings_->push_back(fmt::format("{}: a chat template without a name or a text is not written", where));
      continue;
    }
    BOOST_OUTCOME_TRY(check_template(where, *text));
    std::string clean(*name);
    // A non-ASCII character becomes one underscore.
    std::erase_if(clean, [](char c) { return (c & 0xC0) == 0x80; });
    for (char& c : clean)
      c = static_cast<unsigned char>(c) < 0x80 && std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    if (clean == "default") {
      if (chat_template_ && *chat_template_ != *text)
        warnings_->push_back(fmt::format("{} has several chat templates named 'default'; the last is written", where));
      chat_template_ = *text;
    } else {
      named_templates_.emplace_back(clean, *text);
    }
  }
  if (!chat_template_ && !named_templates_.empty()) {
    std::vector<std::string> names;
    for (const auto& named : named_templates_) names.push_back(quoted_name(named.first));
    warnings_->push_back(
        fmt::format("{} has the chat templates {}, but none named 'default', which programs use unless "
                    "another is chosen",
                    where, fmt::join(names, ", ")));
  }
  return ok();
}

Status SpecialTokens::set_json(const std::string& where, std::string_view role, const json::value* id) {
  if (id && id->is_bool()) {  // a number in Python
    set(role, id->get_bool() ? 1 : 0, *warnings_);
    return ok();
  }
  if (!id || !(id->is_int64() || id->is_uint64())) return ok();
  if (id->is_int64() && id->get_int64() < 0) {
    return input_error(where,
                       fmt::format("the id of the {} token is {}, but no token has this id", role, id->get_int64()));
  }
  const std::uint64_t number = id->to_number<std::uint64_t>();
  if (number > UINT32_MAX && !tokens_)
    return input_error(
        where, fmt::format("the id of the {} token is {}; the largest id in a GGUF is {}", role, number, UINT32_MAX),
        "use the id of a token in the vocabulary, or remove it");
  set(role, number, *warnings_);
  return ok();
}

Status SpecialTokens::read_ids(const TokenizerFiles& files, const json::value& config) {
  const json::array* added = files.tokenizer ? json_array(files.tokenizer->document, "added_tokens") : nullptr;
  const auto id_of = [&](std::string_view content) -> const json::value* {
    if (!added) return nullptr;
    for (const json::value& token : *added) {
      const auto text = json_string(token, "content");
      if (text && *text == content) return json_member(token, "id");
    }
    return nullptr;
  };
  for (const std::string& role : given(config) ? roles_ : std::vector<std::string>()) {
    const json::value* add = json_member(config, "add_" + role + "_token");
    if (add && add->is_bool()) set_added_if_unset(role, add->get_bool());  // the post-processor takes precedence
    const json::value* entry = json_member(config, role + "_token");
    const auto content = !entry               ? std::nullopt
                         : entry->is_object() ? json_string(*entry, "content")
                                              : json_text(*entry);
    if (!content) continue;
    BOOST_OUTCOME_TRY(set_json(files.tokenizer ? files.tokenizer->path : "", role, id_of(*content)));
  }
  for (const std::string& role : roles_) {
    const json::value* id = json_member(files.config, role + "_token_id");
    const json::value* inner = json_member(files.config, "text_config");
    if ((!id || id->is_null()) && inner) id = json_member(*inner, role + "_token_id");
    BOOST_OUTCOME_TRY(set_json(files.folder / "config.json", role, id));
  }
  return ok();
}

void SpecialTokens::set(std::string_view role, std::uint64_t id, std::vector<std::string>& warnings) {
  if (tokens_ && id >= *tokens_) {
    warnings.push_back(
        fmt::format("the {} token has id {}, but there are only {} tokens; skipped", role, id, *tokens_));
    return;
  }
  for (const auto& [known, value] : ids_) {
    if (known == role) return;
  }
  ids_.emplace_back(role, id);
}

void SpecialTokens::replace(std::string_view role, std::uint64_t id) {
  for (auto& [known, value] : ids_) {
    if (known == role) {
      value = id;
      return;
    }
  }
  ids_.emplace_back(role, id);
}

void SpecialTokens::write(Metadata& out) const {
  for (const auto& [role, id] : ids_) {
    if (const RoleKey* key = key_of(role))
      out.set(std::string(key->id_key), metadata_unsigned(MetadataType::kUint32, id));
  }
  for (const auto& [role, added] : added_) {
    const RoleKey* key = key_of(role);
    if (key && !key->added_key.empty()) out.set(std::string(key->added_key), metadata_bool(added));
  }
  std::vector<MetadataValue> names;
  std::vector<std::string> seen;
  for (const auto& [name, text] : named_templates_) {
    if (!text.empty()) out.set("tokenizer.chat_template." + name, metadata_string(text));
    if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
    seen.push_back(name);
    names.push_back(metadata_string(name));
  }
  if (!names.empty()) out.set("tokenizer.chat_templates", metadata_array(MetadataType::kString, names));
  if (chat_template_ && !chat_template_->empty()) out.set("tokenizer.chat_template", metadata_string(*chat_template_));
  if (lowercase_) out.set("tokenizer.ggml.normalizer.lowercase", metadata_bool(*lowercase_));
  if (strip_accents_) out.set("tokenizer.ggml.normalizer.strip_accents", metadata_bool(*strip_accents_));
}

}  // namespace ggufmill::huggingface
