#include "pipeline/api/open_model.h"

#include <filesystem>

#include "stages/gguf/gguf.h"
#include "stages/safetensors/safetensors.h"

namespace ggufmill {

Result<Model> open_model(const std::string& path, huggingface::SourceOptions how, const Types& types) {
  namespace fs = std::filesystem;
  std::error_code none;
  const bool is_folder = fs::is_directory(path, none);
  if (is_folder && fs::exists(fs::path(path) / "config.json", none)) {
    how.folder = path;
    BOOST_OUTCOME_TRY(ConvertedCheckpoint checkpoint, read_huggingface(how, read_safetensors));
    return std::move(checkpoint.model);
  }
  if (is_folder || path.ends_with(".safetensors") || path.ends_with(".safetensors.index.json"))
    return make_safetensors_source({.path = path})->open();
  return read_gguf(path, types);
}

}  // namespace ggufmill
