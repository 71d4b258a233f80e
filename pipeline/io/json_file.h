#pragma once
// Reads JSON files, and other small text files.

#include <cstdint>
#include <string>

#include "pipeline/core/json.h"
#include "pipeline/io/byte_source.h"

namespace ggufmill {

inline constexpr std::uint64_t kMaxJsonBytes = 64 << 20;  // limit for a file that is parsed into values

// Return the document in a file of at most `limit` bytes; errors as for parse_json(). The second reads a file of a
// checkpoint, in the dialect of Python.
Result<boost::json::value> read_json(const std::string& path, std::uint64_t limit = kMaxJsonBytes,
                                     JsonSink* sink = nullptr);
Result<boost::json::value> read_checkpoint_json(const std::string& path, std::uint64_t limit = kMaxJsonBytes,
                                                JsonSink* sink = nullptr, bool* malformed = nullptr);
// Passes the document stored in `bytes` bytes of the file from `offset` on to `sink`, which must want all of it.
Status read_json_part(const ByteSource& file, std::uint64_t offset, std::uint64_t bytes, JsonSink& sink);

// Returns a UTF-8 text of at most `limit` bytes. "\r\n" and "\r" become "\n", as when Python reads text.
Result<std::string> read_text_file(const std::string& path, std::uint64_t limit);

}  // namespace ggufmill
