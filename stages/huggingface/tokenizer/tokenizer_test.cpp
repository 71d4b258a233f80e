#include "stages/huggingface/tokenizer/tokenizer.h"
#include "pipeline/io/platform/filesystem.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <string>

#include "stages/huggingface/tokenizer/special_tokens.h"
#include "stages/huggingface/tokenizer/tokenizer_json.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;
using Reader = TokenizerReader;

namespace {

// A folder of files that is read with one reader.
class Folder {
 public:
  Folder& put(std::string_view name, std::string_view text) {
    const fs::path path = dir_.path() / name;
    fs::create_directories(path.parent_path());
    write_text(path, text);
    return *this;
  }
  Result<TokenizerMetadata> read(Reader reader, TokenizerOptions options = {}) const {
    options.readers = {{reader}};
    return read_tokenizer(dir_.path(), options);
  }
  Result<TokenizerMetadata> read_any(const TokenizerOptions& options) const {
    return read_tokenizer(dir_.path(), options);
  }
  fs::path path() const { return dir_.path(); }

 private:
  TempDir dir_;
};

// Returns every key with its value, one per line, without the common prefix; arrays with all of their items.
std::string lines(const Result<TokenizerMetadata>& made) {
  if (!made) return render(made.error());
  std::string out;
  for (const MetadataEntry& entry : made.value().metadata.entries()) {
    const std::string_view prefix = "tokenizer.";
    out += entry.key.substr(entry.key.starts_with(prefix) ? prefix.size() : 0) + " =";
    if (entry.value.type == MetadataType::kArray) {
      for (const MetadataValue& item : array_items(entry.value)) out += " " + describe(item);
    } else {
      out += " " + describe(entry.value, 400);
    }
    out += "\n";
  }
  return out;
}

std::string error_of(const Result<TokenizerMetadata>& made) {
  REQUIRE(!made);
  CHECK(made.error().code == ExitCode::kBadInput);
  return render(made.error());
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// Byte-level BPE: "a", "b", "ab", "abb" and two added tokens.
constexpr std::string_view kBpe = R"({
  "added_tokens": [{"id": 4, "content": "<s>", "special": true, "normalized": false},
                   {"id": 5, "content": "\u0120user\u2581text", "special": false, "normalized": false}],
  "normalizer": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
  "post_processor": {"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
             {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [4], "tokens": ["<s>"]}}},
  "decoder": {"type": "ByteLevel"},
  "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "abb": 3}, "merges": ["a b", "ab b"]}})";

// Returns one field of the protocol buffer format.
std::string field(unsigned number, std::string_view bytes) {
  return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + std::string(bytes);
}
std::string number(unsigned field_number, char value) { return {static_cast<char>(field_number << 3), value}; }
std::string piece(std::string_view text, unsigned char score, char type) {
  const std::string bits{'\0', '\0', static_cast<char>(score), '\xC0'};  // -2.0 and below
  return field(1,
               field(1, text) + std::string{static_cast<char>(2 << 3 | 5)} + bits + (type == 1 ? "" : number(3, type)));
}
// <unk>, <s>, <0x41>, "▁a", and a user-defined piece; `kind`: 1 Unigram, 2 BPE.
std::string sentencepiece(char kind, std::string_view charsmap = {}) {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("<0x41>", 0, 6) + piece("\u2581a", 0x40, 1) +
         piece("mine", 0, 4) + field(2, number(3, kind)) + field(3, field(2, charsmap) + number(3, 0) + number(4, 0));
}

}  // namespace

TEST_CASE("BPE of tokenizer.json, with added tokens as they decode") {
  Folder folder;
  folder.put("tokenizer.json", kBpe)
      .put("tokenizer_config.json", R"({"bos_token": "<s>", "add_bos_token": false, "chat_template": "hello"})")
      .put("config.json", R"({"eos_token_id": 3, "pad_token_id": [1, 2], "text_config": {"unk_token_id": 7}})");
  TokenizerOptions options;
  options.pre = "mine";
  options.vocabulary_size = 8;
  CHECK(lines(folder.read(Reader::kBpe, options)) ==
        "ggml.model = \"gpt2\"\n"
        "ggml.pre = \"mine\"\n"
        "ggml.tokens = \"a\" \"b\" \"ab\" \"abb\" \"<s>\" \"\u0120user text\" \"[PAD6]\" \"[PAD7]\"\n"
        "ggml.token_type = 1 1 1 1 3 4 5 5\n"
        "ggml.merges = \"a b\" \"ab b\"\n"
        "ggml.bos_token_id = 4\n"
        "ggml.eos_token_id = 3\n"
        "ggml.unknown_token_id = 7\n"
        "ggml.add_bos_token = true\n"
        "chat_template = \"hello\"\n");
}

TEST_CASE("user-defined tokens of spaces become marks for the pre-tokenizers that never match them") {
  Folder folder;
  folder.put("tokenizer.json", R"({
      "added_tokens": [{"id": 1, "content": "  ", "special": false, "normalized": true},
                       {"id": 2, "content": " a", "special": false, "normalized": true}],
      "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  TokenizerOptions options;
  options.pre = "spaced";
  options.space_marks = {"spaced"};
  CHECK(has(lines(folder.read(Reader::kBpe, options)),
            "ggml.tokens = \"a\" \"\u2581\u2581\" \" a\"\nggml.token_type = 1 1 4\n"));
  options.pre = "other";
  CHECK(has(lines(folder.read(Reader::kBpe, options)), "ggml.tokens = \"a\" \"  \" \" a\"\nggml.token_type = 1 4 4\n"));
}

TEST_CASE("BPE of tokenizer.json, with added tokens verbatim and of the kind given by their flags") {
  Folder folder;
  folder.put("tokenizer.json", R"({
      "added_tokens": [{"id": 1, "content": "<|x|>", "special": false}, {"id": 2, "content": "<s>", "special": true}],
      "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  TokenizerOptions options;
  options.pre = "mine";
  const std::string tokens = "ggml.tokens = \"a\" \"<|x|>\" \"<s>\"\n";
  CHECK(has(lines(folder.read(Reader::kBpe, options)), tokens + "ggml.token_type = 1 3 3\n"));
  CHECK(has(lines(folder.read(Reader::kBpeFlagged, options)), tokens + "ggml.token_type = 1 4 3\n"));
  options.user_tokens = {"<s>"};
  CHECK(has(lines(folder.read(Reader::kBpe, options)), tokens + "ggml.token_type = 1 3 4\n"));
}

TEST_CASE("merges as pairs, spaces in them as the byte-level character, or in merges.txt") {
  Folder folder;
  folder.put("tokenizer.json",
             R"({"model": {"type": "BPE", "vocab": {"a": 0, " ": 1, "a ": 2}, "merges": [["a", " "]]}})");
  TokenizerOptions options;
  options.pre = "mine";
  CHECK(has(lines(folder.read(Reader::kBpe, options)), "ggml.merges = \"a \u0120\"\n"));
  folder.put("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": []}})")
      .put("merges.txt", "#version: 0.2\r\na b\r\nnot a merge\r\n");
  CHECK(has(lines(folder.read(Reader::kBpe, options)), "ggml.merges = \"a b\"\n"));
}

TEST_CASE("a vocabulary that the library does not load is refused, with a named pre-tokenizer too") {
  const auto error = [](std::string_view model, const std::string& pre) {
    TokenizerOptions options;
    options.pre = pre;
    return error_of(
        Folder()
            .put("tokenizer.json", fmt::format(R"({{"pre_tokenizer": {{"type": "ByteLevel"}}, "model": {}}})", model))
            .read(Reader::kBpe, options));
  };
  const std::string pre = GENERATE("", "qwen2");
  CAPTURE(pre);
  const std::string none = error(R"({"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}})", pre);
  CHECK(has(none, "the vocabulary has no merges, and there is no merges.txt"));
  CHECK(has(none, kDamagedTokenizer));
  const std::string other = error(R"({"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": ["a b"]})", pre);
  CHECK(has(other, "merge 0, 'a' and 'b', is not in the vocabulary"));
  CHECK(has(other, kDamagedTokenizer));
}

TEST_CASE("a name that llama.cpp does not know for the pre-tokenizer is written with a warning") {
  const auto warnings = [](const std::string& pre) {
    TokenizerOptions options;
    options.pre = pre;
    const auto read = Folder().put("tokenizer.json", kBpe).read(Reader::kBpe, options);
    CAPTURE(lines(read));
    REQUIRE(read);
    CHECK(has(lines(read), "ggml.pre = \"" + pre + "\""));
    return read.value().warnings;
  };
  CHECK(warnings("qwen2").empty());
  CHECK(warnings("llama3").empty());
  REQUIRE(warnings("qwen9").size() == 1);
  CHECK(has(warnings("qwen9")[0], "knows no pre-tokenizer 'qwen9', but 'qwen"));
}

TEST_CASE("an unknown pre-tokenizer is an error that gives the hash and how to name it") {
  Folder folder;
  folder.put("tokenizer.json", kBpe);
  const std::string error = error_of(folder.read(Reader::kBpe));
  CAPTURE(error);
  CHECK(has(error, "llama.cpp does not know the hash of its check text, "));
  CHECK(has(error, "`pre: NAME`"));
  folder.put("tokenizer.json", R"({"model": {"type": "Unigram", "vocab": [["a", -1.5]]}})");
  CHECK(has(error_of(folder.read(Reader::kBpe)), "model type 'Unigram'"));
}

TEST_CASE("a name for the pre-tokenizer is neither advised nor accepted for another kind of vocabulary") {
  // Pieces of SentencePiece, Unigram, word pieces, and BPE of characters, in an architecture of byte-level BPE.
  struct Kind {
    std::string_view name, tokenizer;
  };
  const Kind kinds[] = {
      {"SentencePiece BPE",
       R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {"a": 0, "b": 1}, "merges": []}})"},
      {"SentencePiece BPE", R"({"model": {"type": "BPE", "vocab": {"a": 0, "\u2581b": 1}, "merges": []}})"},
      {"Unigram", R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["a", 0], ["b", -1]]}})"},
      {"WordPiece", R"({"model": {"type": "WordPiece", "unk_token": "a", "vocab": {"a": 0, "##b": 1}}})"},
      {"BPE",
       R"({"pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1}, "merges": []}})"},
  };
  for (const Kind& kind : kinds)
    for (const char* pre : {"", "gpt-2"}) {
      Folder folder;
      folder.put("tokenizer.json", kind.tokenizer);
      TokenizerOptions options;
      options.pre = pre;
      const std::string error = error_of(folder.read(Reader::kBpe, options));
      CHECK(has(error, "'" + std::string(kind.name) + "' is not supported; this architecture needs byte-level BPE"));
      CHECK(has(error, "help: use the tokenizer of the base model"));
    }
  // The architecture would read tokenizer.model.
  Folder folder;
  folder.put("tokenizer.json", kinds[0].tokenizer);
  TokenizerOptions options;
  options.readers = {{Reader::kSentencePiece}, {Reader::kBpe}};
  CHECK(has(error_of(folder.read_any(options)), "help: copy tokenizer.model, the SentencePiece file"));
  options.readers = {{Reader::kSentencePiece}};
  CHECK(has(error_of(folder.read_any(options)), "help: copy tokenizer.model, the SentencePiece file"));
  options.readers = {{Reader::kUnigram}};
  folder.put("tokenizer.json", kinds[2].tokenizer);
  CHECK(has(error_of(folder.read_any(options)), "help: copy tokenizer.model or spiece.model"));
}

TEST_CASE("a vocabulary larger than config.json allows is rejected") {
  Folder folder;
  folder.put("tokenizer.json", kBpe);
  TokenizerOptions options;
  options.pre = "mine";
  options.vocabulary_size = 5;
  CHECK(has(error_of(folder.read(Reader::kBpe, options)), "has id 5, but config.json has a vocabulary of 5 tokens"));
  folder.put("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 7}, "merges": []}})");
  options.vocabulary_size.reset();
  CHECK(has(error_of(folder.read(Reader::kBpe, options)), "token 'b' has id 7, but there are only 2 tokens"));
  options.vocabulary_size = std::uint64_t{1} << 40;
  CHECK(has(error_of(folder.read(Reader::kBpe, options)), "the limit is 4194304"));
}

TEST_CASE("of two tokens with the same id, the last is written, with a warning") {
  Folder folder;
  folder.put("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 1}, "merges": []}})");
  TokenizerOptions options;
  options.pre = "qwen2";
  options.vocabulary_size = 2;
  const auto made = folder.read(Reader::kBpe, options);
  CHECK(has(lines(made), "ggml.tokens = \"a\" \"c\"\n"));
  REQUIRE(made);
  REQUIRE(made.value().warnings.size() == 1);
  CHECK(has(made.value().warnings[0], "tokens 'b' and 'c' have the same id, 1; the last is written"));
}

TEST_CASE("added tokens with a gap in their ids are numbered as the tokenizers library does, with a warning") {
  // Ids assigned by tokenizers 0.22.2.
  Folder folder;
  folder.put("tokenizer.json", R"({
      "added_tokens": [{"id": 5, "content": "E", "special": true}, {"id": 7, "content": "<y>"},
                       {"id": 6, "content": "<x>"}, {"id": 8, "content": ""}, {"id": 9, "content": "<y>"}],
      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "E": 5}, "merges": []}})");
  folder.put("tokenizer_config.json", R"({"added_tokens_decoder": {"7": {"content": "<z>"}}, "pad_token": "<p>"})");
  TokenizerOptions options;
  options.pre = "qwen2";
  options.vocabulary_size = 9;
  const auto made = folder.read(Reader::kBpe, options);
  CHECK(has(lines(made), "ggml.tokens = \"a\" \"b\" \"[PAD2]\" \"<y>\" \"<x>\" \"E\" \"<z>\" \"<p>\" \"[PAD8]\"\n"));
  REQUIRE(made);
  REQUIRE(made.value().warnings.size() == 1);
  CHECK(has(made.value().warnings[0],
            "added token '<y>' has id 7, but the tokenizers library assigns 3, and likewise "
            "for 2 more; the output has the ids that the library assigns"));
}

TEST_CASE("ids of added tokens that make a tokenizer useless are rejected") {
  Folder folder;
  folder.put("tokenizer.json",
             R"({"added_tokens": [{"id": 7, "content": "<x>"}], "model": {"type": "BPE", "vocab": {"a": 0}}})");
  folder.put("tokenizer_config.json", R"({"eos_token": "<x>"})");
  CHECK(has(error_of(folder.read(Reader::kBpe)),
            "added token '<x>' has id 7, but the tokenizers library assigns 1, so the model would have another token "
            "as its eos_token"));
  folder.put("tokenizer.json",
             R"({"added_tokens": [{"id": 3, "content": "<x>"}], "model": {"type": "BPE", "vocab": {"a": 0, "b": 2}}})");
  CHECK(has(error_of(folder.read(Reader::kBpe)),
            "assigns id 2 to added token '<x>', but token 'b' of the model has this id"));
}

TEST_CASE("word pieces are marked at the beginning of a word") {
  Folder folder;
  folder.put("tokenizer.json", R"({
      "added_tokens": [{"id": 0, "content": "[CLS]", "special": true}],
      "normalizer": {"type": "BertNormalizer", "lowercase": true, "strip_accents": null},
      "model": {"type": "WordPiece", "vocab": {"[CLS]": 0, "a": 1, "##b": 2}}})");
  TokenizerOptions options;
  options.pre = "mine";
  options.token_types = 2;
  CHECK(lines(folder.read(Reader::kWordPiece, options)) ==
        "ggml.token_type_count = 2\n"
        "ggml.model = \"bert\"\n"
        "ggml.pre = \"mine\"\n"
        "ggml.tokens = \"[CLS]\" \"\u2581a\" \"b\"\n"
        "ggml.token_type = 3 1 1\n"
        "ggml.normalizer.lowercase = true\n");
}

TEST_CASE("BPE with byte fallback becomes a SentencePiece vocabulary, and llama's readers are tried in turn") {
  Folder folder;
  folder
      .put("tokenizer.json", R"({
      "added_tokens": [{"id": 0, "content": "<s>", "special": true}, {"id": 3, "content": "<x>", "special": false}],
      "decoder": {"type": "Sequence", "decoders": []},
      "model": {"type": "BPE", "byte_fallback": true, "vocab": {"<s>": 0, "<0x41>": 1, "a": 2}, "merges": []}})")
      .put("tokenizer_config.json", R"({"bos_token": "<s>", "add_prefix_space": true, "tokenizer_class": "X"})");
  TokenizerOptions options;
  options.readers = {{Reader::kSentencePiece}, {Reader::kByteFallbackBpe}, {Reader::kBpe}};
  options.space_prefix_of_config = true;
  CHECK(lines(folder.read_any(options)) ==
        "ggml.add_space_prefix = true\n"
        "ggml.model = \"llama\"\n"
        "ggml.pre = \"default\"\n"
        "ggml.tokens = \"<s>\" \"<0x41>\" \"a\" \"<x>\"\n"
        "ggml.scores = -1000 -1000 -1000 -1000\n"
        "ggml.token_type = 3 6 1 4\n"
        "ggml.bos_token_id = 0\n");
  options.readers[1].scores = false;
  CHECK(!has(lines(folder.read_any(options)), "ggml.scores"));
  options.readers[1].scores = true;
  options.space_prefix_of_config = false;
  options.readers = {{Reader::kByteFallbackBpe, "", false, false, "other"}};
  folder.put("tokenizer.json", R"({
      "decoder": {"type": "Sequence", "decoders": []},
      "model": {"type": "BPE", "byte_fallback": true, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})");
  CHECK(lines(folder.read_any(options)) ==
        "ggml.model = \"other\"\n"
        "ggml.tokens = \"a\" \"b\" \"ab\" \"<s>\"\n"
        "ggml.scores = -1000 -1000 -1000 -1000\n"
        "ggml.token_type = 1 1 1 3\n"
        "ggml.merges = \"a b\"\n"
        "ggml.add_space_prefix = false\n");
  options.readers = {{Reader::kSentencePiece}, {Reader::kUnigram}, {Reader::kBpe, "GPT2Tokenizer"}};
  const std::string error = error_of(folder.read_any(options));
  CHECK(has(error,
            "no tokenizer: tokenizer.model and spiece.model are missing; tokenizer.model is missing; "
            "tokenizer_config.json is not of class GPT2Tokenizer"));
  options.readers = {};
  CHECK(has(error_of(folder.read_any(options)), "no tokenizer: the architecture's map names no reader for it"));
}

TEST_CASE("SentencePiece, added tokens by id, padding") {
  Folder folder;
  folder.put("tokenizer.model", sentencepiece(2))
      .put("added_tokens.json", R"({"<new>": 5, "far": 99})")
      .put("tokenizer_config.json", R"({"add_eos_token": true, "eos_token": "<s>", "added_tokens_decoder": {
          "4": {"content": "\u2581my", "special": false}, "1": {"content": "<|im|>", "special": false}}})")
      .put("config.json", R"({"eos_token_id": 1, "pad_token_id": 50})");
  TokenizerOptions options;
  options.vocabulary_size = 7;
  const auto made = folder.read(Reader::kSentencePiece, options);
  CHECK(lines(made) ==
        "ggml.model = \"llama\"\n"
        "ggml.pre = \"default\"\n"
        "ggml.tokens = \"<unk>\" \"<|im|>\" \"<0x41>\" \"\u2581a\" \" my\" \"<new>\" \"[PAD6]\"\n"
        "ggml.scores = -2 -1000 -2 -3 -1000 -1000 -10000\n"
        "ggml.token_type = 2 3 6 1 4 4 5\n"
        "ggml.eos_token_id = 1\n"
        "ggml.add_eos_token = true\n");
  REQUIRE(made);
  CHECK(made.value().warnings ==
        std::vector<std::string>{"skipping the added token with id 99: there are only 7 tokens",
                                 "the pad token has id 50, but there are only 7 tokens; skipped"});
  // Listed: the text and the type given in the files.
  folder.put("tokenizer.json", R"({"added_tokens": [{"id": 6, "content": "<|end|>", "special": true}]})");
  CHECK(has(lines(folder.read(Reader::kSentencePieceListed, options)),
            "ggml.tokens = \"<unk>\" \"<|im|>\" \"<0x41>\" \"\u2581a\" \"\u2581my\" \"<new>\" \"<|end|>\"\n"));
  CHECK(has(lines(folder.read(Reader::kSentencePieceListed, options)), "ggml.token_type = 2 4 6 1 4 4 3\n"));
  options.vocabulary_size = 3;
  CHECK(has(error_of(folder.read(Reader::kSentencePieceListed, options)),
            "5 pieces, but config.json has a vocabulary of 3"));
}

TEST_CASE("SentencePiece whose pieces tokenizer_config.json makes other tokens") {
  Folder folder;
  folder.put("tokenizer.model", sentencepiece(2))
      .put("tokenizer_config.json", R"({"unk_token": "<?>", "added_tokens_decoder": {
          "0": {"content": "<?>", "special": true}, "3": {"content": "\u2581my", "special": false},
          "4": {"content": "<|end|>", "special": true}, "9": {"content": "<|far|>", "special": true}}})");
  TokenizerOptions options;
  options.vocabulary_size = 6;
  const auto made = folder.read(Reader::kSentencePieceRedefined, options);
  CHECK(lines(made) ==
        "ggml.model = \"llama\"\n"
        "ggml.pre = \"default\"\n"
        "ggml.tokens = \"<?>\" \"<s>\" \"<0x41>\" \"\u2581my\" \"<|end|>\" \"[PAD5]\"\n"
        "ggml.scores = 0 -2 -2 -10000 0 -10000\n"
        "ggml.token_type = 2 3 6 4 3 5\n");
  REQUIRE(made);
  CHECK(made.value().warnings ==
        std::vector<std::string>{"skipping the added token with id 9: there are only 6 tokens"});
  options.vocabulary_size = 3;
  CHECK(has(error_of(folder.read(Reader::kSentencePieceRedefined, options)),
            "5 pieces, but config.json has a vocabulary of 3"));
}

TEST_CASE("SentencePiece with added tokens appended, and a rule for EOS") {
  Folder folder;
  folder
      .put("tokenizer.model",
           sentencepiece(2) + piece("[UNUSED_TOKEN_1]", 0, 1) + piece(std::string_view("\0", 1), 0, 1))
      .put("added_tokens.json", R"({"<|im_end|>": 7})")
      .put("tokenizer_config.json", R"({"added_tokens_decoder": {"7": {"content": "<|im_end|>", "special": true}}})")
      .put("config.json", R"({"eos_token_id": 1})");
  TokenizerOptions options;
  options.special_tokens = {{"eos", "<|im_end|>", {}, true, false}};
  CHECK(lines(folder.read(Reader::kSentencePieceAppended, options)) ==
        "ggml.model = \"llama\"\n"
        "ggml.pre = \"default\"\n"
        "ggml.tokens = \"<unk>\" \"<s>\" \"<0x41>\" \"\u2581a\" \"mine\" \"[UNUSED_TOKEN_1]\" \"\U0001F409\" "
        "\"<|im_end|>\"\n"
        "ggml.scores = -2 -2 -2 -3 -2 -2 -2 -1000\n"
        "ggml.token_type = 2 3 6 1 1 5 1 3\n"
        "ggml.add_space_prefix = false\n"
        "ggml.eos_token_id = 7\n");
}

TEST_CASE("Unigram with its normalizer, plain and as fairseq numbers it") {
  Folder folder;
  folder.put("spiece.model", sentencepiece(1, "\x01\x02"));
  CHECK(lines(folder.read(Reader::kUnigram)) ==
        "ggml.model = \"t5\"\n"
        "ggml.pre = \"default\"\n"
        "ggml.tokens = \"<unk>\" \"<s>\" \"<0x41>\" \"\u2581a\" \"mine\"\n"
        "ggml.scores = -2 -2 -2 -3 -2\n"
        "ggml.token_type = 2 3 6 1 1\n"
        "ggml.add_space_prefix = false\n"
        "ggml.remove_extra_whitespaces = false\n"
        "ggml.precompiled_charsmap = 1 2\n");
  folder.put("sentencepiece.bpe.model", sentencepiece(1));
  TokenizerOptions options;
  options.token_types = 1;
  options.vocabulary_size = 6;
  CHECK(lines(folder.read(Reader::kUnigramFairseq, options)) ==
        "ggml.model = \"t5\"\n"
        "ggml.pre = \"default\"\n"
        "ggml.tokens = \"<s>\" \"<pad>\" \"</s>\" \"<unk>\" \"\u2581a\" \"mine\"\n"
        "ggml.scores = 0 0 0 0 -3 -2\n"
        "ggml.token_type = 3 3 3 2 1 1\n"
        "ggml.add_space_prefix = false\n"
        "ggml.token_type_count = 1\n"
        "ggml.remove_extra_whitespaces = false\n");
  folder.put("sentencepiece.bpe.model", sentencepiece(2));
  CHECK(has(error_of(folder.read(Reader::kUnigramFairseq, options)), "SentencePiece model type 2"));
}

TEST_CASE("control tokens that fairseq's model file does not have") {
  Folder folder;
  folder.put("sentencepiece.bpe.model", sentencepiece(1));
  TokenizerOptions options;
  options.vocabulary_size = 6;
  TokenizerChoice choice{Reader::kUnigramFairseq};
  choice.extra = {{5, "<mask>"}};
  options.readers = {choice};
  const std::string text = lines(read_tokenizer(folder.path(), options));
  CHECK(has(text, "ggml.tokens = \"<s>\" \"<pad>\" \"</s>\" \"<unk>\" \"\u2581a\" \"<mask>\"\n"));
  CHECK(has(text, "ggml.scores = 0 0 0 0 -3 0\n"));
  CHECK(has(text, "ggml.token_type = 3 3 3 2 1 3\n"));
  options.readers[0].extra[0].id = 6;
  CHECK(has(error_of(read_tokenizer(folder.path(), options)),
            "the token '<mask>' has id 6, but there are only 6 tokens"));
}

TEST_CASE("Unigram of tokenizer.json, where there is no model file") {
  Folder folder;
  folder
      .put("tokenizer.json", R"({
      "added_tokens": [{"id": 0, "content": "<s>", "special": true}, {"id": 1, "content": "<unk>", "special": true},
                       {"id": 2, "content": "<x>", "special": false}],
      "normalizer": {"type": "Precompiled", "precompiled_charsmap": "AQL/"},
      "model": {"type": "Unigram", "unk_id": 1, "vocab": [["<s>", 0.0], ["<unk>", 0.0], ["<x>", 0], ["\u2581a", -3.25]]}})")
      .put("tokenizer_config.json",
           R"({"bos_token": "<s>", "unk_token": "<unk>", "clean_up_tokenization_spaces": true})");
  CHECK(lines(folder.read(Reader::kUnigramFairseq)) ==
        "ggml.model = \"t5\"\n"
        "ggml.pre = \"default\"\n"
        "ggml.tokens = \"<s>\" \"<unk>\" \"<x>\" \"\u2581a\"\n"
        "ggml.scores = 0 0 0 -3.25\n"
        "ggml.token_type = 3 2 4 1\n"
        "ggml.add_space_prefix = false\n"
        "ggml.remove_extra_whitespaces = true\n"
        "ggml.precompiled_charsmap = 1 2 255\n"
        "ggml.bos_token_id = 0\n"
        "ggml.unknown_token_id = 1\n");
}

TEST_CASE("a path that is not a file is not reported as missing") {
  Folder folder;
  fs::create_directory(folder.path() / "tokenizer.json");
  CHECK(has(error_of(folder.read(Reader::kBpe)), "no tokenizer: tokenizer.json is a folder, not a file"));
  CHECK(has(error_of(folder.read(Reader::kSentencePiece)), "no tokenizer: tokenizer.model is missing"));
}

TEST_CASE("no vocabulary at all") { CHECK(lines(Folder().read(Reader::kNone)) == "ggml.model = \"none\"\n"); }

TEST_CASE("RWKV's vocabulary: Python literals, written in Python's bytes notation") {
  constexpr const char* kFile = "rwkv_vocab_v20230424.txt";
  Folder folder;
  folder.put(kFile,
             "1 '\\x00' 1\n2 ' ' 1\n3 b'\\xff' 1\n4 '\\u2028' 3\r\n5 'it\\'s \"' 6\n6 \"it's\" 4\n7 '\\\\\\n' 2\n8 "
             "'\u00e9' 2");
  TokenizerOptions options;
  options.vocabulary_size = 10;
  options.special_tokens = {{"eot", "", 7}, {"bos", "", 0, true}};
  options.chat_template = "rwkv-world";
  CHECK(lines(folder.read(Reader::kRwkv, options)) ==
        "ggml.model = \"rwkv\"\n"
        "ggml.tokens = \"<s>\" \"\\\\x00\" \" \" \"\\\\xff\" \"\\\\xe2\\\\x80\\\\xa8\" \"it\\\\'s \\\"\" \"it's\" "
        "\"\\\\\\\\\\\\n\" \"\\\\xc3\\\\xa9\" \"[PAD9]\"\n"
        "ggml.token_type = 3 1 1 1 1 1 1 1 1 5\n"
        "ggml.eot_token_id = 7\n"
        "ggml.bos_token_id = 0\n"
        "chat_template = \"rwkv-world\"\n");
  folder.put("tokenizer_config.json", R"({"chat_template": "own"})");
  CHECK(has(lines(folder.read(Reader::kRwkv, options)), "chat_template = \"own\"\n"));
  for (const char* wrong : {"1 'a' 2", "1 'a'", "1 a 1", "1 'a\" 1", "1 '\\q' 1", "1 '\\x4' 1", "1 b'\\u2028' 3",
                            "1 '\\ud800' 3", "1 '\\' 1", "1 'a' 1x", "", "1 b'\u00e9' 2"}) {
    folder.put(kFile, std::string("1 'a' 1\n") + wrong + "\n");
    CHECK(has(error_of(folder.read(Reader::kRwkv, options)), "line 2 is not a token with its number of bytes: "));
  }
  options.vocabulary_size = 1;
  folder.put(kFile, "1 'a' 1\n");
  CHECK(has(error_of(folder.read(Reader::kRwkv, options)), "has 2 tokens, but the vocabulary in config.json has 1"));
}

TEST_CASE("tiktoken ranks: merges from the ranks, then special tokens, then padding") {
  constexpr const char* kFile = "x.tiktoken";
  Folder folder;
  folder.put(kFile, "YQ== 0\nYg== 1\nYw== 2\nIA== 3\nYmM= 4\nYWJj 5\nIGE= 6\nenp6 7\n").put("config.json", "{}");
  TokenizerOptions options;
  options.readers = {{Reader::kTiktoken}};
  options.readers[0].file = kFile;
  options.readers[0].special = {"<|end|>"};
  options.readers[0].extra_tokens = 2;
  options.pre = "mine";
  options.vocabulary_size = 12;
  options.special_tokens = {{"eos", "<|end|>"}};
  CHECK(lines(read_tokenizer(folder.path(), options)) ==
        "ggml.model = \"gpt2\"\nggml.pre = \"mine\"\n"
        "ggml.tokens = \"a\" \"b\" \"c\" \"\u0120\" \"bc\" \"abc\" \"\u0120a\" \"zzz\" \"<|end|>\" \"<|extra_0|>\" "
        "\"<|extra_1|>\" \"[PAD11]\"\n"
        "ggml.token_type = 1 1 1 1 1 1 1 1 3 3 3 5\n"
        "ggml.merges = \"b c\" \"a bc\" \"\u0120 a\"\n"
        "ggml.eos_token_id = 8\n");
  options.vocabulary_size = 10;
  CHECK(has(error_of(read_tokenizer(folder.path(), options)), "has 11 tokens with the special ones"));
  for (const char* wrong : {"YQ==", "YQ== x", "* 1", "Yg== 1x", " 1"}) {
    folder.put(kFile, std::string("YQ== 0\n") + wrong + "\n");
    CHECK(has(error_of(read_tokenizer(folder.path(), options)), "line 2 is not a token with its rank: "));
  }
}

TEST_CASE("tiktoken ranks: reserved tokens have the names in tokenizer_config.json") {
  Folder folder;
  folder.put("x.tiktoken", "YQ== 0\nYg== 1\n").put("config.json", "{}");
  folder.put("tokenizer_config.json",
             R"({"added_tokens_decoder": {"1": {"content": "no"}, "3": {"content": "[EOS]"}}})");
  TokenizerOptions options;
  options.readers = {{Reader::kTiktoken}};
  options.readers[0].file = "x.tiktoken";
  options.readers[0].reserved_tokens = 3;
  options.readers[0].pre = "mine";
  options.vocabulary_size = 6;
  options.special_tokens = {{"eos", "[EOS]"}};
  CHECK(lines(read_tokenizer(folder.path(), options)) ==
        "ggml.model = \"gpt2\"\nggml.pre = \"mine\"\n"
        "ggml.tokens = \"a\" \"b\" \"<|reserved_token_2|>\" \"[EOS]\" \"<|reserved_token_4|>\" \"[PAD5]\"\n"
        "ggml.token_type = 1 1 3 3 3 5\n"
        "ggml.eos_token_id = 3\n");
}

TEST_CASE("PLaMo's vocabulary: one token per line, special ones by their text") {
  constexpr const char* kFile = "tokenizer.jsonl";
  Folder folder;
  folder
      .put(kFile,
           "[\"<|plamo:unk|>\", 0.0, \"UNKNOWN\"]\n[\"<|plamo:bos|>\", 0, \"CONTROL\"]\n\n[\"<0x00>\", 0.0, \"BYTE\"]\n"
           "[\"<|plamo:op|>\", 0.0, \"NORMAL\", null]\n[\"x\", -1.5]\n")
      .put("tokenizer_config.json",
           R"({"unk_token": "<|plamo:unk|>", "bos_token": "<|plamo:bos|>", "sep_token": null})");
  TokenizerOptions options;
  options.vocabulary_size = 7;
  options.special_tokens = {{"eot", "", 3}};
  CHECK(lines(folder.read(Reader::kPlamo, options)) ==
        "ggml.model = \"plamo2\"\nggml.pre = \"default\"\n"
        "ggml.tokens = \"<|plamo:unk|>\" \"<|plamo:bos|>\" \"<0x00>\" \"<|plamo:op|>\" \"x\" \"[PAD1]\" \"[PAD2]\"\n"
        "ggml.scores = 0 0 0 0 -1.5 -1000 -1000\n"
        "ggml.token_type = 2 3 6 3 1 5 5\n"
        "ggml.bos_token_id = 1\nggml.unknown_token_id = 0\nggml.eot_token_id = 3\n");
  folder.put("tokenizer_config.json", R"({"eos_token": "</s>"})");
  CHECK(has(error_of(folder.read(Reader::kPlamo, options)),
            "has no token '</s>', which tokenizer_config.json names as eos_token"));
  for (const char* wrong : {"[\"a\"]", "[1, 2]", "[\"a\", \"b\"]", "{}", "[\"a\", 1", "[\"\\ud800\", 1]"}) {
    folder.put(kFile, std::string("[\"x\", 1]\n") + wrong + "\n");
    CHECK(has(error_of(folder.read(Reader::kPlamo, options)), "line 2 is not a token: "));
  }
}

TEST_CASE("rules and a second pass for special tokens") {
  Folder folder;
  folder.put("tokenizer.json", kBpe).put("config.json", R"({"eos_token_id": 3})");
  TokenizerOptions options;
  options.pre = "mine";
  options.special_tokens = {{"eos", "<s>"}, {"eot", "<s>"}};
  options.second_pass = SpecialTokenPass{{"prefix", "eot"}, {{"prefix", {}, 2}, {"eot", {}, 1}}};
  const std::string made = lines(folder.read(Reader::kBpe, options));
  CHECK(has(made, "ggml.eos_token_id = 3\n"));  // the file's id takes precedence
  CHECK(has(made, "ggml.eot_token_id = 1\n"));  // the second pass overwrites the first
  options.special_tokens = {{"eot", "<missing>"}};
  CHECK(
      has(error_of(folder.read(Reader::kBpe, options)), "there is no added token '<missing>', which is the eot token"));
}

TEST_CASE("tokens that a map marks as control tokens") {
  Folder folder;
  folder.put("tokenizer.json", kBpe);
  TokenizerOptions options;
  options.pre = "mine";
  options.control_tokens = {"ab"};
  CHECK(has(lines(folder.read(Reader::kBpe, options)), "ggml.token_type = 1 1 3 1 3 4\n"));
}

TEST_CASE("names of readers") {
  for (const std::string_view name :
       {"bpe", "bpe-flagged", "wordpiece", "whitespace", "byte-fallback-bpe", "sentencepiece", "sentencepiece-listed",
        "sentencepiece-appended", "sentencepiece-redefined", "unigram", "unigram-fairseq", "rwkv", "plamo", "tiktoken",
        "none"}) {
    REQUIRE(tokenizer_reader_named(name));
    CHECK(tokenizer_reader_name(*tokenizer_reader_named(name)) == name);
  }
  CHECK(!tokenizer_reader_named("spm"));
}

// ---- special tokens and chat templates ----

namespace {

std::string special(const Folder& folder, std::vector<std::string> roles = {"bos", "eos", "sep", "cls"}) {
  const auto files = TokenizerFiles::read(folder.path());
  if (!files) return render(files.error());
  TokenizerMetadata out;
  const auto found = SpecialTokens::find(files.value(), std::move(roles), std::nullopt, out.warnings);
  if (!found) return render(found.error());
  found.value().write(out.metadata);
  return lines(out);
}

}  // namespace

TEST_CASE("a ByteLevel step adds neither BOS nor EOS unless another step decides, and beats tokenizer_config.json") {
  const auto special_of = [](const std::string& post_processor, const std::string& config) {
    Folder folder;
    folder.put("tokenizer_config.json", config)
        .put("tokenizer.json",
             R"({"added_tokens": [{"id": 1, "content": "<s>"}], "post_processor": )" + post_processor + "}");
    return special(folder);
  };
  const std::string bos = R"({"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}]})";
  const std::string bytes = R"({"type": "ByteLevel"})", ids = "ggml.bos_token_id = 1\n";
  const auto sequence = [](const std::string& first, const std::string& second) {
    return R"({"type": "Sequence", "processors": [)" + first + ", " + second + "]}";
  };
  const std::string config = R"({"bos_token": "<s>", "add_bos_token": true, "add_eos_token": true})";
  CHECK(special_of(bytes, config) == ids + "ggml.add_bos_token = false\nggml.add_eos_token = false\n");
  CHECK(special_of(sequence(bytes, bos), config) == ids + "ggml.add_bos_token = true\nggml.add_eos_token = false\n");
  CHECK(special_of(sequence(bos, bytes), config) == ids + "ggml.add_bos_token = true\nggml.add_eos_token = false\n");
  CHECK(special_of(bos, R"({"bos_token": "<s>", "add_bos_token": false, "add_eos_token": true})") ==
        ids + "ggml.add_bos_token = true\nggml.add_eos_token = true\n");
  CHECK(special_of(bytes, "{}") == "ggml.add_bos_token = false\nggml.add_eos_token = false\n");
  CHECK(special_of("null", config) == ids + "ggml.add_bos_token = true\nggml.add_eos_token = true\n");
}

TEST_CASE("whether BOS, EOS, and SEP are added is determined from the post-processor") {
  Folder folder;
  folder.put("tokenizer_config.json", R"({"cls_token": "[CLS]", "sep_token": "[SEP]"})").put("tokenizer.json", R"({
      "added_tokens": [{"id": 1, "content": "[CLS]"}, {"id": 2, "content": "[SEP]"}],
      "post_processor": {"type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "[CLS]"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "[SEP]"}}],
        "pair": [{"SpecialToken": {"id": "[CLS]"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "[SEP]"}},
                 {"Sequence": {"id": "B"}}, {"SpecialToken": {"id": "[SEP]"}}]}})");
  CHECK(special(folder) ==
        "ggml.bos_token_id = 1\nggml.eos_token_id = 2\nggml.seperator_token_id = 2\n"
        "ggml.add_bos_token = true\nggml.add_eos_token = true\nggml.add_sep_token = false\n");
  // If the last token is not the configuration's EOS, the latter becomes the end of turn.
  folder.put("tokenizer_config.json", R"({"bos_token": "[CLS]", "eos_token": "[EOS]"})").put("tokenizer.json", R"({
      "added_tokens": [{"id": 1, "content": "[CLS]"}, {"id": 2, "content": "[SEP]"}, {"id": 3, "content": "[EOS]"}],
      "post_processor": {"type": "Sequence", "processors": [{"type": "TemplateProcessing",
        "single": [{"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "[SEP]"}}], "pair": []}]}})");
  CHECK(special(folder) ==
        "ggml.bos_token_id = 1\nggml.eos_token_id = 2\nggml.eot_token_id = 3\nggml.add_eos_token = true\n");
  folder.put("tokenizer.json", R"({
      "added_tokens": [{"id": 1, "content": "[CLS]"}, {"id": 2, "content": "[SEP]"}, {"id": 3, "content": "[EOS]"}],
      "post_processor": {"type": "RobertaProcessing", "cls": ["[CLS]", 1], "sep": ["[SEP]", 2]}})");
  CHECK(special(folder) ==
        "ggml.bos_token_id = 1\nggml.eos_token_id = 3\nggml.seperator_token_id = 2\n"
        "ggml.add_bos_token = true\nggml.add_eos_token = true\nggml.add_sep_token = true\n");
}

TEST_CASE("ids come from the configuration through the added tokens, then from config.json") {
  Folder folder;
  folder.put("tokenizer.json", R"({"added_tokens": [{"id": 9, "content": "<e>"}]})")
      .put("tokenizer_config.json", R"({"bos_token": "<b>", "eos_token": {"content": "<e>"}})")
      .put("config.json", R"({"bos_token_id": 4, "eos_token_id": 5})");
  CHECK(special(folder) == "ggml.eos_token_id = 9\nggml.bos_token_id = 4\n");
  folder.put("config.json", R"({"bos_token_id": true, "sep_token_id": false})");
  CHECK(special(folder) == "ggml.eos_token_id = 9\nggml.bos_token_id = 1\nggml.seperator_token_id = 0\n");
  folder.put("config.json", R"({"bos_token_id": 4294967296})");
  CHECK(has(special(folder), "the id of the bos token is 4294967296; the largest id in a GGUF is 4294967295"));
  folder.put("config.json", R"({"bos_token_id": -1})");
  CHECK(has(special(folder), "the id of the bos token is -1, but no token has this id"));
}

TEST_CASE("chat templates: in the configuration, in files, with names") {
  Folder folder;
  folder.put("tokenizer_config.json", R"({"x": 1})").put("chat_template.json", R"({"chat_template": "from json"})");
  CHECK(special(folder) == "chat_template = \"from json\"\n");
  folder.put("chat_template.jinja", "from\r\njinja\r");
  CHECK(special(folder) == "chat_template = \"from\\njinja\\n\"\n");
  folder.put("additional_chat_templates/tool use.jinja", "tools").put("additional_chat_templates/notes.txt", "no");
  CHECK(special(folder) ==
        "chat_template.tool_use = \"tools\"\nchat_templates = \"tool_use\"\nchat_template = \"from\\njinja\\n\"\n");
  folder.put("tokenizer_config.json",
             R"({"chat_template": [{"name": "r\u00e4g", "template": "one"}, {"name": "", "template": "no"},
      {"name": "default", "template": "two"}]})");
  CHECK(special(folder) == "chat_template.r_g = \"one\"\nchat_templates = \"r_g\"\nchat_template = \"two\"\n");
  folder.put("tokenizer_config.json", R"({"chat_template": null})");
  CHECK(special(folder).empty());
}

TEST_CASE("a chat template that is not UTF-8 is an error that names the byte") {
  Folder folder;
  folder.put("tokenizer_config.json", R"({"x": 1})").put("chat_template.jinja", "{{ a }}\nGr\xfc\xdf");
  CHECK(has(special(folder), "chat_template.jinja:2:3: error: byte 0xfc is not UTF-8\n  help: save the file as UTF-8"));
}

TEST_CASE("of two chat templates that differ, a warning says which one is written") {
  const auto warnings = [](const Folder& folder) {
    TokenizerMetadata out;
    REQUIRE(SpecialTokens::find(TokenizerFiles::read(folder.path()).value(), {}, std::nullopt, out.warnings));
    return out.warnings.empty() ? std::string() : out.warnings.at(0);
  };
  Folder folder;
  folder.put("tokenizer_config.json", R"({"chat_template": "one"})");
  CHECK(warnings(folder).empty());
  folder.put("chat_template.jinja", "one\n");
  CHECK(warnings(folder).empty());
  folder.put("chat_template.jinja", "two");
  CHECK(
      has(warnings(folder), "tokenizer_config.json has the chat template that is written; chat_template.jinja beside"));
  folder.put("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "two"}]})");
  CHECK(warnings(folder).empty());
  folder.put("tokenizer_config.json", R"({"chat_template": null})");
  CHECK(has(warnings(folder), "has `chat_template: null`, so that no template is written; chat_template.jinja"));
  folder.put("tokenizer_config.json", R"({"x": 1})").put("chat_template.json", R"({"chat_template": "one"})");
  CHECK(has(warnings(folder), "chat_template.jinja is the chat template that is written; chat_template.json beside"));
  folder.put("chat_template.json", R"({"chat_template": "two"})");
  CHECK(warnings(folder).empty());
}

// ---- bad input ----

TEST_CASE("files that are too large, too deep, not UTF-8, or truncated: one error each") {
  Folder folder;
  const auto error_for = [&](std::string_view text) {
    folder.put("tokenizer.json", text);
    return error_of(folder.read(Reader::kBpe));
  };
  folder.put("tokenizer.json", "{}");
  fs::resize_file(folder.path() / "tokenizer.json", std::uint64_t{500} << 20);
  CHECK(has(error_of(folder.read(Reader::kBpe)), "524288000 bytes exceed the limit of such a file, 268435456"));
  CHECK(has(error_for(R"({"a": )" + std::string(10000, '[')), "nested more than 64 levels deep"));
  CHECK(has(error_for("{\"model\": {\"vocab\": {\"\xFF\": 1}}}"), "not UTF-8"));
  CHECK(has(error_for(R"({"model": {"vocab": {"a": 1})"), "unexpected end of file"));
  CHECK(has(error_for(R"({"model": {"vocab": {"a": 1}}} x)"), "unexpected data after the end of the document"));
  CHECK(has(error_for(""), "unexpected end of file"));
  CHECK(has(error_for("[]"), "not an object"));
  CHECK(has(error_for("{}"), "no `model` with a `vocab`"));
  CHECK(has(error_for(R"({"model": {"vocab": {"a": -1}}})"), "token 'a' has no id from 0 to 4194303"));
  CHECK(has(error_for(R"({"model": {"vocab": {"a": 1.5}}})"), "token 'a' has no id"));
  CHECK(has(error_for(R"({"model": {"vocab": {"a": {}}}})"), "entry 0 of the model's vocabulary is not a token"));
  CHECK(has(error_for(R"({"model": {"vocab": [["a"]]}})"), "entry 0 of the model's vocabulary is not a token"));
  CHECK(has(error_for(R"({"model": {"vocab": {"a": 0}, "merges": ["a b", "abc"]}})"),
            "merge 1 of the model is not a pair"));
  CHECK(has(error_for(R"({"model": {"vocab": {"a": 0}, "merges": [["a", "b", "c"]]}})"), "is not a pair of tokens"));
  CHECK(has(error_for(R"({"model": {"vocab": {"a": 0}, "merges": {"a": 1}}})"), "is not a pair of tokens"));
  CHECK(has(error_for(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}})"),
            "merge 0, 'a' and 'b', is not in"));
  std::string many = "{\"a\": [";
  for (int i = 0; i < 2'000'001; ++i) many += "0,";
  CHECK(has(error_for(many + "0]}"), "more than 2000000 values"));
}

TEST_CASE("a chat template of ten megabytes is rejected, wherever it is") {
  Folder folder;
  const std::string large(10 << 20, 'x');
  folder.put("tokenizer_config.json", "{\"chat_template\": \"" + large + "\"}");
  CHECK(has(special(folder), "a chat template of 10485760 bytes; the limit is 1048576"));
  folder.put("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"a\", \"template\": \"" + large + "\"}]}");
  CHECK(has(special(folder), "a chat template of 10485760 bytes"));
  folder.put("tokenizer_config.json", "{\"x\": 1}").put("chat_template.jinja", large);
  CHECK(has(special(folder), "10485760 bytes exceed the limit of such a file, 1048576"));
  folder.put("chat_template.jinja", "\xC3");
  CHECK(has(special(folder), "not UTF-8"));
}

TEST_CASE("a regular expression that would run forever is an error") {
  Folder folder;
  const auto with = [&](std::string_view pre_tokenizer) {
    folder.put("tokenizer.json", R"({"pre_tokenizer": )" + std::string(pre_tokenizer) +
                                     R"(, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
    return error_of(folder.read(Reader::kBpe));
  };
  CHECK(has(
      with(
          R"({"type": "Split", "pattern": {"Regex": "(?:(?:\\s|\\S)+)+[\\x{1}\\x{2}]"}, "behavior": "Isolated", "invert": false})"),
      "does not finish"));
  CHECK(has(with(R"({"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": false})"),
            "is not a valid regular expression: "));
  CHECK(has(
      with(R"({"type": "Split", "pattern": {"Regex": ")" + std::string(20000, 'a') + R"("}, "behavior": "Isolated"})"),
      "a regular expression of 20000 bytes"));
  CHECK(has(with(R"({"type": "Magic"})"), "the pre-tokenizer has an unknown type 'Magic'"));
}

TEST_CASE("a normalizer that expands a text endlessly is stopped") {
  std::string steps;
  for (int i = 0; i < 60; ++i) steps += R"({"type": "Replace", "pattern": {"String": "a"}, "content": "aaaaaaaa"},)";
  Folder folder;
  folder.put("tokenizer.json", R"({"normalizer": {"type": "Sequence", "normalizers": [)" + steps +
                                   R"({"type": "NFC"}]}, "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  CHECK(has(error_of(folder.read(Reader::kBpe)), "the normalizer expands a short text to more than 65536 bytes"));
}

TEST_CASE("invalid SentencePiece files: one error each") {
  Folder folder;
  const auto error_for = [&](std::string_view bytes) {
    folder.put("tokenizer.model", bytes);
    return error_of(folder.read(Reader::kSentencePiece));
  };
  const std::string good = sentencepiece(2);
  CHECK(has(error_for("version https://git-lfs.github.com/spec/v1\n"), "this is not a SentencePiece model"));
  CHECK(has(error_for(""), "this is not a SentencePiece model"));
  CHECK(has(error_for(good.substr(0, good.size() - 1)), "this is not a SentencePiece model"));
  CHECK(has(error_for(piece("a", 0, 1)), "0 pieces have type UNKNOWN"));
  CHECK(has(error_for(good + piece("", 0, 1)), "piece 5 is empty"));
  CHECK(has(error_for(good + piece("\xFF", 0, 1)), "piece 5 is not UTF-8"));
  CHECK(has(error_for(good + std::string(12, '\xFF')), "this is not a SentencePiece model"));
  fs::resize_file(folder.path() / "tokenizer.model", std::uint64_t{500} << 20);
  CHECK(has(error_of(folder.read(Reader::kSentencePiece)), "524288000 bytes; the limit for a tokenizer is"));
}

namespace {

constexpr std::string_view kTekkenConfig =
    R"("config": {"version": "v7", "default_vocab_size": 266, "default_num_special_tokens": 6})";
constexpr std::string_view kTekkenSpecial =
    R"("special_tokens": [{"rank": 0, "token_str": "<unk>"}, {"rank": 1, "token_str": "<s>"},
                          {"rank": 2, "token_str": "</s>"}, {"rank": 3, "token_str": "<pad>"}])";

std::string tekken_token(std::size_t rank, std::string_view base64) {
  return "{\"rank\": " + std::to_string(rank) + ", \"token_bytes\": \"" + std::string(base64) +
         "\", \"token_str\": null}";
}
// The 256 bytes, then "ab", "bc", "abc" and " a".
std::string tekken_vocabulary() {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text = "\"vocab\": [";
  for (std::size_t i = 0; i < 256; ++i)
    text += tekken_token(i, std::string{kDigits[i >> 2], kDigits[(i & 3) << 4], '=', '='}) + ",";
  return text + tekken_token(256, "YWI=") + "," + tekken_token(257, "YmM=") + "," + tekken_token(258, "YWJj") + "," +
         tekken_token(259, "IGE=") + "]";
}
std::string tekken(std::string_view config, std::string_view special, std::string_view vocabulary) {
  return "{" + std::string(config) + ", " + std::string(special) + ", " + std::string(vocabulary) + "}";
}

}  // namespace

TEST_CASE("tekken.json: bytes with ranks after the special tokens, and all ways to merge two tokens into one") {
  Folder folder;
  folder.put("tekken.json", tekken(kTekkenConfig, kTekkenSpecial, tekken_vocabulary()))
      .put("tokenizer_config.json", R"({"chat_template": "not this", "add_prefix_space": true})");
  TokenizerOptions options;
  options.space_prefix_of_config = true;
  const std::string text = lines(folder.read(Reader::kTekken, options));
  CHECK(text.starts_with(
      "ggml.model = \"gpt2\"\n"
      "ggml.pre = \"tekken\"\n"
      "ggml.merges = \"a b\" \"b c\" \"a bc\" \"ab c\" \"\u0120 a\"\n"
      "ggml.bos_token_id = 1\n"
      "ggml.eos_token_id = 2\n"
      "ggml.unknown_token_id = 0\n"
      "ggml.padding_token_id = 3\n"
      "ggml.tokens = \"<unk>\" \"<s>\" \"</s>\" \"<pad>\" \"<SPECIAL_4>\" \"<SPECIAL_5>\" \"\u0100\" \"\u0101\""));
  CHECK(has(text, " \"ab\" \"bc\" \"abc\" \"\u0120a\"\nggml.scores = 0 0 "));
  CHECK(
      text.ends_with(" 1\nvocab_size = 266\nggml.add_bos_token = true\nggml.add_eos_token = false\nchat_template = "
                     "\"mistral-v7-tekken\"\n"));
  // Files of later versions have a template next to them, or none.
  const std::string later =
      R"("config": {"version": "v13", "default_vocab_size": 266, "default_num_special_tokens": 6})";
  folder.put("tekken.json", tekken(later, kTekkenSpecial, tekken_vocabulary()));
  const auto none = folder.read(Reader::kTekken);
  REQUIRE(none);
  CHECK(none.value().metadata.find("tokenizer.chat_template") == nullptr);
  CHECK(none.value().warnings.size() == 1);
  folder.put("chat_template.jinja", "{{ messages }}");
  CHECK(lines(folder.read(Reader::kTekken)).ends_with("chat_template = \"{{ messages }}\"\n"));
  // tokenizer.json takes precedence.
  folder.put("tokenizer.json", kBpe);
  CHECK(has(error_of(folder.read(Reader::kTekken)), "no tokenizer"));
}

TEST_CASE(
    "tekken.json of a checkpoint in Mistral's own format: next to tokenizer.json, and the folder's template first") {
  Folder folder;
  folder.put("tekken.json", tekken(kTekkenConfig, kTekkenSpecial, tekken_vocabulary()))
      .put("tokenizer.json", kBpe)
      .put("chat_template.jinja", "{{ messages }}");
  TokenizerOptions options;
  options.readers = {{.reader = Reader::kTekken, .own_format = true}};
  const std::string text = lines(read_tokenizer(folder.path(), options));
  CHECK(text.starts_with("ggml.model = \"gpt2\"\nggml.pre = \"tekken\"\n"));
  CHECK(text.ends_with("chat_template = \"{{ messages }}\"\n"));
}

TEST_CASE("tekken.json that is damaged") {
  const auto fault = [](std::string_view config, std::string_view special, std::string_view vocabulary) {
    Folder folder;
    folder.put("tekken.json", tekken(config, special, vocabulary));
    return error_of(folder.read(Reader::kTekken));
  };
  const std::string vocabulary = tekken_vocabulary();
  const auto changed = [](std::string text, std::string_view from, std::string_view to) {
    const std::size_t at = text.rfind(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
  };
  CHECK(has(fault("\"x\": 1", kTekkenSpecial, vocabulary), "has no config"));
  CHECK(has(fault(changed(std::string(kTekkenConfig), "v7", "seven"), kTekkenSpecial, vocabulary), "is not a version"));
  CHECK(has(fault(changed(std::string(kTekkenConfig), "266", "-1"), kTekkenSpecial, vocabulary),
            "config.default_vocab_size is -1"));
  CHECK(has(fault(changed(std::string(kTekkenConfig), "266", "267"), kTekkenSpecial, vocabulary),
            "the vocabulary should have 267 tokens, 6 of them special, but has 260 others"));
  CHECK(has(fault(R"("config": {"version": "v7", "default_vocab_size": 263, "default_num_special_tokens": 3})",
                  kTekkenSpecial, vocabulary),
            "more special tokens than"));
  CHECK(has(fault(changed(std::string(kTekkenConfig), "v7", "v11"), "\"x\": 1", vocabulary), "has no special_tokens"));
  CHECK(has(fault(kTekkenConfig, changed(std::string(kTekkenSpecial), "<pad>", "<s>"), vocabulary),
            "the special token '<s>' appears twice"));
  CHECK(has(fault(kTekkenConfig, changed(std::string(kTekkenSpecial), "<pad>", "x"), vocabulary),
            "there is no special token <pad>"));
  CHECK(has(fault(kTekkenConfig, kTekkenSpecial, changed(vocabulary, "YWJj", "YWI=")), "token 258 appears twice"));
  CHECK(has(fault(kTekkenConfig, kTekkenSpecial, changed(vocabulary, "YWJj", "YYYj")),
            "token 258 cannot be made of two others"));
  CHECK(
      has(fault(kTekkenConfig, kTekkenSpecial, changed(vocabulary, "YWJj", "?")), "entry 258 of vocab is not a token"));
  CHECK(has(fault(kTekkenConfig, kTekkenSpecial, changed(vocabulary, ": 258", ": 7")), "entry 258 of vocab"));
  CHECK(has(fault(kTekkenConfig, kTekkenSpecial, changed(vocabulary, "AQ==", "AA==")), "token 1 is not the byte 1"));
  CHECK(has(fault(kTekkenConfig, kTekkenSpecial, changed(vocabulary, "YWJj", std::string(1372, 'A'))),
            "token 258 has 1029 bytes; the limit is 1024"));
  CHECK(has(fault(kTekkenConfig, kTekkenSpecial, "\"vocab\": [[1]]"), "entry 0 of vocab is not a token"));
  CHECK(has(fault(kTekkenConfig, kTekkenSpecial, "\"vocab\": {\"a\": 1}"), "entry 0 of vocab is not a token"));
}
