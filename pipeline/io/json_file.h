#pragma once
// JSON files, read in pieces and within limits: no file takes more memory than a small multiple of its size, or a deep
// stack.

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {

inline constexpr std::uint64_t kMaxJsonBytes = 64 << 20;  // limit for a file that is parsed into values
inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonValues = 2'000'000;

// One parse event of a member that is passed to a sink instead of being parsed into values.
struct JsonEvent {
  enum class Kind { kObjectBegin, kObjectEnd, kArrayBegin, kArrayEnd, kKey, kString, kNumber, kOther };
  Kind kind;
  std::string_view text;  // of a key, a string (unescaped) or a number (as in the file)
};

// Receives large members of a document as events, so that no values are built for them.
class JsonSink {
 public:
  virtual ~JsonSink() = default;
  // Returns true if the array or object at `outer`.`inner` is to be passed to take(); the document then contains null
  // in its place. Called first with both names empty, for the document itself; `inner` is empty for the member `outer`
  // of the document.
  virtual bool wants(std::string_view outer, std::string_view inner) = 0;
  // Returns an empty string, or a message ("token 17 has no id"), which stops the parser.
  virtual std::string take(const JsonEvent& event) = 0;
};

// Returns the document in a file of at most `limit` bytes. Numbers that are not 64-bit integers become the nearest
// double; if a member name is repeated, the last one counts. Errors have code kBadInput and contain the byte offset at
// which reading stopped.
Result<boost::json::value> read_json(const std::string& path, std::uint64_t limit = kMaxJsonBytes,
                                     JsonSink* sink = nullptr);
// Same for a document in memory; `path` is for messages.
Result<boost::json::value> parse_json(const std::string& path, std::string_view text, JsonSink* sink = nullptr);
// Same for a file of a checkpoint, or its contents. Accepts what Python's json accepts in a UTF-8 text: NaN, Infinity
// and -Infinity as well, which become the corresponding doubles, and lone surrogates, which become the three bytes that
// UTF-8 would use for them (a string with such bytes is not valid UTF-8). Sets `*malformed` if the text is UTF-8 within
// the limits, but Python would reject it.
Result<boost::json::value> read_checkpoint_json(const std::string& path, std::uint64_t limit = kMaxJsonBytes,
                                                JsonSink* sink = nullptr, bool* malformed = nullptr);
Result<boost::json::value> parse_checkpoint_json(const std::string& path, std::string_view text,
                                                 JsonSink* sink = nullptr);
// Passes the document stored in `bytes` bytes of the file from `offset` on to `sink`, which must want all of it.
Status read_json_part(const ByteSource& file, std::uint64_t offset, std::uint64_t bytes, JsonSink& sink);

// Returns a UTF-8 text of at most `limit` bytes; "\r
// " and "\r" become "
// ", as when Python reads text.
Result<std::string> read_text_file(const std::string& path, std::uint64_t limit);

// Returns the string if `value` is one, else nullopt.
std::optional<std::string_view> json_text(const boost::json::value& value);

// Members of an object; null, nullopt or `otherwise` if `value` is not an object, has no such member, or the member is
// of another kind.
const boost::json::value* json_member(const boost::json::value& value, std::string_view name);
const boost::json::array* json_array(const boost::json::value& value, std::string_view name);
std::optional<std::string_view> json_string(const boost::json::value& value, std::string_view name);
bool json_flag(const boost::json::value& value, std::string_view name, bool otherwise = false);

// Required members of a given kind. If a member is missing or of another kind, UnsoundJson is thrown; the reader of the
// document turns it into an error.
struct UnsoundJson {
  std::string what;  // "'bytes' is not a non-negative integer"
};
const boost::json::value& needed(const boost::json::value& value, std::string_view name);
const boost::json::array& needed_list(const boost::json::value& value, std::string_view name);
std::string needed_text(const boost::json::value& value, std::string_view name);
std::uint64_t needed_number(const boost::json::value& value, std::string_view name);
std::uint64_t needed_hash(const boost::json::value& value, std::string_view name);  // text of 16 hexadecimal digits

}  // namespace ggufmill
