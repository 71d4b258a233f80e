#include "stages/huggingface/tokenizer/tokenizer_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;
using EventKind = JsonEvent::Kind;

// vocab is {"text": id, ...}, or for a Unigram model [["text", score], ...]; merges are ["a b", ...] or [["a", "b"],
// ...].
class Tables : public JsonSink {
 public:
  explicit Tables(TokenizerJson& out) : out_(out) {}

  bool wants(std::string_view outer, std::string_view inner) override {
    if (outer != "model" || (inner != "vocab" && inner != "merges")) return false;
    merges_ = inner == "merges";
    out_.has_merges = out_.has_merges || merges_;
    if (merges_)
      out_.merges = {};
    else
      out_.vocabulary = {}, out_.scores.clear();
    depth_ = 0;
    return true;
  }

  std::string take(const JsonEvent& event) override {
    if (event.kind == EventKind::kObjectEnd || event.kind == EventKind::kArrayEnd) return end();
    if (event.kind == EventKind::kObjectBegin || event.kind == EventKind::kArrayBegin) return begin(event.kind);
    return merges_ ? take_merge(event) : list_ ? take_scored(event) : take_token(event);
  }

 private:
  std::string begin(EventKind kind) {
    ++depth_;
    parts_ = 0;
    if (depth_ == 1) list_ = kind == EventKind::kArrayBegin;
    if (depth_ > 2 || (depth_ == 2 && !(list_ && kind == EventKind::kArrayBegin)) || (merges_ && !list_))
      return malformed();
    return {};
  }

  std::string end() {
    if (--depth_ == 0) return {};
    return parts_ == 2 ? std::string() : malformed();
  }

  std::string malformed() const {
    return merges_ ? fmt::format("merge {} of the model is not a pair of tokens", out_.merges.size())
                   : fmt::format("entry {} of the model's vocabulary is not a token", out_.vocabulary.size());
  }

  std::string take_token(const JsonEvent& event) {
    if (event.kind == EventKind::kKey) {
      first_ = event.text;
      return {};
    }
    std::uint32_t id = 0;
    const char* end = event.text.data() + event.text.size();
    if (event.kind != EventKind::kNumber ||
        std::from_chars(event.text.data(), end, id) != std::from_chars_result{end, {}} || id >= kMaxTokens) {
      return fmt::format("token {} has no id from 0 to {}", quoted_name(first_), kMaxTokens - 1);
    }
    out_.vocabulary.set(first_, id);
    return {};
  }

  std::string take_scored(const JsonEvent& event) {
    if (depth_ != 2 || event.kind != (parts_ == 0 ? EventKind::kString : EventKind::kNumber)) return malformed();
    if (parts_++ == 0) {
      first_ = event.text;
      return {};
    }
    double score = 0;
    std::from_chars(event.text.data(), event.text.data() + event.text.size(), score);
    if (parts_ > 2 || out_.vocabulary.size() == kMaxTokens) return malformed();
    out_.vocabulary.add(first_, static_cast<std::uint32_t>(out_.vocabulary.size()));
    out_.scores.push_back(score);
    return {};
  }

  std::string take_merge(const JsonEvent& event) {
    if (event.kind != EventKind::kString) return malformed();
    if (out_.merges.size() == kMaxMerges) return fmt::format("more than {} merges", kMaxMerges);
    if (depth_ == 2) {
      if (parts_++ == 0)
        first_ = event.text;
      else
        out_.merges.add(first_, event.text);
      return parts_ <= 2 ? std::string() : malformed();
    }
    const std::size_t space = event.text.find(' ');
    if (space == event.text.npos || event.text.find(' ', space + 1) != event.text.npos) return malformed();
    out_.merges.add(event.text.substr(0, space), event.text.substr(space + 1));
    return {};
  }

  TokenizerJson& out_;
  bool merges_ = false;  // otherwise the vocabulary
  bool list_ = false;    // an array; otherwise an object
  std::size_t depth_ = 0;
  std::size_t parts_ = 0;  // elements seen of the pair at depth 2
  std::string first_;
};

// Returns true if a step of tokenizer.json has this type, or is a sequence with such a step.
bool has_step(const json::value& step, std::string_view type) {  // NOLINT(misc-no-recursion): JSON has a limit of depth
  if (json_string(step, "type") == type) return true;
  for (const char* list : {"pretokenizers", "normalizers", "decoders"})
    if (const json::array* steps = json_array(step, list))
      if (std::ranges::any_of(*steps, [&](const json::value& each) { return has_step(each, type); })) return true;
  return false;
}

Result<TokenizerJson> finish(TokenizerJson out, boost::json::value document) {
  out.document = std::move(document);
  if (!out.document.is_object()) return input_error(out.path, "not an object");
  const boost::json::value* model = json_member(out.document, "model");
  const auto type = model ? json_string(*model, "type") : std::nullopt;
  out.model = type ? *type : out.merges.size() > 0 ? "BPE" : "";
  return out;
}

}  // namespace

std::size_t TokenTable::slot_of(std::string_view text) const {
  std::size_t slot = std::hash<std::string_view>{}(text) & (slots_.size() - 1);
  while (slots_[slot] != 0 && this->text(slots_[slot] - 1) != text) slot = (slot + 1) & (slots_.size() - 1);
  return slot;
}

void TokenTable::grow() {
  if ((entries_.size() + 1) * 2 <= slots_.size()) return;
  slots_.assign(std::max<std::size_t>(64, slots_.size() * 2), 0);
  for (std::size_t i = 0; i < entries_.size(); ++i) slots_[slot_of(text(i))] = static_cast<std::uint32_t>(i + 1);
}

void TokenTable::note_id(std::uint32_t id, std::size_t index) {
  if (id >= by_id_.size()) by_id_.resize(id + 1, 0);
  by_id_[id] = static_cast<std::uint32_t>(index + 1);
}

void TokenTable::add(std::string_view text, std::uint32_t id) {
  grow();
  const std::size_t slot = slot_of(text);
  entries_.push_back({texts_.size(), static_cast<std::uint32_t>(text.size()), id});
  texts_ += text;
  slots_[slot] = static_cast<std::uint32_t>(entries_.size());
  note_id(id, entries_.size() - 1);
}

void TokenTable::set(std::string_view text, std::uint32_t id) {
  grow();
  const std::uint32_t found = slots_[slot_of(text)];
  if (found == 0) return add(text, id);
  Entry& entry = entries_[found - 1];
  if (by_id_[entry.id] == found) by_id_[entry.id] = 0;
  entry.id = id;
  note_id(id, found - 1);
  while (by_id_.back() == 0) by_id_.pop_back();
}

std::optional<std::uint32_t> TokenTable::find(std::string_view text) const {
  if (slots_.empty()) return std::nullopt;
  const std::uint32_t found = slots_[slot_of(text)];
  if (found == 0) return std::nullopt;
  return entries_[found - 1].id;
}

std::optional<std::string_view> TokenTable::text_of(std::uint32_t id) const {
  if (id >= by_id_.size() || by_id_[id] == 0) return std::nullopt;
  return text(by_id_[id] - 1);
}

std::string_view TokenTable::text(std::size_t index) const {
  const Entry& entry = entries_[index];
  return std::string_view(texts_).substr(entry.start, entry.bytes);
}

void MergeList::add(std::string_view left, std::string_view right) {
  entries_.push_back(
      {texts_.size(), static_cast<std::uint32_t>(left.size()), static_cast<std::uint32_t>(right.size())});
  texts_ += left;
  texts_ += right;
}

std::string_view MergeList::left(std::size_t index) const {
  return std::string_view(texts_).substr(entries_[index].start, entries_[index].left);
}

std::string_view MergeList::right(std::size_t index) const {
  return std::string_view(texts_).substr(entries_[index].start + entries_[index].left, entries_[index].right);
}

std::string_view vocabulary_kind(const TokenizerJson& file) {
  if (file.model != "BPE") return file.model;
  for (const char* name : {"pre_tokenizer", "decoder", "normalizer"})
    if (const json::value* step = json_member(file.document, name); step && has_step(*step, "ByteLevel"))
      return kByteLevelBpe;
  const json::value& model = file.document.at("model");
  if (json_flag(model, "byte_fallback")) return kSentencePieceBpe;
  for (std::size_t i = 0; i < file.vocabulary.size(); ++i)
    if (file.vocabulary.text(i).starts_with("\u2581")) return kSentencePieceBpe;
  const auto has_text = [&](std::string_view name) { return !json_string(model, name).value_or("").empty(); };
  const json::value* const pre = json_member(file.document, "pre_tokenizer");
  // Without any steps, the tokens alone do not tell bytes from characters.
  const bool is_of_characters = (pre && pre->is_object()) || has_text("unk_token") || has_text("end_of_word_suffix") ||
                                has_text("continuing_subword_prefix");
  return is_of_characters ? file.model : kByteLevelBpe;
}

Result<TokenizerJson> read_tokenizer_json(const std::string& path) {
  TokenizerJson out;
  out.path = path;
  Tables tables(out);
  BOOST_OUTCOME_TRY(auto document, read_checkpoint_json(path, kMaxTokenizerBytes, &tables));
  return finish(std::move(out), std::move(document));
}

Result<TokenizerJson> parse_tokenizer_json(const std::string& path, std::string_view text) {
  TokenizerJson out;
  out.path = path;
  Tables tables(out);
  BOOST_OUTCOME_TRY(auto document, parse_checkpoint_json(path, text, &tables));
  return finish(std::move(out), std::move(document));
}

}  // namespace ggufmill::huggingface
