#pragma once
// GGUF files in a folder, in a snapshot of the hub's cache, or in a repository of the hub, found by their names alone.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"

namespace ggufmill {

// A GGUF model, or another GGUF file such as a projector or an importance matrix.
struct GgufFile {
  std::string path{};                 // the first of the shards
  std::vector<std::string> shards{};  // all that exist, at least one
  bool is_model = true;
};

// Returns the models, or if there are none the other GGUF files, in a folder and in up to three levels of folders below
// it, sorted by path. In the hub's cache (models--ORG--NAME), only the snapshot of its main branch counts. Empty if the
// folder cannot be read.
std::vector<GgufFile> gguf_files_in(const std::string& folder);

// Returns true if a folder contains GGUF files, and no weights of a checkpoint beside them.
bool holds_only_gguf(const std::string& folder);

// Returns the path of the only model in a folder. Exit code 4 if there is none or if there are several; then the error
// lists them with their sizes.
Result<std::string> only_gguf_in(const std::string& folder);

// Returns the error of a reader of checkpoints for a folder that holds_only_gguf(). It lists the files.
Error not_a_checkpoint(const std::string& folder);

// Returns the type that an address of the hub names after the repository: Q4_K_M for hf://ORG/NAME:Q4_K_M; empty if
// it names none.
std::string_view type_in_address(std::string_view address);

// Returns the file that a type selects among the files of a repository, in their order; nullopt if there is none. The
// rule is that of llama.cpp (common/download.cpp): the first model whose name contains the type followed by '.' or '-',
// in any case; of several shards, the first.
std::optional<std::string> gguf_of_type(std::span<const std::string> names, std::string_view type);

}  // namespace ggufmill
