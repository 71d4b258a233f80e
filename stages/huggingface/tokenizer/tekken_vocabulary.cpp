// Reads tekken.json, the tokenizer file of Mistral's own tools: tokens as bytes with ranks, preceded by special
// tokens. Facts of the format: mistral-common, tekken.py (Apache 2.0).

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "pipeline/core/text.h"
#include "pipeline/core/written_json.h"
#include "pipeline/io/json_file.h"
#include "stages/huggingface/tokenizer/text_steps.h"
#include "stages/huggingface/tokenizer/vocabulary.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;
using EventKind = JsonEvent::Kind;

constexpr std::size_t kMaxTokenBytes = 1024;  // time is quadratic in a token's bytes

// Tokens that files up to version 7 omit.
constexpr std::string_view kOldSpecialTokens[] = {"<unk>",
                                                  "<s>",
                                                  "</s>",
                                                  "[INST]",
                                                  "[/INST]",
                                                  "[AVAILABLE_TOOLS]",
                                                  "[/AVAILABLE_TOOLS]",
                                                  "[TOOL_RESULTS]",
                                                  "[/TOOL_RESULTS]",
                                                  "[TOOL_CALLS]",
                                                  "[IMG]",
                                                  "<pad>",
                                                  "[IMG_BREAK]",
                                                  "[IMG_END]",
                                                  "[PREFIX]",
                                                  "[MIDDLE]",
                                                  "[SUFFIX]",
                                                  "[SYSTEM_PROMPT]",
                                                  "[/SYSTEM_PROMPT]",
                                                  "[TOOL_CONTENT]"};

// Reads `vocab`: a list of {"rank": 17, "token_bytes": "...", "token_str": ...}; the first 256 entries are the bytes.
class RankedTokens : public JsonSink {
 public:
  bool wants(std::string_view outer, std::string_view inner) override { return outer == "vocab" && inner.empty(); }

  std::string take(const JsonEvent& event) override {
    switch (event.kind) {
      case EventKind::kArrayBegin:
        tokens_ = {};
        return ++depth_ == 1 ? "" : malformed();
      case EventKind::kArrayEnd:
        --depth_;
        return {};
      case EventKind::kObjectBegin:
        rank_.clear();
        bytes_.reset();
        return ++depth_ == 2 ? "" : malformed();
      case EventKind::kObjectEnd:
        --depth_;
        return add();
      case EventKind::kKey:
        key_ = event.text;
        return {};
      default:
        if (depth_ != 2) return malformed();
        if (key_ == "rank" && event.kind == EventKind::kNumber) rank_ = event.text;
        if (key_ == "token_bytes" && event.kind == EventKind::kString) bytes_ = from_base64(event.text);
        return {};
    }
  }

  TokenTable release() { return std::move(tokens_); }

 private:
  std::string malformed() const { return fmt::format("entry {} of vocab is not a token", tokens_.size()); }

  std::string add() {
    const std::size_t number = tokens_.size();
    if (!bytes_ || rank_ != std::to_string(number)) return malformed();
    if (number == kMaxTokens) return fmt::format("more than {} tokens", kMaxTokens);
    if (bytes_->size() > kMaxTokenBytes)
      return fmt::format("token {} has {} bytes; the limit is {}", number, bytes_->size(), kMaxTokenBytes);
    if (number < 256 && *bytes_ != std::string(1, static_cast<char>(number)))
      return fmt::format("token {} is not the byte {}", number, number);
    if (tokens_.find(*bytes_)) return fmt::format("token {} appears twice", number);
    tokens_.add(*bytes_, static_cast<std::uint32_t>(number));
    return {};
  }

  TokenTable tokens_;
  std::size_t depth_ = 0;
  std::string key_, rank_;
  std::optional<std::string> bytes_;
};

class TekkenReader {
 public:
  explicit TekkenReader(std::string path) : path_(std::move(path)) {}

  Result<TekkenVocabulary> read() {
    RankedTokens ranked;
    BOOST_OUTCOME_TRY(document_, read_checkpoint_json(path_, kMaxTokenizerBytes, &ranked));
    tokens_ = ranked.release();
    BOOST_OUTCOME_TRY(read_config());
    BOOST_OUTCOME_TRY(add_special_tokens());
    for (std::uint32_t rank = 0; rank < ordinary_; ++rank)
      out_.vocabulary.tokens.push_back({byte_level(*tokens_.text_of(rank))});
    BOOST_OUTCOME_TRY(add_merges());
    out_.vocabulary.model = kBytePairVocabulary;
    out_.vocabulary.pre = "tekken";
    return std::move(out_);
  }

 private:
  Result<std::uint64_t> number(const json::value& config, std::string_view name) const {
    const json::value* value = json_member(config, name);
    if (value && value->is_int64() && value->get_int64() >= 0 && value->get_int64() <= kMaxTokens)
      return static_cast<std::uint64_t>(value->get_int64());
    return input_error(path_, fmt::format("config.{} is {}, not a number up to {}", name,
                                          value ? written_json(*value) : "missing", kMaxTokens));
  }

  Status read_config() {
    const json::value* config = json_member(document_, "config");
    if (!config) return input_error(path_, "has no config", "check that this is a Mistral tokenizer file");
    const auto version = json_string(*config, "version");
    if (!version || version->size() < 2 || version->front() != 'v')
      return input_error(path_, "config.version is not a version such as \"v3\"");
    out_.version = *version;
    BOOST_OUTCOME_TRY(const std::uint64_t all, number(*config, "default_vocab_size"));
    BOOST_OUTCOME_TRY(special_, number(*config, "default_num_special_tokens"));
    if (special_ > all || all - special_ > tokens_.size())
      return input_error(path_,
                         fmt::format("the vocabulary should have {} tokens, {} of them special, but has {} others", all,
                                     special_, tokens_.size()));
    ordinary_ = static_cast<std::uint32_t>(all - special_);
    return ok();
  }

  // Adds the special tokens in the order of the file, then fills up to the required number.
  Status add_special_tokens() {
    std::map<std::string, std::uint64_t, std::less<>> ranks;
    const auto add = [&](std::string_view text, std::uint64_t rank) -> Status {
      out_.vocabulary.tokens.push_back({std::string(text), 0, PieceType::kControl});
      if (ranks.size() == special_)
        return input_error(path_,
                           fmt::format("more special tokens than config.default_num_special_tokens, {}", special_));
      if (!ranks.emplace(text, rank).second)
        return input_error(path_, fmt::format("the special token {} appears twice", quoted_name(text)));
      return ok();
    };
    if (const json::array* listed = json_array(document_, "special_tokens")) {
      for (const json::value& item : *listed) {
        const auto text = json_string(item, "token_str");
        if (!text) return input_error(path_, fmt::format("special token {} has no token_str", ranks.size()));
        BOOST_OUTCOME_TRY(const std::uint64_t rank, number(item, "rank"));
        BOOST_OUTCOME_TRY(add(*text, rank));
      }
    } else if (out_.version == "v1" || out_.version == "v2" || out_.version == "v3" || out_.version == "v7") {
      for (const std::string_view text : kOldSpecialTokens) {
        BOOST_OUTCOME_TRY(add(text, ranks.size()));
      }
    } else {
      return input_error(path_, fmt::format("has no special_tokens, which version {} requires", out_.version));
    }
    while (ranks.size() < special_) {
      BOOST_OUTCOME_TRY(add(fmt::format("<SPECIAL_{}>", ranks.size()), ranks.size()));
    }
    for (const auto& [text, id] : {std::pair("<s>", &out_.bos), std::pair("</s>", &out_.eos),
                                   std::pair("<unk>", &out_.unknown), std::pair("<pad>", &out_.padding)}) {
      const auto found = ranks.find(std::string_view(text));
      if (found == ranks.end()) return input_error(path_, fmt::format("there is no special token {}", text));
      *id = found->second;
    }
    return ok();
  }

  // Adds every way to make a token from two others, those of lower ranks first.
  Status add_merges() {
    MergeList merges;
    std::vector<std::tuple<std::uint32_t, std::uint32_t, std::size_t>> ways;
    for (std::uint32_t rank = 256; rank < ordinary_; ++rank) {
      const std::string_view token = *tokens_.text_of(rank);
      ways.clear();
      for (std::size_t cut = 1; cut < token.size(); ++cut) {
        const auto left = tokens_.find(token.substr(0, cut)), right = tokens_.find(token.substr(cut));
        if (left && right && *left < ordinary_ && *right < ordinary_) ways.emplace_back(*left, *right, cut);
      }
      if (ways.empty()) return input_error(path_, fmt::format("token {} cannot be made of two others", rank));
      if (merges.size() + ways.size() > kMaxMerges)
        return input_error(path_, fmt::format("more than {} merges", kMaxMerges));
      std::ranges::sort(ways);
      for (const auto& [left, right, cut] : ways)
        merges.add(byte_level(token.substr(0, cut)), byte_level(token.substr(cut)));
    }
    out_.vocabulary.own_merges = std::move(merges);
    return ok();
  }

  const std::string path_;
  json::value document_;  // without `vocab`
  TokenTable tokens_;     // bytes by rank
  std::uint64_t special_ = 0;
  std::uint32_t ordinary_ = 0;  // number of tokens_ in use
  TekkenVocabulary out_;
};

}  // namespace

Result<TekkenVocabulary> read_tekken_vocabulary(const std::string& path) { return TekkenReader(path).read(); }

}  // namespace ggufmill::huggingface
