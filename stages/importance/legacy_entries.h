#pragma once
// The legacy importance file (imatrix.dat): int32 number of entries; for each int32 length and bytes of the name, int32
// calls, int32 number of sums, the float32 sums; then, in newer files, int32 chunks, and int32 length and bytes of the
// data set's name. Little-endian. Source: llama.cpp, common/imatrix-loader.cpp (MIT).

#include "stages/importance/importance_file.h"

namespace ggufmill {

// What stands behind the data set's name is not looked at.
Result<ImportanceFile> read_legacy_entries(std::shared_ptr<const InputFile> file);

}  // namespace ggufmill
