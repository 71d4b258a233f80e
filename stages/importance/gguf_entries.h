#pragma once
// The GGUF importance file: F32 tensors NAME.in_sum2 and NAME.counts, and imatrix.datasets, imatrix.chunk_count and
// imatrix.chunk_size. Source: llama.cpp, common/imatrix-loader.cpp (MIT).

#include "stages/importance/importance_file.h"

namespace ggufmill {

// The entries of an opened GGUF, in order of name. Its other tensors are not looked at.
Result<ImportanceFile> find_gguf_entries(const std::string& path, const Model& model);

}  // namespace ggufmill
