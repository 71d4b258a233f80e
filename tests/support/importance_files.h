#pragma once
// Importance files made in tests, sound or broken on purpose.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/importance.h"
#include "tests/support/gguf_builder.h"

namespace ggufmill {

// The bytes of float32 numbers.
std::string float_bytes(const std::vector<float>& values);

// One entry of a legacy file.
std::string legacy_entry(std::string_view name, std::int32_t calls, const std::vector<float>& sums);
// A legacy file: the number of entries, the entries, and what follows them.
std::string legacy_importance(const std::vector<std::string>& entries, std::string_view tail = {});
// What newer legacy files end with.
std::string legacy_tail(std::int32_t chunks, std::string_view dataset);

// A GGUF importance file without entries: data sets "a.txt" and "b.txt", 7 chunks of 512.
GgufBuilder gguf_importance();
// Adds an entry of `counts.size()` parts.
void add_entry(GgufBuilder& file, const std::string& name, const std::vector<float>& sums,
               const std::vector<float>& counts);

// The weights of a matrix, read from their file.
Result<std::vector<float>> read_weights(const Importance& importance, std::uint64_t matrix);

}  // namespace ggufmill
