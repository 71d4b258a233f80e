// Sources that are files of this machine.

#include "pipeline/io/input_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/paths.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/source_scheme.h"

namespace ggufmill {
namespace {

class LocalFiles final : public SourceScheme {
 public:
  std::span<const std::string_view> names() const override { return {}; }

  Result<std::shared_ptr<const ByteSource>> open(const std::string& path) const override {
    BOOST_OUTCOME_TRY(auto file, InputFile::open(path));
    return std::shared_ptr<const ByteSource>(std::move(file));
  }
  Result<std::shared_ptr<const ByteSource>> open(const SourceFile& described, IoMode mode,
                                                 const std::atomic<bool>*) const override {
    BOOST_OUTCOME_TRY(auto file, InputFile::open(described.path, mode));
    if (!is_same(described, *file->describe())) return changed(described, *file->describe());
    return std::shared_ptr<const ByteSource>(std::move(file));
  }
  bool is_file(const std::string& path) const override {
    std::error_code none;
    return fs::is_regular_file(path, none);
  }
  bool is_folder(const std::string& path) const override {
    std::error_code none;
    return fs::is_directory(path, none);
  }
  Result<std::vector<std::string>> paths_in(const std::string& folder) const override {
    int error = 0;
    std::vector<std::string> paths = names_in_folder(folder, error);
    if (error != 0) return io_error(folder, "list the folder", error);
    for (std::string& path : paths) path = fs::path(folder) / path;
    return paths;
  }
};

}  // namespace

const SourceScheme& local_files() {
  static const LocalFiles scheme;
  return scheme;
}

std::string_view kind_of_path(const std::string& path) {
  FileStatus info;
  const auto look = [&](Links links) {
    return kernel_calls().status_at(kCurrentFolder, path.c_str(), links, &info) == 0;
  };
  if (is_address(path) || !look(Links::kNoFollow)) return {};
  if (info.is_link() && !look(Links::kFollow)) return "a broken link";
  return name_of(info.kind);
}

}  // namespace ggufmill
