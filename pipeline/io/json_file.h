#pragma once
// JSON files, read in pieces and within limits: no file makes more than a small multiple of its size in memory, nor a
// deep stack.

#include <boost/json/value.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {

inline constexpr std::uint64_t kMaxJsonBytes = 64 << 20;  // of a file that becomes values
inline constexpr std::size_t kMaxJsonDepth = 64;
inline constexpr std::size_t kMaxJsonValues = 2'000'000;

// One step inside a member that is not to become values.
struct JsonEvent {
  enum class Kind { kObjectBegin, kObjectEnd, kArrayBegin, kArrayEnd, kKey, kString, kNumber, kOther };
  Kind kind;
  std::string_view text;  // of a key, a string (unescaped) or a number (as it stands in the file)
};

// Takes the large members of a document instead of having them as values.
class JsonSink {
 public:
  virtual ~JsonSink() = default;
  // Whether the array or object at `outer`.`inner` of the document goes to take(); null stands in its place then. Asked
  // with both empty at first: the document itself; with `inner` empty: the member `outer` of it.
  virtual bool wants(std::string_view outer, std::string_view inner) = 0;
  // Empty, or what is wrong ("token 17 has no id"), which ends the reading.
  virtual std::string take(const JsonEvent& event) = 0;
};

// The document in a file of at most `limit` bytes. Numbers that are no 64-bit integers are the nearest double; of two
// members of one name the later one counts. Errors are of code kBadInput, with the byte where reading stopped.
Result<boost::json::value> read_json(const std::string& path, std::uint64_t limit = kMaxJsonBytes,
                                     JsonSink* sink = nullptr);
// The same of a document in memory; `path` is for messages.
Result<boost::json::value> parse_json(const std::string& path, std::string_view text, JsonSink* sink = nullptr);
// The same of a file of a checkpoint, and of what it holds: accepted is what Python's json accepts of a UTF-8 text, so
// NaN, Infinity and -Infinity too, which become such doubles, and halves of surrogate pairs, which become the three
// bytes that UTF-8 would have for them: a text with such bytes is not UTF-8. `*malformed`: set where the text is UTF-8
// within the limits, but Python would not accept it.
Result<boost::json::value> read_checkpoint_json(const std::string& path, std::uint64_t limit = kMaxJsonBytes,
                                                JsonSink* sink = nullptr, bool* malformed = nullptr);
Result<boost::json::value> parse_checkpoint_json(const std::string& path, std::string_view text,
                                                 JsonSink* sink = nullptr);
// Hands the document that is `bytes` bytes of a file from `offset` on to `sink`, which wants all of it.
Status read_json_part(const ByteSource& file, std::uint64_t offset, std::uint64_t bytes, JsonSink& sink);

// A UTF-8 text of at most `limit` bytes; "\r\n" and "\r" become "\n", as Python reads text.
Result<std::string> read_text_file(const std::string& path, std::uint64_t limit);

// What `value` holds itself.
std::optional<std::string_view> json_text(const boost::json::value& value);

// Members of an object; null or nothing where `value` is no object, lacks the member, or holds another kind.
const boost::json::value* json_member(const boost::json::value& value, std::string_view name);
const boost::json::array* json_array(const boost::json::value& value, std::string_view name);
std::optional<std::string_view> json_string(const boost::json::value& value, std::string_view name);
bool json_flag(const boost::json::value& value, std::string_view name, bool otherwise = false);

// Members that have to be there and of their kind. What is not is thrown, for whoever reads the document to make an
// error of.
struct UnsoundJson {
  std::string what;  // "'bytes' is no whole number"
};
const boost::json::value& needed(const boost::json::value& value, std::string_view name);
const boost::json::array& needed_list(const boost::json::value& value, std::string_view name);
std::string needed_text(const boost::json::value& value, std::string_view name);
std::uint64_t needed_number(const boost::json::value& value, std::string_view name);
std::uint64_t needed_hash(const boost::json::value& value, std::string_view name);  // text of 16 hexadecimal digits

}  // namespace ggufmill
