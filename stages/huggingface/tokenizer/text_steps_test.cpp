#include "stages/huggingface/tokenizer/text_steps.h"

#include <boost/json/parse.hpp>

#include "stages/huggingface/tokenizer/encoder.h"
#include "stages/huggingface/tokenizer/regex.h"
#include "stages/huggingface/tokenizer/tokenizer_json.h"
#include "tests/support/catch.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;
namespace json = boost::json;

namespace {

std::string normalized(const char* step, std::string text) {
  const json::value value = json::parse(step);
  const auto normalizer = make_normalizer("t", &value);
  if (!normalizer) return render(normalizer.error());
  const auto done = normalizer.value()(text);
  return done ? text : render(done.error());
}

// Returns the pieces separated by bars.
std::string cut(const char* step, std::string text) {
  const json::value value = json::parse(step);
  const auto pre_tokenizer = make_pre_tokenizer("t", &value);
  if (!pre_tokenizer) return render(pre_tokenizer.error());
  std::vector<Piece> pieces{{std::move(text), true, {}}};
  const auto done = pre_tokenizer.value()(pieces);
  if (!done) return render(done.error());
  std::string out;
  for (const Piece& piece : pieces) out += (out.empty() ? "" : "|") + piece.text;
  return out;
}

std::string decoded(const char* step, std::vector<std::string> tokens) {
  const json::value value = json::parse(step);
  const auto decoder = make_decoder("t", value.is_null() ? nullptr : &value);
  if (!decoder) return render(decoder.error());
  const auto done = decoder.value()(tokens);
  if (!done) return render(done.error());
  std::string out;
  for (const std::string& token : tokens) out += (out.empty() ? "" : "|") + token;
  return out;
}

std::vector<std::uint32_t> ids_of(const char* file, std::string_view text, const char* config = "{}") {
  const auto parsed = parse_tokenizer_json("t", file);
  REQUIRE(parsed);
  const auto loaded = LoadedTokenizer::load(parsed.value(), json::parse(config));
  REQUIRE(loaded);
  const auto ids = loaded.value().encode(text);
  CAPTURE(ids ? "" : render(ids.error()));
  REQUIRE(ids);
  return ids.value();
}

using Ids = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("normalizers") {
  CHECK(normalized(R"({"type": "NFD"})", "\u00E9") == "e\u0301");
  CHECK(normalized(R"({"type": "NFC"})", "e\u0301") == "\u00E9");
  CHECK(normalized(R"({"type": "NFKC"})", "\uFB01 \u2460") == "fi 1");
  CHECK(normalized(R"({"type": "NFKD"})", "\u1E9B\u0323") == "s\u0323\u0307");
  CHECK(normalized(R"({"type": "Lowercase"})", "\u0391\u03A3 \u0130X") == "\u03B1\u03C3 i\u0307x");
  CHECK(normalized(R"({"type": "StripAccents"})", "e\u0301") == "e");
  CHECK(normalized(R"({"type": "Strip", "strip_left": true, "strip_right": false})", "\u00A0 a b ") == "a b ");
  CHECK(normalized(R"({"type": "Strip", "strip_left": true, "strip_right": true})", "  ").empty());
  CHECK(normalized(R"({"type": "Prepend", "prepend": "\u2581"})", "a") == "\u2581a");
  CHECK(normalized(R"({"type": "Replace", "pattern": {"String": "."}, "content": "-"})", "a.b") == "a-b");
  CHECK(normalized(R"({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "})", "a   b c") == "a b c");
  CHECK(normalized(R"({"type": "Nmt"})", "a\u0001\u200B\u2581b\tc") == "a  b c");
  CHECK(normalized(R"({"type": "ByteLevel"})", " \u00E9") == "\u0120\u00C3\u00A9");
  CHECK(
      normalized(R"({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null,
                       "lowercase": true})",
                 "A\u00C9\t\uFFFD\u4E2Db\u200D") == "ae  \u4E2D b");
  CHECK(
      normalized(
          R"({"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}, {"type": "Lowercase"}]})",
          "\u00C9") == "e");
  CHECK(normalized(R"({"type": "Sequence"})", "a").find("has no `normalizers` list") != std::string::npos);
  CHECK(normalized(R"({"type": "Precompiled"})", "a").find("has an unknown type 'Precompiled'") != std::string::npos);
}

TEST_CASE("the ways to split") {
  const auto split = [](const char* behavior, bool invert = false) {
    const std::string step = R"({"type": "Split", "pattern": {"String": "-"}, "behavior": ")" + std::string(behavior) +
                             R"(", "invert": )" + (invert ? "true}" : "false}");
    return cut(step.c_str(), "The-final--countdown");
  };
  CHECK(split("Removed") == "The|final|countdown");
  CHECK(split("Isolated") == "The|-|final|-|-|countdown");
  CHECK(split("MergedWithPrevious") == "The-|final-|-|countdown");
  CHECK(split("MergedWithNext") == "The|-final|-|-countdown");
  CHECK(split("Contiguous") == "The|-|final|--|countdown");
  CHECK(split("Removed", true) == "-|-|-");
}

TEST_CASE("pre-tokenizers") {
  CHECK(cut(R"({"type": "ByteLevel", "add_prefix_space": true, "use_regex": true})", "I'll be  42") ==
        "\u0120I|'ll|\u0120be|\u0120|\u012042");
  CHECK(cut(R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": false})", "a b") == "a\u0120b");
  CHECK(cut(R"({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"})", "a b") ==
        "\u2581a|\u2581b");
  CHECK(cut(R"({"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "never", "split": false})", "a b") ==
        "a\u2581b");
  CHECK(cut(R"({"type": "Metaspace", "replacement": "\u2581", "add_prefix_space": false})", "a b") == "a|\u2581b");
  CHECK(cut(R"({"type": "Punctuation"})", "a,.b") == "a|,|.|b");
  CHECK(cut(R"({"type": "Digits", "individual_digits": true})", "a12") == "a|1|2");
  CHECK(cut(R"({"type": "Digits", "individual_digits": false})", "a12b") == "a|12|b");
  CHECK(cut(R"({"type": "Whitespace"})", "a b,c\u200Dd!?") == "a|b|,|c\u200Dd|!?");
  CHECK(cut(R"({"type": "WhitespaceSplit"})", " a  b,") == "a|b,");
  CHECK(cut(R"({"type": "CharDelimiterSplit", "delimiter": "_"})", "a_b") == "a|b");
  CHECK(cut(R"({"type": "BertPreTokenizer"})", "a b,c") == "a|b|,|c");
  CHECK(cut(R"({"type": "UnicodeScripts"})", " ab \u3042\u30AB\u4E2D c") == "ab |\u3042\u30AB\u4E2D |c");
  CHECK(cut(R"({"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
               {"type": "ByteLevel", "add_prefix_space": false}]})",
            "a 12") == "a|\u0120|1|2");
}

TEST_CASE("decoders") {
  CHECK(decoded("null", {"a", "b"}) == "a b");
  CHECK(decoded(R"({"type": "ByteLevel"})", {"\u0120a", "\u00C3\u00A9", "\u2581"}) == " a\u00E9\u2581");
  CHECK(decoded(R"({"type": "ByteLevel"})", {"\u00F0\u0141"}) == "\uFFFD");
  CHECK(decoded(R"({"type": "Metaspace", "replacement": "\u2581"})", {"\u2581a", "\u2581b"}) == "a| b");
  CHECK(decoded(R"({"type": "WordPiece", "prefix": "##", "cleanup": true})", {"do", "##n't", "."}) == "do|n't|.");
  CHECK(decoded(R"({"type": "BPEDecoder", "suffix": "</w>"})", {"a</w>", "b</w>"}) == "a |b");
  CHECK(
      decoded(R"({"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
                   {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})",
              {"\u2581a", "<0xC3>", "<0xA9>", "<0xFF>"}) == "a\uFFFD\uFFFD\uFFFD");
  CHECK(decoded(R"({"type": "ByteFallback"})", {"<0xC3>", "<0xA9>", "x"}) == "\u00E9|x");
  CHECK(decoded(R"({"type": "CTC"})", {"a"}).find("has an unknown type 'CTC'") != std::string::npos);
}

TEST_CASE("patterns have the same meaning as in Oniguruma") {
  CHECK(pcre2_pattern(R"([^\r\n\p{L}]?\p{L}+| ?[\[\]]+|\s+(?!\S))") == R"([^\r\n\p{L}]?\p{L}+| ?[\[\]]+|\s+(?!\S))");
  CHECK(pcre2_pattern(R"(\p{N}{1,3}+x)") == R"((?:\p{N}{1,3})+x)");
  CHECK(pcre2_pattern(R"((?:ab){2}+)") == R"((?:(?:ab){2})+)");
  CHECK(pcre2_pattern(R"([\u4e00-\u9fa5])") == R"([\x{4e00}-\x{9fa5}])");
  CHECK(pcre2_pattern(R"([\p{L}&&[^\p{Han}]]+)") == R"((?:(?=[^\p{Han}])[\p{L}])+)");
  CHECK(pcre2_pattern(R"(\h+\H)") == R"([0-9a-fA-F]+[^0-9a-fA-F])");
  CHECK(pcre2_pattern(R"([a[bc]])") == "[abc]");
  const auto matches = [](std::string_view pattern, std::string_view text) {
    const auto regex = Regex::compile("t", pattern, std::make_shared<MatchBudget>());
    REQUIRE(regex);
    const auto found = regex.value().find_all(text);
    REQUIRE(found);
    std::string out;
    for (const auto& [begin, end] : found.value()) out += "<" + std::string(text.substr(begin, end - begin)) + ">";
    return out;
  };
  CHECK(matches(R"([\p{L}&&[^\p{Han}]]+|\p{Han}+)", "ab\u4E2D\u6587c") == "<ab><\u4E2D\u6587><c>");
  CHECK(matches(R"((?i:'s|'t))", "'S't'x") == "<'S><'t>");
  CHECK(matches(R"(\w+)", "\u1780\u17B6_1-") == "<\u1780\u17B6_1>");
  CHECK(matches("x*", "axb") == "<><x><>");
  CHECK(matches("^a", "a\na") == "<a><a>");
}

TEST_CASE("BPE merges the pair of lowest rank first, the leftmost of several") {
  constexpr const char* kFile = R"({"model": {"type": "BPE", "unk_token": "?", "fuse_unk": true,
      "vocab": {"?": 0, "a": 1, "b": 2, "c": 3, "bc": 4, "ab": 5, "abc": 6, "aa": 7}, "merges": ["b c", "a b", "a bc", "a a"]}})";
  CHECK(ids_of(kFile, "abc") == Ids{6});
  CHECK(ids_of(kFile, "aab") == Ids{1, 5});
  CHECK(ids_of(kFile, "aaa") == Ids{7, 1});
  CHECK(ids_of(kFile, "xya\u4E2D") == Ids{0, 1, 0});
  CHECK(ids_of(R"({"model": {"type": "BPE", "ignore_merges": true, "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": []}})",
               "ab") == Ids{2});
  CHECK(
      ids_of(R"({"model": {"type": "BPE", "byte_fallback": true, "vocab": {"<0xC3>": 0, "<0xA9>": 1}, "merges": []}})",
             "\u00E9") == Ids{0, 1});
  CHECK(ids_of(R"({"model": {"type": "BPE", "end_of_word_suffix": "</w>", "vocab": {"a": 0, "b</w>": 1, "ab</w>": 2},
                             "merges": ["a b</w>"]}})",
               "ab") == Ids{2});
}

TEST_CASE("word pieces take the longest token, and a word with an unknown part is unknown") {
  constexpr const char* kFile = R"({"pre_tokenizer": {"type": "BertPreTokenizer"}, "model": {"type": "WordPiece",
      "unk_token": "[UNK]", "max_input_chars_per_word": 5, "vocab": {"[UNK]": 0, "un": 1, "##aff": 2, "##a": 3, "##ff": 4}}})";
  CHECK(ids_of(kFile, "unaff una unx unaffa") == Ids{1, 2, 1, 3, 0, 0});
  CHECK(ids_of(R"({"pre_tokenizer": {"type": "Whitespace"}, "model": {"type": "WordLevel", "unk_token": "?",
                   "vocab": {"?": 0, "a": 1}}})",
               "a b") == Ids{1, 0});
}

TEST_CASE("added tokens are found before anything else, normalized ones after the normalizer") {
  constexpr const char* kFile = R"({"normalizer": {"type": "Lowercase"},
      "added_tokens": [{"id": 2, "content": "<X>", "normalized": false}, {"id": 3, "content": "YES", "normalized": true},
                       {"id": 4, "content": "<X>A", "normalized": false},
                       {"id": 5, "content": "ok", "normalized": false, "single_word": true},
                       {"id": 6, "content": "#", "normalized": false, "lstrip": true, "rstrip": true}],
      "model": {"type": "BPE", "vocab": {"a": 0, " ": 1}, "merges": []}})";
  CHECK(ids_of(kFile, "a<X>a<X>Ayes") == Ids{0, 2, 0, 4, 3});
  CHECK(ids_of(kFile, "ok aoka") == Ids{5, 1, 0, 0});
  CHECK(ids_of(kFile, "a # a") == Ids{0, 6, 0});
}

TEST_CASE("tokenizer_config.json overrides tokenizer.json, as in the library") {
  constexpr const char* kFile = R"({"added_tokens": [{"id": 1, "content": "<s>"}], "post_processor": null,
      "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";
  CHECK(ids_of(kFile, "a", R"({"tokenizer_class": "LlamaTokenizerFast", "unk_token": "<s>", "eos_token": "</s>"})") ==
        Ids{1, 0});
  CHECK(
      ids_of(
          kFile, "a",
          R"({"tokenizer_class": "LlamaTokenizer", "unk_token": null, "add_bos_token": false, "add_eos_token": true})") ==
      Ids{0, 2});
  CHECK(ids_of(kFile, "<t>a", R"({"added_tokens_decoder": {"2": {"content": "<t>"}}})") == Ids{2, 0});
}
