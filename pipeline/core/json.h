#pragma once
// JSON documents, read in pieces and within limits: no document takes more memory than a small multiple of its size, or
// a deep stack. Files are read by pipeline/io/json_file.h.

#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"
#include "pipeline/core/lifetime.h"

namespace ggufmill {

inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonValues = 2'000'000;

// One parse event of a member that is passed to a sink instead of being parsed into values.
struct JsonEvent {
  enum class Kind { kObjectBegin, kObjectEnd, kArrayBegin, kArrayEnd, kKey, kString, kNumber, kOther };
  Kind kind;
  std::string_view text;  // of a key, a string (unescaped), a number (as in the file); otherwise true, false or null
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

// kStrict: RFC 8259. kPython: also what Python's json module accepts in a UTF-8 text: NaN, Infinity and -Infinity,
// which become the corresponding doubles, and lone surrogates, which become the three bytes that UTF-8 would use for
// them (a string with such bytes is not valid UTF-8).
enum class JsonDialect { kStrict, kPython };

// A document in pieces.
struct JsonPieces {
  std::string_view path;                           // for messages
  std::function<Result<std::string_view>()> next;  // returns the next piece, which stays valid until the next call;
                                                   // empty at the end
  std::uint64_t offset = 0;                        // of the document in the file, for messages
};

// Returns the document. Numbers that are not 64-bit integers become the nearest double; if a member name is repeated,
// the last one counts. Errors have code kBadInput and contain the byte offset at which reading stopped; those of `next`
// are returned unchanged. Sets `*malformed` if the text is UTF-8 within the limits, but is not of the dialect.
Result<boost::json::value> parse_json(const JsonPieces& text, JsonDialect dialect, JsonSink* sink = nullptr,
                                      bool* malformed = nullptr);
// Same for a document in memory; `path` is for messages. The second parses a file of a checkpoint, in the dialect of
// Python.
Result<boost::json::value> parse_json(const std::string& path, std::string_view text, JsonSink* sink = nullptr);
Result<boost::json::value> parse_checkpoint_json(const std::string& path, std::string_view text,
                                                 JsonSink* sink = nullptr);

// Returns the string if `value` is one, else nullopt.
std::optional<std::string_view> json_text(GGUFMILL_OUTLIVES_RESULT const boost::json::value& value);

// Members of an object; null, nullopt or `otherwise` if `value` is not an object, has no such member, or the member is
// of another kind.
const boost::json::value* json_member(GGUFMILL_OUTLIVES_RESULT const boost::json::value& value, std::string_view name);
const boost::json::array* json_array(GGUFMILL_OUTLIVES_RESULT const boost::json::value& value, std::string_view name);
std::optional<std::string_view> json_string(GGUFMILL_OUTLIVES_RESULT const boost::json::value& value,
                                            std::string_view name);
bool json_flag(const boost::json::value& value, std::string_view name, bool otherwise = false);

// Required members of a given kind. If a member is missing or of another kind, InvalidJson is thrown; the reader of the
// document turns it into an error.
struct InvalidJson {
  std::string what;  // "'bytes' is not a non-negative integer"
};
const boost::json::value& needed(GGUFMILL_OUTLIVES_RESULT const boost::json::value& value, std::string_view name);
const boost::json::array& needed_list(GGUFMILL_OUTLIVES_RESULT const boost::json::value& value, std::string_view name);
std::string needed_text(const boost::json::value& value, std::string_view name);
std::uint64_t needed_number(const boost::json::value& value, std::string_view name);
std::uint64_t needed_hash(const boost::json::value& value, std::string_view name);  // text of 16 hexadecimal digits

}  // namespace ggufmill
