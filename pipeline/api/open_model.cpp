#include "pipeline/api/open_model.h"

#include <filesystem>

#include "pipeline/io/source_path.h"
#include "stages/gguf/gguf.h"
#include "stages/safetensors/safetensors.h"

namespace ggufmill {

Result<Model> open_model(const std::string& path, huggingface::SourceOptions how, const Types& types) {
  BOOST_OUTCOME_TRY(const std::string at, pinned(path));
  const bool names_folder = is_folder(at);
  if (names_folder && is_file(std::filesystem::path(at) / "config.json")) {
    how.folder = at;
    BOOST_OUTCOME_TRY(ConvertedCheckpoint checkpoint, read_huggingface(how, read_safetensors));
    return std::move(checkpoint.model);
  }
  if (names_folder || at.ends_with(".safetensors") || at.ends_with(".safetensors.index.json"))
    return make_safetensors_source({.path = at})->open();
  return read_gguf(at, types);
}

}  // namespace ggufmill
