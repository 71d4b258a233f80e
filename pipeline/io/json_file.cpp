#include "pipeline/io/json_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <functional>
#include <vector>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;
using json::error_code;
using json::string_view;
using Kind = JsonEvent::Kind;

constexpr std::size_t kPiece = 1 << 20;  // bytes read at a time

// What the parser calls. `problem` says more than an error code can.
class Handler {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the parser looks for these names.
  static constexpr std::size_t max_object_size = SIZE_MAX;
  static constexpr std::size_t max_array_size = SIZE_MAX;
  static constexpr std::size_t max_key_size = SIZE_MAX;
  static constexpr std::size_t max_string_size = SIZE_MAX;
  // NOLINTEND(readability-identifier-naming)

  explicit Handler(JsonSink* sink) : sink_(sink) { values_.reset(); }

  json::value release() { return values_.release(); }
  const std::string& problem() const { return problem_; }

  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code& ec) { return open(Kind::kObjectBegin, ec); }
  bool on_array_begin(error_code& ec) { return open(Kind::kArrayBegin, ec); }
  bool on_object_end(std::size_t members, error_code& ec) {
    return close(Kind::kObjectEnd, ec, [&] { values_.push_object(members); });
  }
  bool on_array_end(std::size_t items, error_code& ec) {
    return close(Kind::kArrayEnd, ec, [&] { values_.push_array(items); });
  }

  bool on_key_part(string_view part, std::size_t, error_code&) { return keep(part); }
  bool on_key(string_view part, std::size_t, error_code& ec) {
    const std::string_view key = whole(part);
    bool good = true;
    if (captured_) {
      good = give({Kind::kKey, key}, ec);
    } else {
      if (depth_ == 1) {
        outer_ = key;
        inner_.clear();
      }
      if (depth_ == 2) inner_ = key;
      values_.push_key({key.data(), key.size()});
    }
    text_.clear();
    return good;
  }

  bool on_string_part(string_view part, std::size_t, error_code&) { return keep(part); }
  bool on_string(string_view part, std::size_t, error_code& ec) {
    const std::string_view text = whole(part);
    const bool good = scalar({Kind::kString, text}, ec, [&] { values_.push_string({text.data(), text.size()}); });
    text_.clear();
    return good;
  }

  bool on_number_part(string_view part, error_code&) { return keep(part); }
  bool on_int64(std::int64_t value, string_view part, error_code& ec) {
    return number(part, ec, [&](std::string_view) { values_.push_int64(value); });
  }
  bool on_uint64(std::uint64_t value, string_view part, error_code& ec) {
    return number(part, ec, [&](std::string_view) { values_.push_uint64(value); });
  }
  bool on_double(double value, string_view part, error_code& ec) {
    return number(part, ec, [&](std::string_view text) {
      std::from_chars(text.data(), text.data() + text.size(), value);  // the parser's own may be off by one unit
      values_.push_double(value);
    });
  }
  bool on_bool(bool value, error_code& ec) {
    return scalar({Kind::kOther, {}}, ec, [&] { values_.push_bool(value); });
  }
  bool on_null(error_code& ec) {
    return scalar({Kind::kOther, {}}, ec, [&] { values_.push_null(); });
  }
  bool on_comment_part(string_view, error_code&) { return true; }
  bool on_comment(string_view, error_code&) { return true; }

 private:
  bool keep(string_view part) {
    text_.append(part.data(), part.size());
    return true;
  }
  std::string_view whole(string_view part) {
    if (text_.empty()) return {part.data(), part.size()};
    keep(part);
    return text_;
  }
  bool fail(std::string problem, error_code& ec) {
    problem_ = std::move(problem);
    ec = json::error::exception;
    return false;
  }
  bool give(const JsonEvent& event, error_code& ec) {
    std::string problem = sink_->take(event);
    return problem.empty() || fail(std::move(problem), ec);
  }
  bool count(error_code& ec) {
    return ++count_ <= kMaxJsonValues || fail(fmt::format("more than {} values", kMaxJsonValues), ec);
  }
  bool open(Kind kind, error_code& ec) {
    ++depth_;
    if (!captured_) {
      const bool may_want = sink_ && depth_ <= 3;
      if (!may_want || !sink_->wants(outer_, inner_)) return count(ec);
      captured_ = true;
      captured_at_ = depth_;
    }
    return give({kind, {}}, ec);
  }
  bool close(Kind kind, error_code& ec, const auto& push) {
    --depth_;
    if (!captured_) {
      push();
      return true;
    }
    if (!give({kind, {}}, ec)) return false;
    if (depth_ + 1 == captured_at_) {
      captured_ = false;
      values_.push_null();
    }
    return true;
  }
  bool scalar(const JsonEvent& event, error_code& ec, const auto& push) {
    if (captured_) return give(event, ec);
    push();
    return count(ec);
  }
  bool number(string_view part, error_code& ec, const auto& push) {
    const std::string_view text = whole(part);
    const bool good = scalar({Kind::kNumber, text}, ec, [&] { push(text); });
    text_.clear();
    return good;
  }

  JsonSink* sink_;
  json::value_stack values_;
  std::string text_;           // of a key, string or number that came in parts
  std::string outer_, inner_;  // keys of the first two levels
  std::size_t depth_ = 0;
  std::size_t count_ = 0;
  bool captured_ = false;
  std::size_t captured_at_ = 0;  // the depth of what is captured
  std::string problem_;
};

json::parse_options bounded() {
  json::parse_options options;
  options.max_depth = kMaxJsonDepth;
  return options;
}

std::string reason(const error_code& ec, const Handler& handler, std::string_view rest) {
  if (!handler.problem().empty()) return handler.problem();
  if (ec == json::error::too_deep) return fmt::format("nested more than {} deep", kMaxJsonDepth);
  if (ec == json::error::incomplete) return "the file ends in the middle";
  if (!rest.empty() && static_cast<unsigned char>(rest.front()) >= 0x80) return "not UTF-8";
  return ec.message();
}

// `next` gives a piece (empty at the end of the document) or fails; `at`: where in the file the document begins.
Result<json::value> parse(const std::string& path, const std::function<Result<std::string_view>()>& next,
                          JsonSink* sink, std::uint64_t at = 0) {
  const auto error = [&](const std::string& why) {
    Error found = input_error(path, fmt::format("no sound JSON: {}", why));
    found.detail = fmt::format("reading stopped at byte {:#x}", at);
    return found;
  };
  json::basic_parser<Handler> parser(bounded(), sink);
  while (true) {
    BOOST_OUTCOME_TRY(const std::string_view piece, next());
    error_code ec;
    const std::size_t used = parser.write_some(!piece.empty(), piece.data(), piece.size(), ec);
    const std::string_view rest = piece.substr(std::min(used, piece.size()));
    at += used;
    if (!ec && !rest.empty()) return error("something follows the end of the document");
    if (ec) return error(reason(ec, parser.handler(), rest));
    if (piece.empty()) return parser.handler().release();
  }
}

Result<json::value> parse_part(const ByteSource& file, std::uint64_t offset, std::uint64_t bytes, JsonSink* sink) {
  std::vector<char> piece(std::min<std::uint64_t>(kPiece, bytes));
  std::uint64_t at = offset;
  const auto next = [&]() -> Result<std::string_view> {
    const std::size_t count = std::min<std::uint64_t>(piece.size(), offset + bytes - at);
    if (count == 0) return std::string_view();
    BOOST_OUTCOME_TRY(file.read(at, std::as_writable_bytes(std::span(piece.data(), count))));
    at += count;
    return std::string_view(piece.data(), count);
  };
  return parse(file.path(), next, sink, offset);
}

Result<std::shared_ptr<const ByteSource>> open_bounded(const std::string& path, std::uint64_t limit) {
  BOOST_OUTCOME_TRY(auto file, open_source(path));
  if (file->bytes() > limit) {
    return input_error(path, fmt::format("{} bytes are more than such a file may have, {}", file->bytes(), limit),
                       "is this the file that belongs to the checkpoint?");
  }
  return file;
}

}  // namespace

Result<json::value> read_json(const std::string& path, std::uint64_t limit, JsonSink* sink) {
  BOOST_OUTCOME_TRY(const auto file, open_bounded(path, limit));
  return parse_part(*file, 0, file->bytes(), sink);
}

Status read_json_part(const ByteSource& file, std::uint64_t offset, std::uint64_t bytes, JsonSink& sink) {
  BOOST_OUTCOME_TRY(parse_part(file, offset, bytes, &sink));
  return ok();
}

Result<json::value> parse_json(const std::string& path, std::string_view text, JsonSink* sink) {
  const auto next = [&]() -> Result<std::string_view> { return std::exchange(text, {}); };
  return parse(path, next, sink);
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
  if (!list) throw UnsoundJson{fmt::format("'{}' is no list", name)};
  return *list;
}

std::string needed_text(const json::value& value, std::string_view name) {
  const json::value& text = needed(value, name);
  if (!text.is_string()) throw UnsoundJson{fmt::format("'{}' is no text", name)};
  return std::string(text.get_string());
}

std::uint64_t needed_number(const json::value& value, std::string_view name) {
  const json::value& number = needed(value, name);
  if (number.is_uint64()) return number.get_uint64();
  if (!number.is_int64() || number.get_int64() < 0) throw UnsoundJson{fmt::format("'{}' is no whole number", name)};
  return static_cast<std::uint64_t>(number.get_int64());
}

std::uint64_t needed_hash(const json::value& value, std::string_view name) {
  const std::string text = needed_text(value, name);
  std::uint64_t hash = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), hash, 16);
  if (error != std::errc() || end != text.data() + text.size() || text.size() != 16)
    throw UnsoundJson{fmt::format("'{}' is no hash of 16 hexadecimal digits", name)};
  return hash;
}

}  // namespace ggufmill
