// Reads files of tiktoken ranks, such as qwen.tiktoken: one token per line, as base64 and its rank, which is its id and
// also the order of merging. Special tokens follow the ranks; the file does not list them. Facts of the format:
// conversion/qwen.py and kimi_linear.py of llama.cpp (MIT).

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "stages/huggingface/tokenizer/text_steps.h"
#include "stages/huggingface/tokenizer/vocabulary.h"

namespace ggufmill::huggingface {
namespace {

constexpr std::size_t kMaxRankedBytes = 1024;  // time is quadratic in a token's bytes

class TiktokenReader {
 public:
  TiktokenReader(std::string path, const TokenizerChoice& choice, const boost::json::value& config)
      : path_(std::move(path)), choice_(choice), config_(config) {}

  Result<Vocabulary> read(std::uint64_t vocabulary_size) {
    BOOST_OUTCOME_TRY(const std::string text, read_text_file(path_, kMaxTokenizerBytes));
    BOOST_OUTCOME_TRY(read_ranks(text));
    out_.model = kBytePairVocabulary;
    out_.special_beyond = true;
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
      const auto token = ranks_.text_of(rank);
      if (!token) return input_error(path_, fmt::format("there is no token with the rank {}", rank));
      out_.tokens.push_back({byte_level(*token)});
    }
    add_special_tokens();
    add_reserved_tokens(vocabulary_size);
    if (out_.tokens.size() > vocabulary_size)
      return input_error(path_, fmt::format("has {} tokens with the special ones, but the vocabulary in config.json "
                                            "has {}",
                                            out_.tokens.size(), vocabulary_size));
    for (std::uint64_t id = out_.tokens.size(); id < vocabulary_size; ++id) {
      out_.tokens.push_back(padding_token(id));
    }
    BOOST_OUTCOME_TRY(add_merges());
    return std::move(out_);
  }

 private:
  Status read_ranks(std::string_view text) {
    std::size_t number = 0;
    while (!text.empty()) {
      std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      ++number;
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (line.empty()) continue;
      const std::size_t space = std::min(line.find(' '), line.size());
      const auto token = from_base64(line.substr(0, space));
      const std::string_view digits = line.substr(std::min(space + 1, line.size()));
      std::uint32_t rank = 0;
      const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
      if (!token || token->empty() || end.ec != std::errc() || end.ptr != digits.data() + digits.size())
        return input_error(path_,
                           fmt::format("line {} is not a token with its rank: {}", number, quoted_name(line, 60)),
                           "expected a line such as IQ== 0");
      if (rank >= kMaxTokens)
        return input_error(path_, fmt::format("line {}: more than {} tokens", number, kMaxTokens));
      if (token->size() > kMaxRankedBytes)
        return input_error(path_, fmt::format("line {}: a token of {} bytes; the limit is {}", number, token->size(),
                                              kMaxRankedBytes));
      if (ranks_.find(*token) || ranks_.text_of(rank))
        return input_error(path_, fmt::format("line {}: the token or its rank appears twice", number));
      ranks_.add(*token, rank);
    }
    return ok();
  }

  void add_special_tokens() {
    std::vector<std::string> special = choice_.special;
    for (std::uint32_t i = 0; i < choice_.extra_tokens.value_or(0); ++i)
      special.push_back(fmt::format("<|extra_{}|>", i));
    for (std::string& text : special) {
      out_.added.emplace(text, out_.tokens.size());
      out_.tokens.push_back({std::move(text), 0, PieceType::kControl});
    }
  }

  // Ids beyond the vocabulary are not used.
  void add_reserved_tokens(std::uint64_t vocabulary_size) {
    const boost::json::value* const names = json_member(config_, "added_tokens_decoder");
    for (std::uint32_t i = 0; i < choice_.reserved_tokens.value_or(0) && out_.tokens.size() < vocabulary_size; ++i) {
      const std::size_t id = out_.tokens.size();
      const boost::json::value* const entry = names ? json_member(*names, std::to_string(id)) : nullptr;
      const auto text = entry ? json_string(*entry, "content") : std::nullopt;
      std::string name = text ? std::string(*text) : fmt::format("<|reserved_token_{}|>", id);
      out_.added.emplace(name, id);
      out_.tokens.push_back({std::move(name), 0, PieceType::kControl});
    }
  }

  // A token's merge is the last one that forms it from tokens of lower ranks. Tokens that cannot be formed have none.
  Status add_merges() {
    MergeList merges;
    for (std::size_t index = 0; index < ranks_.size(); ++index) {
      const std::string_view token = ranks_.text(index);
      if (token.size() == 1) continue;
      const std::vector<std::string_view> parts = parts_of(token, ranks_.id(index));
      if (parts.size() != 2) continue;
      if (merges.size() == kMaxMerges) return input_error(path_, fmt::format("more than {} merges", kMaxMerges));
      merges.add(byte_level(parts[0]), byte_level(parts[1]));
    }
    out_.own_merges = std::move(merges);
    return ok();
  }

  // Merges the bytes of a token, lowest rank first, as long as there are ranks below `end`.
  std::vector<std::string_view> parts_of(std::string_view token, std::uint32_t end) const {
    std::vector<std::string_view> parts;
    for (std::size_t i = 0; i < token.size(); ++i) parts.push_back(token.substr(i, 1));
    while (true) {
      std::uint32_t lowest = end;
      std::size_t at = 0;
      for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
        const auto rank = ranks_.find({parts[i].data(), parts[i].size() + parts[i + 1].size()});
        if (!rank || *rank >= lowest) continue;
        lowest = *rank;
        at = i;
      }
      if (lowest == end) return parts;
      parts[at] = {parts[at].data(), parts[at].size() + parts[at + 1].size()};
      parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
  }

  const std::string path_;
  const TokenizerChoice& choice_;
  const boost::json::value& config_;
  TokenTable ranks_;  // ids are ranks
  Vocabulary out_;
};

}  // namespace

Result<Vocabulary> read_tiktoken_vocabulary(const std::string& path, const TokenizerChoice& choice,
                                            const boost::json::value& config, std::uint64_t vocabulary_size) {
  return TiktokenReader(path, choice, config).read(vocabulary_size);
}

}  // namespace ggufmill::huggingface
