#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "pipeline/core/json.h"
#include "pipeline/core/json_builder.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;
using Kind = JsonEvent::Kind;

class Parser {
 public:
  Parser(const JsonPieces& text, JsonDialect dialect, JsonSink* sink)
      : source_(text), dialect_(dialect), builder_(sink), at_(text.offset) {}

  Result<json::value> read(bool* malformed) {
    if (document()) return builder_.release();
    if (failure_) return *failure_;
    if (malformed) *malformed = is_malformed_;
    Error error = input_error(std::string(source_.path), fmt::format("not valid JSON: {}", problem_), help_);
    error.detail = fmt::format("reading stopped at byte {:#x}", at());
    return error;
  }

 private:
  static constexpr int kEnd = -1;

  // Returns the next byte without consuming it, or kEnd.
  int peek() {
    if (place_ == piece_.size() && !refill()) return kEnd;
    return static_cast<unsigned char>(piece_[place_]);
  }
  bool refill() {
    if (ended_) return false;
    auto next = source_.next();
    at_ += piece_.size();
    place_ = 0;
    piece_ = next ? next.value() : std::string_view();
    if (!next) failure_ = next.error();
    ended_ = piece_.empty();
    return !ended_;
  }
  std::uint64_t at() const { return at_ + place_; }
  bool take(char c) {
    if (peek() != static_cast<unsigned char>(c)) return false;
    ++place_;
    return true;
  }

  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool malformed(std::string problem) {
    is_malformed_ = true;
    return fail(std::move(problem));
  }
  // Reports the next byte as an error.
  bool unexpected() {
    const int byte = peek();
    if (byte == kEnd) return malformed("unexpected end of file");
    if (byte >= 0x80) return fail("not UTF-8");
    return malformed(fmt::format("unexpected {}", quoted_name(std::string(1, static_cast<char>(byte)))));
  }
  bool done(std::string problem) { return problem.empty() || fail(std::move(problem)); }

  void skip_space() {
    for (int byte = peek(); byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; byte = peek()) ++place_;
  }

  bool document() {
    if (peek() >= 0xfe) return fail("not UTF-8: it begins with the byte order mark of UTF-16");
    if (peek() == 0xef && piece_.starts_with("\xef\xbb\xbf")) {
      help_ = "save it as UTF-8 without a byte order mark";
      return malformed("it begins with a byte order mark");
    }
    if (!value()) return false;
    skip_space();
    if (peek() == kEnd) return !failure_;
    return malformed("unexpected data after the end of the document");
  }

  // The nesting depth is limited by the builder.
  bool value() {  // NOLINT(misc-no-recursion)
    skip_space();
    switch (peek()) {
      case '{':
        return object();
      case '[':
        return array();
      case '"':
        return text() && done(builder_.string(text_)) && take('"');
      case 't':
        return word("true") && done(builder_.other(true));
      case 'f':
        return word("false") && done(builder_.other(false));
      case 'n':
        return word("null") && done(builder_.other(nullptr));
      case 'N':
        return dialect_ == JsonDialect::kPython ? word("NaN") && done(builder_.number("NaN")) : unexpected();
      case 'I':
        return dialect_ == JsonDialect::kPython ? word("Infinity") && done(builder_.number("Infinity")) : unexpected();
      default:
        return number();
    }
  }

  bool object() {  // NOLINT(misc-no-recursion)
    if (!done(builder_.open(Kind::kObjectBegin))) return false;
    ++place_;
    skip_space();
    for (bool first = true; peek() != '}' || !first; first = false) {
      skip_space();
      if (peek() != '"') return unexpected();
      if (!text() || !done(builder_.key(text_)) || !take('"')) return false;
      skip_space();
      if (!take(':')) return unexpected();
      if (!value()) return false;
      skip_space();
      if (peek() == '}') break;
      if (!take(',')) return unexpected();
    }
    if (!done(builder_.close(Kind::kObjectEnd))) return false;
    ++place_;
    return true;
  }

  bool array() {  // NOLINT(misc-no-recursion)
    if (!done(builder_.open(Kind::kArrayBegin))) return false;
    ++place_;
    skip_space();
    for (bool first = true; peek() != ']' || !first; first = false) {
      if (!value()) return false;
      skip_space();
      if (peek() == ']') break;
      if (!take(',')) return unexpected();
    }
    if (!done(builder_.close(Kind::kArrayEnd))) return false;
    ++place_;
    return true;
  }

  bool word(std::string_view word) {
    for (const char c : word)
      if (!take(c)) return unexpected();
    return true;
  }

  bool digits() {
    if (!(peek() >= '0' && peek() <= '9')) return unexpected();
    while (peek() >= '0' && peek() <= '9') keep();
    return true;
  }
  void keep() { text_ += piece_[place_++]; }

  bool number() {
    text_.clear();
    if (peek() == '-') keep();
    if (peek() == 'I' && !text_.empty() && dialect_ == JsonDialect::kPython)
      return word("Infinity") && done(builder_.number("-Infinity"));
    if (peek() == '0')
      keep();
    else if (!digits())
      return false;
    if (peek() == '.') {
      keep();
      if (!digits()) return false;
    }
    if (peek() == 'e' || peek() == 'E') {
      keep();
      if (peek() == '+' || peek() == '-') keep();
      if (!digits()) return false;
    }
    return done(builder_.number(text_));
  }

  // Reads a string into text_: starts at its opening quotation mark, and leaves the closing one for the caller.
  bool text() {
    ++place_;
    text_.clear();
    while (true) {
      const std::size_t run = text_.size();
      const std::uint64_t run_at = at();
      int byte = peek();
      for (; byte != kEnd && byte != '"' && byte != '\\' && byte >= 0x20; byte = peek()) keep_run();
      if (byte == kEnd) return unexpected();
      if (!check_run(run, run_at)) return false;
      if (byte < 0x20) return malformed("a control character in a string");
      if (byte == '"') return true;
      ++place_;
      if (!escape()) return false;
    }
  }
  // Appends the part of the run that is in this piece.
  void keep_run() {
    const std::size_t first = place_;
    while (place_ < piece_.size() && piece_[place_] != '"' && piece_[place_] != '\\' &&
           static_cast<unsigned char>(piece_[place_]) >= 0x20)
      ++place_;
    text_ += piece_.substr(first, place_ - first);
  }
  bool check_run(std::size_t run, std::uint64_t run_at) {
    for (std::string_view rest = std::string_view(text_).substr(run); !rest.empty();) {
      const std::size_t bytes = utf8_sequence(rest);
      if (bytes == 0) {
        at_ = run_at + (text_.size() - run - rest.size());
        place_ = 0;
        return fail("not UTF-8");
      }
      rest.remove_prefix(bytes);
    }
    return true;
  }

  bool escape() {
    constexpr std::string_view kEscapes = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    const int byte = peek();
    if (byte == kEnd) return unexpected();
    if (byte == 'u') {
      ++place_;
      unsigned code = 0;
      return code_unit(code) && code_point(code);
    }
    const std::size_t found = kEscapes.find(static_cast<char>(byte));
    if (found == kEscapes.npos) return malformed("invalid escape");
    ++place_;
    text_ += kMeanings[found];
    return true;
  }
  bool code_unit(unsigned& code) {
    code = 0;
    for (int i = 0; i < 4; ++i) {
      const int byte = peek();
      if (byte == kEnd) return unexpected();
      const std::size_t digit = std::string_view("0123456789abcdef").find(static_cast<char>(byte | 0x20));
      if (digit == std::string_view::npos || byte < '0') return malformed("\\u without four hexadecimal digits");
      code = code << 4 | static_cast<unsigned>(digit);
      ++place_;
    }
    return true;
  }
  static bool is_high(unsigned code) { return code >= 0xd800 && code < 0xdc00; }
  static bool is_low(unsigned code) { return code >= 0xdc00 && code < 0xe000; }
  // `code` comes from the escape just read; the other half of a surrogate pair follows it.
  bool code_point(unsigned code) {
    while (is_high(code)) {
      if (peek() != '\\') break;
      ++place_;
      if (peek() != 'u') return half(code) && escape();
      ++place_;
      unsigned low = 0;
      if (!code_unit(low)) return false;
      if (is_low(low)) {
        append_utf8(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00));
        return true;
      }
      if (!half(code)) return false;
      code = low;
    }
    if (is_high(code) || is_low(code)) return half(code);
    append_utf8(code);
    return true;
  }
  bool half(unsigned code) {
    if (dialect_ == JsonDialect::kStrict)
      return malformed(fmt::format("\\u{:04x} is half of a surrogate pair whose other half is missing", code));
    append_utf8(code);
    return true;
  }
  void append_utf8(unsigned code) {
    const auto more = [&](unsigned shift) { text_ += static_cast<char>(0x80 | (code >> shift & 0x3f)); };
    if (code < 0x80) {
      text_ += static_cast<char>(code);
    } else if (code < 0x800) {
      text_ += static_cast<char>(0xc0 | code >> 6);
      more(0);
    } else if (code < 0x10000) {
      text_ += static_cast<char>(0xe0 | code >> 12);
      more(6), more(0);
    } else {
      text_ += static_cast<char>(0xf0 | code >> 18);
      more(12), more(6), more(0);
    }
  }

  const JsonPieces& source_;
  JsonDialect dialect_;
  JsonBuilder builder_;
  std::string_view piece_;
  std::size_t place_ = 0;  // offset in the piece
  std::uint64_t at_;       // offset of the piece in the file
  bool ended_ = false;
  std::string text_;  // the last string or number
  std::string problem_, help_;
  bool is_malformed_ = false;       // the problem is a syntax error
  std::optional<Error> failure_{};  // error from reading the file
};

}  // namespace

Result<json::value> parse_json(const JsonPieces& text, JsonDialect dialect, JsonSink* sink, bool* malformed) {
  return Parser(text, dialect, sink).read(malformed);
}

Result<json::value> parse_json(const std::string& path, std::string_view text, JsonSink* sink) {
  const auto next = [&]() -> Result<std::string_view> { return std::exchange(text, {}); };
  return parse_json({path, next}, JsonDialect::kStrict, sink);
}

Result<json::value> parse_checkpoint_json(const std::string& path, std::string_view text, JsonSink* sink) {
  const auto next = [&]() -> Result<std::string_view> { return std::exchange(text, {}); };
  return parse_json({path, next}, JsonDialect::kPython, sink);
}

}  // namespace ggufmill
