#include "pipeline/io/json_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;
using Kind = JsonEvent::Kind;

constexpr std::size_t kPiece = 1 << 20;  // bytes per read

// kStrict: RFC 8259. kPython: also NaN, Infinity, -Infinity, and lone surrogates, as Python's json module accepts them;
// a lone surrogate becomes the three bytes that UTF-8 would use for it.
enum class Dialect { kStrict, kPython };

// Builds the values of a document, or passes them to a sink.
class Builder {
 public:
  explicit Builder(JsonSink* sink) : sink_(sink) { values_.reset(); }

  json::value release() { return values_.release(); }

  // Each returns an error message, or an empty string on success.
  std::string open(Kind kind) {
    if (depth_ == kMaxJsonDepth) return fmt::format("nested more than {} levels deep", kMaxJsonDepth);
    ++depth_;
    members_.push_back(0);
    if (!captured_) {
      const bool may_want = sink_ && depth_ <= 3;
      if (!may_want || !sink_->wants(outer_, inner_)) return count();
      captured_ = true;
      captured_at_ = depth_;
    }
    return sink_->take({kind, {}});
  }
  std::string close(Kind kind) {
    --depth_;
    const std::size_t members = members_.back();
    members_.pop_back();
    if (!captured_) {
      if (kind == Kind::kObjectEnd)
        values_.push_object(members);
      else
        values_.push_array(members);
      return add_member();
    }
    if (std::string problem = sink_->take({kind, {}}); !problem.empty()) return problem;
    if (depth_ + 1 == captured_at_) {
      captured_ = false;
      values_.push_null();
    }
    return add_member();
  }
  std::string key(std::string_view key) {
    if (captured_) return sink_->take({Kind::kKey, key});
    if (depth_ == 1) {
      outer_ = key;
      inner_.clear();
    }
    if (depth_ == 2) inner_ = key;
    values_.push_key({key.data(), key.size()});
    return {};
  }
  std::string string(std::string_view text) {
    return scalar({Kind::kString, text}, [&] { values_.push_string({text.data(), text.size()}); });
  }
  std::string number(std::string_view text) {
    return scalar({Kind::kNumber, text}, [&] { push_number(text); });
  }
  std::string other(const json::value& value) {
    return scalar({Kind::kOther, {}}, [&] {
      if (value.is_bool())
        values_.push_bool(value.get_bool());
      else
        values_.push_null();
    });
  }

 private:
  std::string count() {
    return ++count_ <= kMaxJsonValues ? std::string() : fmt::format("more than {} values", kMaxJsonValues);
  }
  std::string add_member() {
    if (!members_.empty()) ++members_.back();
    return {};
  }
  std::string scalar(const JsonEvent& event, const auto& push) {
    if (captured_) return sink_->take(event);
    push();
    add_member();
    return count();
  }
  void push_number(std::string_view text) {
    const char* const end = text.data() + text.size();
    std::int64_t integer = 0;
    std::uint64_t natural = 0;
    double real = 0;
    if (std::from_chars(text.data(), end, integer) == std::from_chars_result{end, {}}) {
      values_.push_int64(integer);
    } else if (std::from_chars(text.data(), end, natural) == std::from_chars_result{end, {}}) {
      values_.push_uint64(natural);
    } else {
      if (std::from_chars(text.data(), end, real).ec == std::errc::result_out_of_range) real = out_of_range(text);
      values_.push_double(real);
    }
  }
  // Value of a number outside the range of double: infinity, or zero if it is too small.
  static double out_of_range(std::string_view text) {
    const bool negative = text.starts_with('-');
    text.remove_prefix(negative ? 1 : 0);
    const std::size_t e = text.find_first_of("eE");
    const std::string_view digits = text.substr(0, e);
    std::int64_t exponent = 0;
    if (e != text.npos) {
      const bool is_small = text[e + 1] == '-';
      const std::size_t first = e + 1 + (is_small || text[e + 1] == '+' ? 1 : 0);
      const auto read = std::from_chars(text.data() + first, text.data() + text.size(), exponent);
      if (read.ec != std::errc()) exponent = INT64_MAX / 2;
      if (is_small) exponent = -exponent;
    }
    const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
    const auto first_digit = static_cast<std::int64_t>(std::min(digits.find_first_not_of("0."), digits.size()));
    const double size = exponent + point - first_digit > 0 ? std::numeric_limits<double>::infinity() : 0;
    return negative ? -size : size;
  }

  JsonSink* sink_;
  json::value_stack values_;
  std::string outer_, inner_;  // keys of the first two levels
  std::size_t depth_ = 0;
  std::vector<std::size_t> members_;  // number of members so far, for every open array or object
  std::size_t count_ = 0;
  bool captured_ = false;
  std::size_t captured_at_ = 0;  // depth of the captured member
};

// Returns the next piece of the document; empty at its end.
using NextPiece = std::function<Result<std::string_view>()>;

class Parser {
 public:
  // `at` is the offset of the document in the file.
  Parser(NextPiece next, Dialect dialect, JsonSink* sink, std::uint64_t at)
      : next_(std::move(next)), dialect_(dialect), builder_(sink), at_(at) {}

  Result<json::value> read(const std::string& path, bool* malformed) {
    if (document()) return builder_.release();
    if (failure_) return *failure_;
    if (malformed) *malformed = is_malformed_;
    Error error = input_error(path, fmt::format("not valid JSON: {}", problem_), help_);
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
    auto next = next_();
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
        return dialect_ == Dialect::kPython ? word("NaN") && done(builder_.number("NaN")) : unexpected();
      case 'I':
        return dialect_ == Dialect::kPython ? word("Infinity") && done(builder_.number("Infinity")) : unexpected();
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
    if (peek() == 'I' && !text_.empty() && dialect_ == Dialect::kPython)
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
    if (dialect_ == Dialect::kStrict)
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

  NextPiece next_;
  Dialect dialect_;
  Builder builder_;
  std::string_view piece_;
  std::size_t place_ = 0;  // offset in the piece
  std::uint64_t at_;       // offset of the piece in the file
  bool ended_ = false;
  std::string text_;  // the last string or number
  std::string problem_, help_;
  bool is_malformed_ = false;       // the problem is a syntax error
  std::optional<Error> failure_{};  // error from reading the file
};

Result<json::value> parse_part(const ByteSource& file, std::uint64_t offset, std::uint64_t bytes, Dialect dialect,
                               JsonSink* sink, bool* malformed = nullptr) {
  std::vector<char> piece(std::min<std::uint64_t>(kPiece, bytes));
  std::uint64_t at = offset;
  const auto next = [&]() -> Result<std::string_view> {
    const std::size_t count = std::min<std::uint64_t>(piece.size(), offset + bytes - at);
    if (count == 0) return std::string_view();
    BOOST_OUTCOME_TRY(file.read(at, std::as_writable_bytes(std::span(piece.data(), count))));
    at += count;
    return std::string_view(piece.data(), count);
  };
  return Parser(next, dialect, sink, offset).read(file.path(), malformed);
}

Result<std::shared_ptr<const ByteSource>> open_bounded(const std::string& path, std::uint64_t limit) {
  BOOST_OUTCOME_TRY(auto file, open_source(path));
  if (file->bytes() > limit) {
    return input_error(path, fmt::format("{} bytes exceed the limit of such a file, {}", file->bytes(), limit),
                       "is this the file that belongs to the checkpoint?");
  }
  return file;
}

}  // namespace

Result<json::value> read_json(const std::string& path, std::uint64_t limit, JsonSink* sink) {
  BOOST_OUTCOME_TRY(const auto file, open_bounded(path, limit));
  return parse_part(*file, 0, file->bytes(), Dialect::kStrict, sink);
}

Result<json::value> read_checkpoint_json(const std::string& path, std::uint64_t limit, JsonSink* sink,
                                         bool* malformed) {
  BOOST_OUTCOME_TRY(const auto file, open_bounded(path, limit));
  return parse_part(*file, 0, file->bytes(), Dialect::kPython, sink, malformed);
}

Status read_json_part(const ByteSource& file, std::uint64_t offset, std::uint64_t bytes, JsonSink& sink) {
  BOOST_OUTCOME_TRY(parse_part(file, offset, bytes, Dialect::kStrict, &sink));
  return ok();
}

Result<json::value> parse_json(const std::string& path, std::string_view text, JsonSink* sink) {
  const auto next = [&]() -> Result<std::string_view> { return std::exchange(text, {}); };
  return Parser(next, Dialect::kStrict, sink, 0).read(path, nullptr);
}

Result<json::value> parse_checkpoint_json(const std::string& path, std::string_view text, JsonSink* sink) {
  const auto next = [&]() -> Result<std::string_view> { return std::exchange(text, {}); };
  return Parser(next, Dialect::kPython, sink, 0).read(path, nullptr);
}

Result<std::string> read_text_file(const std::string& path, std::uint64_t limit) {
  BOOST_OUTCOME_TRY(const auto file, open_bounded(path, limit));
  std::string text(file->bytes(), '\0');
  BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(text))));
  if (!is_utf8(text)) return input_error(path, "not UTF-8");
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    out += text[i] == '\r' ? '\n' : text[i];
  }
  return out;
}

std::optional<std::string_view> json_text(const json::value& value) {
  const json::string* text = value.if_string();
  return text ? std::optional<std::string_view>({text->data(), text->size()}) : std::nullopt;
}

const json::value* json_member(const json::value& value, std::string_view name) {
  const json::object* object = value.if_object();
  return object ? object->if_contains({name.data(), name.size()}) : nullptr;
}
const json::array* json_array(const json::value& value, std::string_view name) {
  const json::value* member = json_member(value, name);
  return member ? member->if_array() : nullptr;
}
std::optional<std::string_view> json_string(const json::value& value, std::string_view name) {
  const json::value* member = json_member(value, name);
  return member ? json_text(*member) : std::nullopt;
}
bool json_flag(const json::value& value, std::string_view name, bool otherwise) {
  const json::value* member = json_member(value, name);
  return member && member->is_bool() ? member->get_bool() : otherwise;
}

const json::value& needed(const json::value& value, std::string_view name) {
  const json::value* found = json_member(value, name);
  if (!found) throw UnsoundJson{fmt::format("'{}' is missing", name)};
  return *found;
}

const json::array& needed_list(const json::value& value, std::string_view name) {
  const json::array* list = json_array(value, name);
  if (!list) throw UnsoundJson{fmt::format("'{}' is not a list", name)};
  return *list;
}

std::string needed_text(const json::value& value, std::string_view name) {
  const json::value& text = needed(value, name);
  if (!text.is_string()) throw UnsoundJson{fmt::format("'{}' is not a string", name)};
  return std::string(text.get_string());
}

std::uint64_t needed_number(const json::value& value, std::string_view name) {
  const json::value& number = needed(value, name);
  if (number.is_uint64()) return number.get_uint64();
  if (!number.is_int64() || number.get_int64() < 0)
    throw UnsoundJson{fmt::format("'{}' is not a non-negative integer", name)};
  return static_cast<std::uint64_t>(number.get_int64());
}

std::uint64_t needed_hash(const json::value& value, std::string_view name) {
  const std::string text = needed_text(value, name);
  std::uint64_t hash = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != 16)
    throw UnsoundJson{fmt::format("'{}' is not a hash of 16 hexadecimal digits", name)};
  return hash;
}

}  // namespace ggufmill
