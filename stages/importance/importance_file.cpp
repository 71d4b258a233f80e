#include "stages/importance/importance_file.h"

#include <array>

#include "stages/importance/gguf_entries.h"
#include "stages/importance/legacy_entries.h"

namespace ggufmill {

Result<ImportanceFile> open_importance(const std::string& path, const ModelOpener& open) {
  BOOST_OUTCOME_TRY(std::shared_ptr<const InputFile> file, InputFile::open(path));
  std::array<char, 4> magic{};
  if (file->bytes() >= magic.size()) {
    BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(magic))));
  }
  if (std::string_view(magic.data(), magic.size()) != "GGUF") return read_legacy_entries(std::move(file));
  BOOST_OUTCOME_TRY(const Model model, open(path));
  return find_gguf_entries(path, model);
}

}  // namespace ggufmill
