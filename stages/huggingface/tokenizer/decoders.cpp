#include <algorithm>
#include <utility>

#include "stages/huggingface/tokenizer/step_maker.h"
#include "stages/huggingface/tokenizer/text_steps.h"
#include "stages/huggingface/tokenizer/unicode.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

std::string cleaned(std::string text) {
  constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kPairs) replace_all(text, from, to);
  return text;
}

using Tokens = std::vector<std::string>;

// Replaces consecutive <0xNN> tokens with their bytes, or with one U+FFFD per token if the bytes are not UTF-8.
void join_bytes(Tokens& tokens) {
  Tokens out;
  std::string bytes;
  const auto flush = [&] {
    if (is_utf8(bytes)) {
      if (!bytes.empty()) out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), "\uFFFD");
    }
    bytes.clear();
  };
  for (std::string& token : tokens) {
    if (const std::optional<unsigned char> byte = byte_token(token)) {
      bytes += static_cast<char>(*byte);
    } else {
      flush();
      out.push_back(std::move(token));
    }
  }
  flush();
  tokens = std::move(out);
}

std::string joined(const Tokens& tokens) {
  std::string out;
  for (const std::string& token : tokens) out += token;
  return out;
}

// Keeps well-formed sequences and replaces anything else with U+FFFD.
std::string lossy_utf8(std::string_view bytes) {
  std::string out;
  for (const Character& character : characters(bytes)) append_utf8(out, character.code);
  return out;
}

void strip_token(std::string& token, std::string_view content, std::size_t start, std::size_t stop) {
  for (std::size_t i = 0; i < start && !content.empty() && token.starts_with(content); ++i)
    token.erase(0, content.size());
  for (std::size_t i = 0; i < stop && !content.empty() && token.ends_with(content); ++i)
    token.erase(token.size() - content.size());
}

class DecoderMaker : public Maker<Decoder, Tokens> {
 public:
  explicit DecoderMaker(const std::string& path) : Maker(path, "decoder", "decoders", total) {}

 private:
  static std::size_t total(const Tokens& tokens) {
    std::size_t bytes = 0;
    for (const std::string& token : tokens) bytes += token.size();
    return bytes;
  }

  static Decoder for_each_token(std::function<void(std::size_t, std::string&)> change) {
    return [change = std::move(change)](Tokens& tokens) -> Status {
      for (std::size_t i = 0; i < tokens.size(); ++i) change(i, tokens[i]);
      return ok();
    };
  }

  Result<Decoder> of_type(const std::string& type, const json::value& step) override {
    if (type == "ByteLevel") {
      return Decoder([](Tokens& tokens) -> Status {
        std::string bytes;
        for (const std::string& token : tokens) bytes += from_byte_level(token).value_or(token);
        tokens = {lossy_utf8(bytes)};
        return ok();
      });
    }
    if (type == "Fuse") {
      return Decoder([](Tokens& tokens) -> Status {
        tokens = {joined(tokens)};
        return ok();
      });
    }
    if (type == "ByteFallback") {
      return Decoder([](Tokens& tokens) -> Status {
        join_bytes(tokens);
        return ok();
      });
    }
    if (type == "Metaspace") {
      const bool drop =
          json_flag(step, "add_prefix_space", true) && step_text(step, "prepend_scheme", "always") != "never";
      return for_each_token([drop, mark = step_text(step, "replacement", "\u2581")](std::size_t i, std::string& token) {
        replace_all(token, mark, drop && i == 0 ? "" : " ");
      });
    }
    if (type == "WordPiece") {
      return for_each_token([prefix = step_text(step, "prefix", "##"), clean = json_flag(step, "cleanup", true)](
                                std::size_t i, std::string& token) {
        if (i != 0) token = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
        if (clean) token = cleaned(token);
      });
    }
    if (type == "BPEDecoder") {
      return Decoder([suffix = step_text(step, "suffix", "</w>")](Tokens& tokens) -> Status {
        for (std::size_t i = 0; i < tokens.size(); ++i)
          replace_all(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
        return ok();
      });
    }
    if (type == "Strip") {
      const auto times = [&](std::string_view name) {
        const json::value* value = json_member(step, name);
        return value && value->is_int64() && value->get_int64() > 0 ? static_cast<std::size_t>(value->get_int64()) : 0;
      };
      return for_each_token([content = step_text(step, "content", " "), start = times("start"), stop = times("stop")](
                                std::size_t, std::string& token) { strip_token(token, content, start, stop); });
    }
    if (type == "Replace") {
      BOOST_OUTCOME_TRY(Regex regex, step_pattern(path_, step, budget_));
      return Decoder([regex = std::move(regex), content = step_text(step, "content", "")](Tokens& tokens) -> Status {
        for (std::string& token : tokens) {
          BOOST_OUTCOME_TRY(token, replaced(regex, content, token));
        }
        return ok();
      });
    }
    return Decoder();
  }
};

}  // namespace

Result<Decoder> make_decoder(const std::string& path, const json::value* step) {
  if (step && !step->is_null()) return DecoderMaker(path).make(*step);
  return Decoder([](Tokens& tokens) -> Status {
    std::string out;
    for (const std::string& token : tokens) out += (out.empty() ? "" : " ") + token;
    tokens = {out};
    return ok();
  });
}

}  // namespace ggufmill::huggingface
