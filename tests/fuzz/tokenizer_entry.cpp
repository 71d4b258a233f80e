#include "tests/fuzz/fuzz.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/object.hpp>

#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/tokenizer/sentencepiece.h"
#include "stages/huggingface/tokenizer/vocabulary.h"
#include "tests/fuzz/memory_file.h"

namespace ggufmill {
namespace {

using namespace huggingface;

std::string problem_of(const Error& error) {
  if (error.code != ExitCode::kBadInput) return "the code of an error is not that of bad input: " + render(error);
  if (error.what.empty() || error.where.empty()) return "an error without what or where: " + render(error);
  return {};
}

std::string problem_of(const Metadata& metadata) {
  std::uint64_t tokens = 0;
  for (const MetadataEntry& entry : metadata.entries()) {
    const auto array = as_array(entry.value);
    if (entry.value.type == MetadataType::kArray && !array) return entry.key + " is not a valid array";
    if (entry.key == "tokenizer.ggml.tokens") tokens = array->count;
    if (entry.key == "tokenizer.ggml.token_type" && array->count != tokens) return "not one type for each token";
    if (entry.key == "tokenizer.ggml.scores" && array->count != tokens) return "not one score for each token";
    if (const auto text = as_string(entry.value); text && !is_utf8(*text)) return entry.key + " is not UTF-8";
    if (!array || array->element != MetadataType::kString) continue;
    const std::vector<MetadataValue> items = array_items(entry.value);
    if (items.size() != array->count) return entry.key + " is not a valid array of texts";
    for (const MetadataValue& item : items) {
      if (!is_utf8(*as_string(item))) return entry.key + " holds what is not UTF-8";
    }
  }
  return {};
}

// Encodes a field of the protocol buffer format, with bytes or a number.
std::string field(unsigned number, std::string_view bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + std::string(bytes);
}
std::string number_field(unsigned number, char value) { return {static_cast<char>(number << 3), value}; }
std::string piece(std::string_view text, char type) {
  const std::string score{static_cast<char>(2 << 3 | 5), '\0', '\0', '\x40', '\xC0'};
  return field(1, field(1, text) + score + number_field(3, type));
}

}  // namespace

std::string fuzz_tokenizer_json(std::string_view bytes) {
  const std::size_t zero = std::min(bytes.find('\0'), bytes.size());
  auto tokenizer = parse_tokenizer_json("tokenizer.json", bytes.substr(0, zero));
  if (!tokenizer) return problem_of(tokenizer.error());
  TokenizerFiles files;
  files.folder = "no such folder";
  files.tokenizer = std::move(tokenizer).value();
  if (zero < bytes.size()) {
    auto config = parse_checkpoint_json("tokenizer_config.json", bytes.substr(zero + 1));
    if (!config) return problem_of(config.error());
    if (config.value().is_object()) files.tokenizer_config = std::move(config).value();
  }
  for (const TokenizerReader reader : {TokenizerReader::kBpe, TokenizerReader::kWordPiece,
                                       TokenizerReader::kByteFallbackBpe, TokenizerReader::kUnigramFairseq}) {
    for (const char* pre : {"", "any"}) {
      TokenizerOptions options;
      options.readers = {{reader}};
      options.pre = pre;
      options.space_prefix_of_config = true;
      const auto made = make_tokenizer(files, options);
      std::string problem = made ? problem_of(made.value().metadata) : problem_of(made.error());
      if (!problem.empty()) return fmt::format("{}: {}", tokenizer_reader_name(reader), problem);
    }
  }
  return {};
}

std::string fuzz_tokenizer_model(std::string_view bytes) {
  const auto model = SentencePieceModel::parse("tokenizer.model", std::string(bytes));
  if (!model) return problem_of(model.error());
  for (const SentencePieceModel::Piece& one : model.value().pieces()) {
    if (one.text.empty() || !is_utf8(one.text)) return "a piece without text, or not UTF-8";
    if (one.type < PieceType::kNormal || one.type > PieceType::kByte) return "a piece of no type";
  }
  return {};
}

std::string fuzz_token_list(std::string_view bytes) {
  constexpr std::uint64_t kTokens = 300;
  const MemoryFile file(bytes, bytes.size());
  for (const bool is_rwkv : {true, false}) {
    const auto read =
        is_rwkv ? read_rwkv_vocabulary(file.path(), kTokens) : read_plamo_vocabulary(file.path(), kTokens);
    if (!read) {
      if (std::string problem = problem_of(read.error()); !problem.empty()) return problem;
      continue;
    }
    if (read.value().tokens.size() < kTokens) return "fewer tokens than there are to be";
    for (const Token& token : read.value().tokens)
      if (!is_utf8(token.text)) return "a token is not UTF-8";
  }
  return {};
}

std::vector<std::string> token_list_seeds() {
  return {"1 '\\x00' 1\n2 b'\\xff' 1\n3 \"it's\" 4\n4 '\\u00e9\\n' 3\n5 '\\U0001f600' 4\n",
          "1 'a' 2\n",
          "1 b'\\ud800' 1\n",
          "1 ' ' 1",
          "1 '' 0\n1 '",
          "[\"a\", -1.5, \"NORMAL\"]\n[\"<unk>\", 0, \"UNKNOWN\", 1]\n[\"<0x41>\", 0, \"BYTE\"]\n\n[\"<|plamo:x|>\", "
          "1e3]\n",
          "[\"\\ud800\", 0]\n",
          "[1, 2]\n",
          "[\"a\", 1e999]\n",
          ""};
}

std::vector<std::string> tokenizer_json_seeds() {
  constexpr std::string_view kModel =
      R"("model": {"type": "BPE", "unk_token": "?", "fuse_unk": true, "byte_fallback": false,
      "vocab": {"?": 0, "a": 1, "b": 2, "ab": 3}, "merges": ["a b"]})";
  const auto with_model = [&](std::string_view members) { return fmt::format("{{{}, {}}}", members, kModel); };
  std::vector<std::string> seeds{
      R"({"added_tokens": [{"id": 3, "content": "<s>", "special": true, "normalized": false}],
          "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
             {"type": "Split", "pattern": {"Regex": "[^\\r\\n\\p{L}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"},
              "behavior": "Isolated", "invert": false},
             {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]},
          "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},
             {"Sequence": {"id": "A", "type_id": 0}}], "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}},
          "decoder": {"type": "ByteLevel"},
          "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": [["a", "b"]]}})" +
          std::string(1, '\0') + R"({"tokenizer_class": "LlamaTokenizerFast", "bos_token": "<s>", "add_bos_token": true,
          "added_tokens_decoder": {"4": {"content": "</s>", "special": true}}, "eos_token": {"content": "</s>"},
          "chat_template": [{"name": "default", "template": "x"}, {"name": "tool use", "template": "y"}]})",
      R"({"normalizer": {"type": "BertNormalizer", "lowercase": true}, "pre_tokenizer": {"type": "BertPreTokenizer"},
          "post_processor": {"type": "BertProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2]},
          "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true}, "added_tokens": [{"id": 0, "content": "[UNK]"}],
          "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "##a": 3}}})" +
          std::string(1, '\0') + R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false})",
      R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u2581"},
             {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}]},
          "decoder": {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
             {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 1}]},
          "added_tokens": [{"id": 1, "content": "<0x41>", "lstrip": true, "rstrip": true, "single_word": true}],
          "model": {"type": "BPE", "byte_fallback": true, "vocab": {"a": 0, "<0x41>": 1}, "merges": []}})",
      R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAEC"}, "decoder": {"type": "Metaspace", "replacement": "\u2581"},
          "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0], ["\u2581a", -1.5e0], ["a", -2]]}})",
  };
  for (const std::string_view step :
       {R"({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": true})",
        R"({"type": "Punctuation", "behavior": "Contiguous"})", R"({"type": "UnicodeScripts"})",
        R"({"type": "Digits", "individual_digits": true})", R"({"type": "Whitespace"})",
        R"x({"type": "Split", "pattern": {"Regex": "(a+)+$|[\\w&&[^\\d]]{2,}+|(?i:'s)"},
                                          "behavior": "MergedWithPrevious", "invert": true})x"})
    seeds.push_back(with_model(fmt::format(R"("pre_tokenizer": {})", step)));
  for (const std::string_view type : {"NFC", "NFKD", "Lowercase", "StripAccents", "Nmt", "ByteLevel", "Strip"})
    seeds.push_back(with_model(fmt::format(R"("normalizer": {{"type": "{}"}})", type)));
  for (const std::string_view hostile :
       {"", "{", "[]", "{}", R"({"model": {}})", R"({"model": {"vocab": {"a": 4294967296}}})",
        R"({"model": {"vocab": [["a", 1, 2]]}})", R"({"model": {"vocab": {"\ud800": 1}}})",
        R"({"model": {"vocab": 1, "vocab": {"a": 0}}, "model": [{"x": 1}]})", "{\"a\": \"\xff\"}"})
    seeds.emplace_back(hostile);
  seeds.push_back(std::string(10000, '['));
  return seeds;
}

std::vector<std::string> tokenizer_model_seeds() {
  const std::string good = piece("<unk>", 2) + piece("<s>", 3) + piece("<0x41>", 6) + piece("\u2581a", 1) +
                           piece("x", 4) + field(2, number_field(3, 2)) +
                           field(3, field(2, "map") + number_field(3, 0));
  return {good,
          good.substr(0, good.size() / 2),
          piece("<unk>", 2),
          piece("<unk>", 9),
          piece("", 2),
          good + std::string(11, '\xFF'),
          field(1, std::string_view("\x0A\x7F", 2)),
          std::string{'\x0B', '\x0C'},
          "version https://git-lfs.github.com/spec/v1\n",
          ""};
}

}  // namespace ggufmill
