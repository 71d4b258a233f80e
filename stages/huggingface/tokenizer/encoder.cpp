#include "stages/huggingface/tokenizer/encoder.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <set>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/tokenizer/tables.h"
#include "stages/huggingface/tokenizer/token_model.h"
#include "stages/huggingface/tokenizer/unicode.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;
using Ids = std::vector<std::uint32_t>;

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

std::vector<std::string> pre_tokenizer_names() {
  std::set<std::string> names;
  for (const auto& row : table_rows(pre_tokenizer_table())) names.emplace(row[1]);
  return {names.begin(), names.end()};
}

}  // namespace ggufmill::huggingface
