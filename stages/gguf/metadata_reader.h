#pragma once
// Reads metadata into its canonical encoding (pipeline/core/metadata.h).

#include <cstdint>

#include "pipeline/core/metadata.h"
#include "stages/gguf/byte_reader.h"

namespace ggufmill::gguf {

// `count` entries, in order. Values keep every byte; only the lengths of version 1 and the byte order change. Refused
// (exit code 4): empty, duplicate and malformed keys, unknown types, arrays nested deeper than kDeepestArray, values
// and metadata beyond kLargestValue and kLargestMetadata, bools other than 0 and 1 (the format calls them invalid), and
// an alignment that is no uint32 or no power of two up to kLargestAlignment.
Result<Metadata> read_metadata(ByteReader& in, std::uint64_t count);

}  // namespace ggufmill::gguf
