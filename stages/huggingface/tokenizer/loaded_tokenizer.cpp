// A tokenizer in the state after loading: which tokens are added, under which ids, and with which post-processor.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <charconv>
#include <iterator>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/tokenizer/encoder.h"
#include "stages/huggingface/tokenizer/tables.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr std::string_view kRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};

// Reads a token of tokenizer.json or tokenizer_config.json. `normalized` defaults to true unless the token is special.
AddedToken added_token(const json::value& from) {
  AddedToken token;
  if (const auto content = json_string(from, "content")) token.content = *content;
  token.special = json_flag(from, "special");
  token.normalized = json_flag(from, "normalized", !token.special);
  token.single_word = json_flag(from, "single_word");
  token.strip_left = json_flag(from, "lstrip");
  token.strip_right = json_flag(from, "rstrip");
  return token;
}

// Reads the token of a role, which may be written as a string or as an object.
std::optional<AddedToken> role_token(const json::value& from) {
  if (from.is_object()) return added_token(from);
  const auto text = json_text(from);
  if (!text) return std::nullopt;
  AddedToken token;
  token.content = *text;
  token.special = true;
  return token;
}

}  // namespace

// Warns of tokens of the model that have the id of another, of which a model can have only one.
static void warn_of_shared_ids(const TokenizerJson& file, std::vector<std::string>& warnings) {
  std::size_t others = 0;
  std::string first;
  for (std::size_t i = 0; i < file.vocabulary.size(); ++i) {
    const std::string_view text = file.vocabulary.text(i);
    const std::uint32_t id = file.vocabulary.id(i);
    const std::string_view written = file.vocabulary.text_of(id).value_or(text);
    if (written == text || file.vocabulary.find(text) != id) continue;
    if (!first.empty()) ++others;
    if (first.empty())
      first = fmt::format("tokens {} and {} have the same id, {}", quoted_name(text), quoted_name(written), id);
  }
  if (!first.empty())
    warnings.push_back(fmt::format("{}: {}{}; the last is written", file.path, first,
                                   others == 0 ? "" : fmt::format(", and likewise for {} more", others)));
}

Result<LoadedTokenizer> LoadedTokenizer::load(const TokenizerJson& file, const json::value& config) {
  const json::value* model = json_member(file.document, "model");
  if (!model || !model->is_object() || file.vocabulary.size() == 0)
    return input_error(file.path, "the tokenizer has no `model` with a `vocab`");
  LoadedTokenizer made(file);
  const auto name = json_string(config, "tokenizer_class");
  made.class_ = name ? *name : "PreTrainedTokenizerFast";
  if (made.class_.ends_with("Fast")) made.class_.resize(made.class_.size() - 4);
  made.clean_up_ = json_flag(config, "clean_up_tokenization_spaces");
  warn_of_shared_ids(file, made.warnings_);
  BOOST_OUTCOME_TRY(made.add_tokens(config));
  made.change_document(config);
  for (const std::vector<std::string_view>& row : table_rows(tokenizer_class_table())) {
    if (row[0] != made.class_ || row.back() != "template") continue;
    BOOST_OUTCOME_TRY(made.put_template(json_flag(config, "add_bos_token", true), json_flag(config, "add_eos_token")));
  }
  BOOST_OUTCOME_TRY(made.decoder_, make_decoder(file.path, json_member(made.document_, "decoder")));
  return made;
}

// Adds the tokens of tokenizer.json first, then added_tokens_decoder by id, then role tokens that are still missing.
//
// The library assigns the ids of added tokens itself. A token that the model has keeps the model's id. The others of
// tokenizer.json are numbered in their order from the model's number of tokens on, whatever ids it lists; the
// tokens that follow are numbered from the greatest id of an added token on.
Status LoadedTokenizer::add_tokens(const json::value& config) {
  std::vector<AddedToken> roles;  // each text once
  const auto play = [&](AddedToken token) {
    if (special_.insert(token.content).second) roles.push_back(std::move(token));
  };
  std::vector<std::string_view> defaults(9);
  for (const auto& row : table_rows(tokenizer_class_table())) {
    if (row[0] == class_) defaults = row;
  }
  for (std::size_t i = 0; i < std::size(kRoles); ++i) {
    std::optional<AddedToken> token;
    if (const json::value* given = json_member(config, kRoles[i]))
      token = role_token(*given);
    else if (!defaults[i + 1].empty())
      token = AddedToken{std::string(defaults[i + 1]), true};
    if (!token) continue;
    roles_[std::string(kRoles[i])] = *token;
    play(*token);
  }
  if (const json::array* further = json_array(config, "additional_special_tokens")) {
    for (const json::value& item : *further) {
      if (auto token = role_token(item)) play(std::move(*token));
    }
  }

  if (const json::array* listed = json_array(document_, "added_tokens")) {
    auto next = static_cast<std::uint32_t>(file_->vocabulary.size());
    for (std::size_t i = 0; i < listed->size(); ++i) {
      const json::value& item = (*listed)[i];
      const json::value* id = json_member(item, "id");
      if (!id || !id->is_int64() || id->get_int64() < 0 || id->get_int64() >= kMaxTokens ||
          !json_string(item, "content"))
        return input_error(
            file_->path,
            fmt::format("entry {} of added_tokens does not have content and an id from 0 to {}", i, kMaxTokens - 1));
      AddedToken token = added_token(item);
      if (token.content.empty()) continue;
      const auto known = find(token.content);
      BOOST_OUTCOME_TRY(add_token(std::move(token), known ? *known : next++, id->get_int64()));
    }
  }
  std::map<std::int64_t, AddedToken> decoder;
  if (const json::value* map = json_member(config, "added_tokens_decoder"); map && map->is_object()) {
    for (const auto& [key, value] : map->get_object()) {
      std::int64_t id = -1;
      std::from_chars(key.data(), key.data() + key.size(), id);
      decoder[id] = added_token(value);
    }
  }
  std::set<std::string, std::less<>> known;
  for (const auto& [id, token] : added_) known.insert(token.content);
  std::vector<AddedToken> late;
  for (auto& [id, token] : decoder) {
    known.insert(token.content);
    late.push_back(std::move(token));
  }
  for (AddedToken& token : roles) {
    if (!known.contains(token.content)) late.push_back(std::move(token));
  }
  for (AddedToken& token : late) {
    if (token.content.empty()) continue;
    token.special = token.special || special_.contains(token.content);
    const auto id = find(token.content);
    const auto model_size = static_cast<std::uint32_t>(file_->vocabulary.size());
    const std::uint32_t next = added_.empty() ? model_size : std::max(model_size, added_.rbegin()->first + 1);
    BOOST_OUTCOME_TRY(add_token(std::move(token), id ? *id : next, std::nullopt));
  }
  return check_renumbered();
}

Status LoadedTokenizer::add_token(AddedToken token, std::uint32_t id, std::optional<std::int64_t> listed) {
  if (id >= kMaxTokens) return input_error(file_->path, fmt::format("more than {} tokens", kMaxTokens));
  if (const auto other = file_->vocabulary.text_of(id); other && find(token.content) != id) {
    return input_error(file_->path,
                       fmt::format("the tokenizers library assigns id {} to added token {}, but token {} of the model "
                                   "has this id",
                                   id, quoted_name(token.content), quoted_name(*other)),
                       "in tokenizer.json, give the model's tokens the ids below their number");
  }
  if (listed && *listed != id) renumbered_.push_back({token.content, *listed, id});
  added_ids_[token.content] = id;
  added_[id] = std::move(token);
  return ok();
}

// The ids of bos_token and the other roles are written as tokenizer.json lists them, so they must be the assigned ones.
Status LoadedTokenizer::check_renumbered() {
  if (renumbered_.empty()) return ok();
  const auto describe = [](const Renumbered& token) {
    return fmt::format("added token {} has id {}, but the tokenizers library assigns {}", quoted_name(token.content),
                       token.listed, token.assigned);
  };
  for (const Renumbered& token : renumbered_) {
    for (const auto& [role, of_role] : roles_) {
      if (of_role.content != token.content) continue;
      return input_error(
          file_->path, fmt::format("{}, so the model would have another token as its {}", describe(token), role),
          "in tokenizer.json, number the added tokens consecutively, starting at the model's number of tokens");
    }
  }
  const std::size_t others = renumbered_.size() - 1;
  warnings_.push_back(fmt::format("{}: {}{}; the output has the ids that the library assigns", file_->path,
                                  describe(renumbered_.front()),
                                  others == 0 ? "" : fmt::format(", and likewise for {} more", others)));
  return ok();
}

void LoadedTokenizer::change_document(const json::value& config) {
  json::object& document = document_.as_object();
  const bool prefix = json_flag(config, "add_prefix_space");
  if (json::value* pre = document.if_contains("pre_tokenizer"); pre && json_member(*pre, "add_prefix_space"))
    pre->as_object()["add_prefix_space"] = prefix;
  json::value* normalizer = document.if_contains("normalizer");
  const auto type = normalizer ? json_string(*normalizer, "type") : std::nullopt;
  bool rewrites = false;
  for (const auto& row : table_rows(tokenizer_class_table()))
    rewrites |= row[0] == class_ && row.back() == "normalizer";
  if (!rewrites || !type || *type != "BertNormalizer") return;
  json::object& bert = normalizer->as_object();
  bert["lowercase"] = json_flag(config, "do_lower_case", true);
  const json::value* accents = json_member(config, "strip_accents");
  bert["strip_accents"] = accents ? *accents : json::value();
  bert["handle_chinese_chars"] = json_flag(config, "tokenize_chinese_chars", true);
}

Status LoadedTokenizer::put_template(bool bos, bool eos) {
  json::array single;
  json::object tokens;
  const auto put = [&](std::string_view role) -> Status {
    const auto token = roles_.find(role);
    const auto id = token == roles_.end() ? std::nullopt : find(token->second.content);
    if (!id) return input_error(file_->path, fmt::format("add_{} is set, but there is no {}", role, role));
    const std::string& text = token->second.content;
    single.push_back(json::object{{"SpecialToken", json::object{{"id", text}, {"type_id", 0}}}});
    tokens[text] = json::object{{"id", text}, {"ids", json::array{std::int64_t{*id}}}};
    return ok();
  };
  if (bos) {
    BOOST_OUTCOME_TRY(put("bos_token"));
  }
  single.push_back(json::object{{"Sequence", json::object{{"id", "A"}, {"type_id", 0}}}});
  if (eos) {
    BOOST_OUTCOME_TRY(put("eos_token"));
  }
  document_.as_object()["post_processor"] = json::object{
      {"type", "TemplateProcessing"}, {"single", std::move(single)}, {"special_tokens", std::move(tokens)}};
  return ok();
}

const std::uint32_t* LoadedTokenizer::added_id(std::string_view text) const {
  const auto found = added_ids_.find(text);
  return found == added_ids_.end() ? nullptr : &found->second;
}

std::optional<std::string_view> LoadedTokenizer::text_of(std::uint32_t id) const {
  const auto found = added_.find(id);
  return found == added_.end() ? file_->vocabulary.text_of(id) : found->second.content;
}

std::optional<std::uint32_t> LoadedTokenizer::find(std::string_view text) const {
  if (const std::uint32_t* id = added_id(text)) return *id;
  return file_->vocabulary.find(text);
}

std::uint32_t LoadedTokenizer::id_end() const {
  return std::max(file_->vocabulary.id_end(), added_.empty() ? 0 : added_.rbegin()->first + 1);
}

std::size_t LoadedTokenizer::size() const {
  std::size_t size = file_->vocabulary.size();
  for (const auto& [text, id] : added_ids_) size += file_->vocabulary.find(text) ? 0 : 1;
  return size;
}

Result<std::string> LoadedTokenizer::decoded(std::string_view added) const {
  std::vector<std::string> tokens{std::string(added)};
  BOOST_OUTCOME_TRY(decoder_(tokens));
  std::string out;
  for (const std::string& token : tokens) out += token;
  if (!clean_up_) return out;
  constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kPairs) replace_all(out, from, to);
  return out;
}

}  // namespace ggufmill::huggingface
