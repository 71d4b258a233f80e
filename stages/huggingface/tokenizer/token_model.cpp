#include "stages/huggingface/tokenizer/token_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>
#include <optional>
#include <queue>
#include <utility>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/tokenizer/unicode.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;
using Ids = std::vector<std::uint32_t>;

constexpr std::size_t kMaxWord = 1000;  // characters, for WordPiece, whose time is quadratic

// The ids of a merge's parts, and of the token that it makes.
struct MergeIds {
  std::uint32_t left = 0, right = 0, made = 0;
};

Result<MergeIds> ids_of_merge(const TokenizerJson& file, std::size_t rank, std::string_view prefix) {
  const std::string_view left = file.merges.left(rank), right = file.merges.right(rank);
  const auto left_id = file.vocabulary.find(left), right_id = file.vocabulary.find(right);
  const auto made =
      file.vocabulary.find(std::string(left) + std::string(right.substr(std::min(prefix.size(), right.size()))));
  if (left_id && right_id && made) return MergeIds{*left_id, *right_id, *made};
  return input_error(
      file.path,
      fmt::format("merge {}, {} and {}, is not in the vocabulary", rank, quoted_name(left), quoted_name(right)),
      kDamagedTokenizer);
}

std::string prefix_of(const TokenizerJson& file) {
  const auto prefix = json_string(file.document.at("model"), "continuing_subword_prefix");
  return std::string(prefix.value_or(""));
}

// Merges, looked up by the ids of the pair, with the rank and the resulting id.
class BytePairs {
 public:
  static Result<BytePairs> make(const TokenizerJson& file) {
    BytePairs made(file);
    const json::value& model = file.document.at("model");
    if (const json::value* dropout = json_member(model, "dropout");
        dropout && dropout->is_double() && dropout->get_double() > 0)
      return input_error(file.path, "the model merges at random (`dropout`), so its ids are not reproducible");
    for (std::size_t rank = 0; rank < file.merges.size(); ++rank) {
      BOOST_OUTCOME_TRY(const MergeIds ids, ids_of_merge(file, rank, made.prefix_));
      made.merges_.push_back({key(ids.left, ids.right), static_cast<std::uint32_t>(rank), ids.made});
    }
    std::sort(made.merges_.begin(), made.merges_.end(),
              [](const Merge& a, const Merge& b) { return std::pair(a.pair, a.rank) < std::pair(b.pair, b.rank); });
    return made;
  }

  Result<Ids> encode(std::string_view text) const {
    if (whole_words_) {
      if (const auto id = file_->vocabulary.find(text)) return Ids{*id};
    }
    BOOST_OUTCOME_TRY(Ids ids, single(text));
    return merged(ids);
  }

 private:
  struct Merge {
    std::uint64_t pair;
    std::uint32_t rank, id;
  };

  explicit BytePairs(const TokenizerJson& file) : file_(&file) {
    const json::value& model = file.document.at("model");
    const auto text = [&](std::string_view name) {
      const auto value = json_string(model, name);
      return std::string(value ? *value : "");
    };
    unknown_ = text("unk_token");
    prefix_ = prefix_of(file);
    suffix_ = text("end_of_word_suffix");
    fuse_unknown_ = json_flag(model, "fuse_unk");
    byte_fallback_ = json_flag(model, "byte_fallback");
    whole_words_ = json_flag(model, "ignore_merges");
  }

  static std::uint64_t key(std::uint32_t left, std::uint32_t right) { return std::uint64_t{left} << 32 | right; }

  // If a pair has two merges, the later one is used.
  const Merge* merge_of(std::uint32_t left, std::uint32_t right) const {
    const auto after = std::upper_bound(merges_.begin(), merges_.end(), key(left, right),
                                        [](std::uint64_t pair, const Merge& merge) { return pair < merge.pair; });
    if (after == merges_.begin() || std::prev(after)->pair != key(left, right)) return nullptr;
    return &*std::prev(after);
  }

  std::optional<Ids> bytes_of(std::string_view text) const {
    Ids ids;
    for (const char byte : text) {
      const auto id = file_->vocabulary.find(fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte)));
      if (!id) return std::nullopt;
      ids.push_back(*id);
    }
    return ids;
  }

  // Returns the ids of the characters. Unknown characters are dropped if there is no unknown token.
  Result<Ids> single(std::string_view text) const {
    Ids ids;
    bool pending = false;  // an unknown token that may absorb further unknown characters
    std::uint32_t unknown = 0;
    const std::vector<Character> all = characters(text);
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::string one(text.substr(all[i].begin, all[i].bytes));
      if (i != 0) one.insert(0, prefix_);
      if (i + 1 == all.size()) one += suffix_;
      if (const auto id = file_->vocabulary.find(one)) {
        if (std::exchange(pending, false)) ids.push_back(unknown);
        ids.push_back(*id);
        continue;
      }
      if (byte_fallback_) {
        if (const auto bytes = bytes_of(one)) {
          ids.insert(ids.end(), bytes->begin(), bytes->end());
          continue;
        }
      }
      if (unknown_.empty()) continue;
      const auto id = file_->vocabulary.find(unknown_);
      if (!id)
        return input_error(file_->path, fmt::format("unk_token {} is not in the vocabulary", quoted_name(unknown_)));
      if (pending && !fuse_unknown_) ids.push_back(unknown);
      unknown = *id;
      pending = true;
    }
    if (pending) ids.push_back(unknown);
    return ids;
  }

  // Merges the pair of lowest rank, the leftmost first, until no pair can be merged.
  Ids merged(const Ids& ids) const {
    struct Symbol {
      std::uint32_t id;
      std::size_t previous, next;
      bool alive = true;
    };
    struct Candidate {
      std::uint32_t rank;
      std::size_t at;
      std::uint32_t id;
      bool operator>(const Candidate& other) const { return std::pair(rank, at) > std::pair(other.rank, other.at); }
    };
    constexpr std::size_t kNone = SIZE_MAX;
    std::vector<Symbol> symbols;
    for (std::size_t i = 0; i < ids.size(); ++i)
      symbols.push_back({ids[i], i == 0 ? kNone : i - 1, i + 1 == ids.size() ? kNone : i + 1});
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
    const auto consider = [&](std::size_t at) {
      if (at == kNone || symbols[at].next == kNone) return;
      if (const Merge* merge = merge_of(symbols[at].id, symbols[symbols[at].next].id))
        queue.push({merge->rank, at, merge->id});
    };
    for (std::size_t i = 0; i < symbols.size(); ++i) consider(i);
    while (!queue.empty()) {
      const Candidate top = queue.top();
      queue.pop();
      Symbol& left = symbols[top.at];
      if (!left.alive || left.next == kNone) continue;
      Symbol& right = symbols[left.next];
      const Merge* merge = merge_of(left.id, right.id);
      if (!merge || merge->id != top.id) continue;  // the pair has changed since
      left.id = top.id;
      right.alive = false;
      left.next = right.next;
      if (left.next != kNone) symbols[left.next].previous = top.at;
      consider(left.previous);
      consider(top.at);
    }
    Ids out;
    for (const Symbol& symbol : symbols) {
      if (symbol.alive) out.push_back(symbol.id);
    }
    return out;
  }

  const TokenizerJson* file_;
  std::vector<Merge> merges_;
  std::string unknown_, prefix_, suffix_;
  bool fuse_unknown_, byte_fallback_, whole_words_;
};

Result<std::uint32_t> unknown_id(const TokenizerJson& file, std::string_view otherwise) {
  const auto text = json_string(file.document.at("model"), "unk_token");
  const std::string_view unknown = text ? *text : otherwise;
  if (const auto id = file.vocabulary.find(unknown)) return *id;
  return input_error(file.path, fmt::format("unk_token {} is not in the vocabulary", quoted_name(unknown)));
}

// Takes the longest matching token from the front repeatedly; if there is none, the whole word is unknown.
Result<Ids> word_pieces(const TokenizerJson& file, std::string_view word) {
  const json::value& model = file.document.at("model");
  const auto text = json_string(model, "continuing_subword_prefix");
  const std::string prefix(text ? *text : "##");
  const json::value* limit = json_member(model, "max_input_chars_per_word");
  const std::int64_t most = limit && limit->is_int64() ? limit->get_int64() : 100;
  const std::vector<Character> all = characters(word);
  if (all.size() > kMaxWord)
    return input_error(file.path, fmt::format("the check text has a word of {} characters", all.size()));
  Ids ids;
  std::size_t begin = 0;
  while (begin < all.size() && static_cast<std::int64_t>(all.size()) <= most) {
    std::size_t end = all.size();
    std::optional<std::uint32_t> id;
    for (; end > begin && !id; --end) {
      const std::size_t last = all[end - 1].begin + all[end - 1].bytes;
      const std::string_view part = word.substr(all[begin].begin, last - all[begin].begin);
      id = file.vocabulary.find(begin == 0 ? std::string(part) : prefix + std::string(part));
    }
    if (!id) break;
    ids.push_back(*id);
    begin = end + 1;
  }
  if (begin >= all.size()) return ids;
  BOOST_OUTCOME_TRY(const std::uint32_t unknown, unknown_id(file, "[UNK]"));
  return Ids{unknown};
}

}  // namespace

Status check_merges(const TokenizerJson& file) {
  const std::string prefix = prefix_of(file);
  for (std::size_t rank = 0; rank < file.merges.size(); ++rank) {
    BOOST_OUTCOME_TRY(ids_of_merge(file, rank, prefix));
  }
  return ok();
}

Result<TokenModel> make_token_model(const TokenizerJson& file) {
  if (file.model == "BPE") {
    BOOST_OUTCOME_TRY(BytePairs pairs, BytePairs::make(file));
    return TokenModel([pairs = std::move(pairs)](std::string_view piece) { return pairs.encode(piece); });
  }
  if (file.model == "WordPiece")
    return TokenModel([&file](std::string_view piece) { return word_pieces(file, piece); });
  if (file.model == "WordLevel") {
    return TokenModel([&file](std::string_view piece) -> Result<Ids> {
      if (const auto id = file.vocabulary.find(piece)) return Ids{*id};
      BOOST_OUTCOME_TRY(const std::uint32_t unknown, unknown_id(file, "<unk>"));
      return Ids{unknown};
    });
  }
  return input_error(
      file.path, fmt::format("model type {} is not one that llama.cpp's `pre` is based on (BPE, WordPiece, WordLevel)",
                             quoted_name(file.model)));
}

}  // namespace ggufmill::huggingface
