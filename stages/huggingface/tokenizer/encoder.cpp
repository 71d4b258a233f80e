#include "stages/huggingface/tokenizer/encoder.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <charconv>
#include <functional>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/tokenizer/tables.h"
#include "stages/huggingface/tokenizer/token_model.h"
#include "stages/huggingface/tokenizer/unicode.h"

namespace ggufmill {
namespace {

namespace json = boost::json;
using Ids = std::vector<std::uint32_t>;

constexpr std::string_view kRoles[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};

// The text whose ids the reference hashes: white space, emoji, digits, scripts, punctuation and contractions. The
// pre-tokenizers in use differ in how they treat them.
constexpr std::string_view kCheckText =
    "\n \n\n \n\n\n \t \t\t \t\n  \n   \n    \n     \n"
    "\U0001F680 (normal) \U0001F636\u200D\U0001F32B\uFE0F (multiple emojis concatenated) \u2705 \U0001F999\U0001F999 "
    "3 33 333 3333 33333 333333 3333333 33333333 3.3 3..3 3...3 "
    "\u1780\u17B6\u1793\u17CB\u178F\u17C2\u1796\u17B7\u179F\u17C1\u179F\u17A2\u17B6\u1785\U0001F601 ?"
    "\u6211\u60F3\u5728apple\u5DE5\u4F5C1314151\u5929\uFF5E ------======= "
    "\u043D\u0435\u0449\u043E \u043D\u0430 \u0411\u044A\u043B\u0433\u0430\u0440\u0441\u043A\u0438 "
    "''''''```````\"\"\"\"......!!!!!!?????? I've been 'told he's there, 'RE you sure? 'M not sure I'll make it, "
    "'D you like some tea? We'Ve a'lL";

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

// ---- finding added tokens in the text ----

class TokenFinder {
 public:
  void add(const std::string& text, std::uint32_t id, const AddedToken& token) {
    if (text.empty()) return;
    ids_[text] = {id, &token};
    lengths_.insert(text.size());
  }

  // Splits the pieces that are not tokens yet at each added token: the leftmost match first, the longest if several
  // start at the same position.
  void split(std::vector<Piece>& pieces) const {
    if (ids_.empty()) return;
    std::vector<Piece> out;
    for (Piece& piece : pieces) {
      if (piece.id)
        out.push_back(std::move(piece));
      else
        split_one(piece, out);
    }
    pieces = std::move(out);
  }

 private:
  struct Found {
    std::uint32_t id;
    const AddedToken* token;
  };

  static bool is_word(char32_t c) { return is_numeric(c) || is_letter(c) || is_combining(c) || c == '_'; }

  // Return the character before or after position `at`; nullopt at the start or end of the text.
  static std::optional<Character> before(std::string_view text, std::size_t at) {
    std::size_t begin = at;
    while (begin > 0 && (static_cast<unsigned char>(text[--begin]) & 0xC0) == 0x80) {
    }
    if (begin == at) return std::nullopt;
    return Character{characters(text.substr(begin, at - begin)).front().code, begin, at - begin};
  }
  static std::optional<Character> after(std::string_view text, std::size_t at) {
    const std::size_t bytes = utf8_sequence(text.substr(at));
    if (bytes == 0) return std::nullopt;
    return Character{characters(text.substr(at, bytes)).front().code, at, bytes};
  }

  static bool alone(std::string_view text, std::size_t begin, std::size_t end) {
    const auto left = before(text, begin), right = after(text, end);
    return (!left || !is_word(left->code)) && (!right || !is_word(right->code));
  }

  void split_one(const Piece& piece, std::vector<Piece>& out) const {
    const std::string_view text = piece.text;
    std::size_t done = 0;
    const auto put = [&](std::size_t begin, std::size_t end, std::optional<std::uint32_t> id) {
      if (begin < end) out.push_back({std::string(text.substr(begin, end - begin)), piece.first && begin == 0, id});
    };
    for (std::size_t at = 0; at < text.size();) {
      const auto [bytes, found] = longest_at(text, at);
      if (!found) {
        ++at;
        continue;
      }
      std::size_t begin = at, end = at + bytes;
      at = end;
      if (found->token->single_word && !alone(text, begin, end)) continue;
      if (found->token->strip_left) {
        for (auto left = before(text, begin); left && is_space(left->code); left = before(text, begin))
          begin = left->begin;
      }
      if (found->token->strip_right) {
        for (auto right = after(text, end); right && is_space(right->code); right = after(text, end))
          end += right->bytes;
      }
      begin = std::max(begin, done);
      put(done, begin, std::nullopt);
      put(begin, end, found->id);
      done = std::max(done, end);
    }
    put(done, text.size(), std::nullopt);
  }

  std::pair<std::size_t, const Found*> longest_at(std::string_view text, std::size_t at) const {
    for (auto length = lengths_.rbegin(); length != lengths_.rend(); ++length) {
      if (at + *length > text.size()) continue;
      const auto found = ids_.find(text.substr(at, *length));
      if (found != ids_.end()) return {*length, &found->second};
    }
    return {0, nullptr};
  }

  std::map<std::string, Found, std::less<>> ids_;
  std::set<std::size_t> lengths_;
};

// ---- the post-processor ----

Status post_process(const std::string& path, const json::value& step, Ids& ids) {
  const auto name = json_string(step, "type");
  const std::string_view type = name ? *name : "";
  if (type == "ByteLevel") return ok();
  if (type == "Sequence") {
    if (const json::array* processors = json_array(step, "processors")) {
      for (const json::value& processor : *processors) {
        BOOST_OUTCOME_TRY(post_process(path, processor, ids));
      }
      return ok();
    }
  }
  const auto id_of = [](const json::value* id) -> std::optional<std::uint32_t> {
    if (!id || !id->is_int64() || id->get_int64() < 0 || id->get_int64() >= kMaxTokens) return std::nullopt;
    return static_cast<std::uint32_t>(id->get_int64());
  };
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    const json::array *cls = json_array(step, "cls"), *sep = json_array(step, "sep");
    const auto first = cls && cls->size() == 2 ? id_of(&(*cls)[1]) : std::nullopt;
    const auto last = sep && sep->size() == 2 ? id_of(&(*sep)[1]) : std::nullopt;
    if (first && last) {
      ids.insert(ids.begin(), *first);
      ids.push_back(*last);
      return ok();
    }
  }
  const json::array* single = json_array(step, "single");
  if (type == "TemplateProcessing" && single) {
    Ids out;
    const json::value* tokens = json_member(step, "special_tokens");
    for (const json::value& item : *single) {
      if (json_member(item, "Sequence")) {
        out.insert(out.end(), ids.begin(), ids.end());
        if (out.size() > kMaxText) return input_error(path, "the post-processor repeats the text too many times");
        continue;
      }
      const json::value* special = json_member(item, "SpecialToken");
      const auto text = special ? json_string(*special, "id") : std::nullopt;
      const json::value* entry = text && tokens ? json_member(*tokens, *text) : nullptr;
      const json::array* its_ids = entry ? json_array(*entry, "ids") : nullptr;
      if (!its_ids)
        return input_error(path, "the post-processor has a token in `single` that is missing in `special_tokens`");
      for (const json::value& id : *its_ids) {
        const auto number = id_of(&id);
        if (!number) return input_error(path, "the post-processor has an invalid id in `special_tokens`");
        out.push_back(*number);
      }
    }
    ids = std::move(out);
    return ok();
  }
  return input_error(path, fmt::format("unknown post-processor type {}", quoted_name(type)));
}

}  // namespace

// ---- loading ----

Result<LoadedTokenizer> LoadedTokenizer::load(const TokenizerJson& file, const json::value& config) {
  const json::value* model = json_member(file.document, "model");
  if (!model || !model->is_object() || file.vocabulary.size() == 0)
    return input_error(file.path, "the tokenizer has no `model` with a `vocab`");
  LoadedTokenizer made(file);
  const auto name = json_string(config, "tokenizer_class");
  made.class_ = name ? *name : "PreTrainedTokenizerFast";
  if (made.class_.ends_with("Fast")) made.class_.resize(made.class_.size() - 4);
  made.clean_up_ = json_flag(config, "clean_up_tokenization_spaces");
  BOOST_OUTCOME_TRY(made.add_tokens(config));
  BOOST_OUTCOME_TRY(made.check_ids());
  made.change_document(config);
  for (const std::vector<std::string_view>& row : table_rows(tokenizer_class_table())) {
    if (row[0] != made.class_ || row.back() != "template") continue;
    BOOST_OUTCOME_TRY(made.put_template(json_flag(config, "add_bos_token", true), json_flag(config, "add_eos_token")));
  }
  BOOST_OUTCOME_TRY(made.decoder_, make_decoder(file.path, json_member(made.document_, "decoder")));
  return made;
}

// Adds the tokens of tokenizer.json first, then added_tokens_decoder by id, then role tokens that are still missing.
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

  std::uint32_t end = file_->vocabulary.id_end();
  if (const json::array* listed = json_array(document_, "added_tokens")) {
    for (const json::value& item : *listed) {
      const json::value* id = json_member(item, "id");
      if (!id || !id->is_int64() || id->get_int64() < 0 || id->get_int64() >= kMaxTokens ||
          !json_string(item, "content"))
        return input_error(file_->path,
                           fmt::format("entry {} of added_tokens does not have content and an id from 0 to {}",
                                       added_.size(), kMaxTokens - 1));
      const auto number = static_cast<std::uint32_t>(id->get_int64());
      AddedToken token = added_token(item);
      added_ids_[token.content] = number;
      added_[number] = std::move(token);
      end = std::max(end, number + 1);
    }
  }
  std::map<long, AddedToken> decoder;
  if (const json::value* map = json_member(config, "added_tokens_decoder"); map && map->is_object()) {
    for (const auto& [key, value] : map->get_object()) {
      long id = -1;
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
    token.special = token.special || special_.contains(token.content);
    auto id = find(token.content);
    if (!id) {
      if (end == kMaxTokens) return input_error(file_->path, fmt::format("more than {} tokens", kMaxTokens));
      id = end++;
    }
    added_ids_[token.content] = *id;
    added_[*id] = std::move(token);
  }
  return ok();
}

// The library assigns the ids of added tokens itself: the model's id if the model has the text, otherwise the next
// free id.
Status LoadedTokenizer::check_ids() const {
  const auto model_size = static_cast<std::uint32_t>(file_->vocabulary.size());
  std::uint32_t next = model_size;
  for (const auto& [id, token] : added_) {
    const auto own = file_->vocabulary.find(token.content);
    const std::uint32_t given = own ? *own : next++;
    if (token.content.empty() || given != id || added_ids_.at(token.content) != id) {
      return input_error(file_->path,
                         fmt::format("added token {} has id {}, but the tokenizers library assigns {}",
                                     quoted_name(token.content), id, given),
                         "added tokens must follow the model's vocabulary without a gap");
    }
  }
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

Result<Ids> LoadedTokenizer::encode(std::string_view text) const {
  BOOST_OUTCOME_TRY(const Normalizer normalize, make_normalizer(file_->path, json_member(document_, "normalizer")));
  BOOST_OUTCOME_TRY(const PreTokenizer pre_tokenize,
                    make_pre_tokenizer(file_->path, json_member(document_, "pre_tokenizer")));
  BOOST_OUTCOME_TRY(const TokenModel model, make_token_model(*file_));
  TokenFinder plain, normalized;
  for (const auto& [id, token] : added_) {
    std::string content = token.content;
    if (token.normalized) {
      BOOST_OUTCOME_TRY(normalize(content));
    }
    (token.normalized ? normalized : plain).add(content, id, token);
  }

  std::vector<Piece> pieces{{std::string(text), true, {}}};
  plain.split(pieces);
  for (Piece& piece : pieces) {
    if (!piece.id) {
      BOOST_OUTCOME_TRY(normalize(piece.text));
    }
  }
  normalized.split(pieces);
  BOOST_OUTCOME_TRY(pre_tokenize(pieces));
  Ids ids;
  for (const Piece& piece : pieces) {
    if (piece.id) {
      ids.push_back(*piece.id);
    } else if (!piece.text.empty()) {
      BOOST_OUTCOME_TRY(const Ids more, model(piece.text));
      ids.insert(ids.end(), more.begin(), more.end());
    }
  }
  if (const json::value* step = json_member(document_, "post_processor"); step && !step->is_null()) {
    BOOST_OUTCOME_TRY(post_process(file_->path, *step, ids));
  }
  return ids;
}

Result<std::string> pre_tokenizer_hash(const LoadedTokenizer& tokenizer) {
  BOOST_OUTCOME_TRY(const Ids ids, tokenizer.encode(kCheckText));
  const std::string text = fmt::format("[{}]", fmt::join(ids, ", "));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned bytes = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &bytes, EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
  return fmt::format("{:02x}", fmt::join(digest, digest + bytes, ""));
}

std::optional<std::string_view> pre_tokenizer_named(std::string_view hash) {
  std::optional<std::string_view> name;
  for (const auto& row : table_rows(pre_tokenizer_table())) {
    if (row[0] == hash) name = row[1];
  }
  return name;
}

}  // namespace ggufmill
