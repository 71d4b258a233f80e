#include "pipeline/api/pages.h"

#include <fmt/format.h>

#include "pipeline/api/reports.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill {

std::string title_of(const PlannedOutput& output) {
  if (output.files.size() == 1) return output.files.front().path;
  return fmt::format("{} and {} more", output.files.front().path, output.files.size() - 1);
}

PicturedModel pictured(const PlannedOutput& output) {
  PicturedModel picture{title_of(output), {}};
  for (const PlannedTensor& tensor : output.tensors)
    picture.tensors.push_back({tensor.name, tensor.shape, tensor.type, tensor.bytes, tensor.reason});
  return picture;
}

PicturedModel pictured(const std::string& path, const Model& model) {
  PicturedModel picture{fs::path(path).filename().string(), {}};
  if (picture.name.empty()) picture.name = path;
  for (const Tensor& tensor : model.tensors)
    picture.tensors.push_back({tensor.name, tensor.shape(), tensor.type, tensor.source_bytes(), ""});
  return picture;
}

Status write_page(const Context& context, const std::string& path, const std::string& page,
                  std::vector<std::string> read, bool overwrite) {
  BOOST_OUTCOME_TRY(context.check_written({path, "page"}, std::move(read), overwrite));
  return write_text(path, page, overwrite);
}

}  // namespace ggufmill
