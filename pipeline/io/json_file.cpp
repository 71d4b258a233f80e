#include "pipeline/io/json_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "pipeline/core/text.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::size_t kPiece = 1 << 20;  // bytes per read

Result<json::value> parse_part(const ByteSource& file, std::uint64_t offset, std::uint64_t bytes, JsonDialect dialect,
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
  return parse_json({file.path(), next, offset}, dialect, sink, malformed);
}

Result<std::shared_ptr<const ByteSource>> open_bounded(const std::string& path, std::uint64_t limit) {
  BOOST_OUTCOME_TRY(auto file, open_source(path));
  if (file->bytes() > limit) {
    return input_error(path, fmt::format("{} bytes exceed the limit of such a file, {}", file->bytes(), limit),
                       "is this the file that belongs to the checkpoint?");
  }
  return file;
}

Status check_utf8(const std::string& path, std::string_view text) {
  std::size_t line = 1, column = 1;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_sequence(text.substr(at));
    if (length == 0 && text.substr(0, at).find('\0') != text.npos) break;  // not a text at all
    if (length == 0)
      return input_error(fmt::format("{}:{}:{}", path, line, column),
                         fmt::format("byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(text[at])),
                         "save the file as UTF-8");
    column = text[at] == '\n' ? 1 : column + 1;
    line += text[at] == '\n' ? 1 : 0;
    at += length;
  }
  return is_utf8(text) ? ok() : Status(input_error(path, "not UTF-8"));
}

}  // namespace

Result<json::value> read_json(const std::string& path, std::uint64_t limit, JsonSink* sink) {
  BOOST_OUTCOME_TRY(const auto file, open_bounded(path, limit));
  return parse_part(*file, 0, file->bytes(), JsonDialect::kStrict, sink);
}

Result<json::value> read_checkpoint_json(const std::string& path, std::uint64_t limit, JsonSink* sink,
                                         bool* malformed) {
  BOOST_OUTCOME_TRY(const auto file, open_bounded(path, limit));
  return parse_part(*file, 0, file->bytes(), JsonDialect::kPython, sink, malformed);
}

Status read_json_part(const ByteSource& file, std::uint64_t offset, std::uint64_t bytes, JsonSink& sink) {
  BOOST_OUTCOME_TRY(parse_part(file, offset, bytes, JsonDialect::kStrict, &sink));
  return ok();
}

Result<std::string> read_text_file(const std::string& path, std::uint64_t limit) {
  BOOST_OUTCOME_TRY(const auto file, open_bounded(path, limit));
  std::string text(file->bytes(), '\0');
  BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(text))));
  BOOST_OUTCOME_TRY(check_utf8(path, text));
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
    out += text[i] == '\r' ? '\n' : text[i];
  }
  return out;
}

}  // namespace ggufmill
