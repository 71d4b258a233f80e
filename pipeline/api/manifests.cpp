#include "pipeline/api/manifests.h"

#include "pipeline/io/input_file.h"
#include "pipeline/io/machine.h"
#include "pipeline/plan/written.h"

namespace ggufmill {

Result<FileList> make_manifests(const Plan& plan, const FileReader& read, bool overwrite,
                                const std::atomic<bool>* stop) {
  FileList files;
  AtomicFile::Options each;
  each.overwrite = overwrite;
  each.identity = identity_of(plan);
  const auto write = [&](const std::string& path, const std::string& text) -> Status {
    BOOST_OUTCOME_TRY(auto file, AtomicFile::create(path, text.size(), each));
    BOOST_OUTCOME_TRY(file->finish(std::as_bytes(std::span(text)), 0));
    files.push_back(std::move(file));
    return ok();
  };
  std::size_t first = 0;
  for (std::size_t output = 0; output < plan.outputs.size(); ++output) {
    Manifest manifest = manifest_of(plan, output);
    BOOST_OUTCOME_TRY(sum_up(
        manifest, [&](std::size_t i, std::uint64_t at, std::span<std::byte> into) { return read(first + i, at, into); },
        threads_for(plan.limits.threads), stop));
    BOOST_OUTCOME_TRY(write(plan.manifest_path(output), write_manifest(manifest)));
    BOOST_OUTCOME_TRY(write(plan.sums_path(output), write_sums(manifest)));
    first += plan.outputs[output].files.size();
  }
  return files;
}

Status publish(const FileList& files) {
  for (const auto& file : files) {
    BOOST_OUTCOME_TRY(file->publish(false));
    BOOST_OUTCOME_TRY(file->settle());
  }
  return ok();
}

Status add_manifests(const Plan& plan, const std::atomic<bool>* stop) {
  const std::vector<StoredFile> stored = stored_files(plan);
  const FileReader read = [&](std::size_t i, std::uint64_t at, std::span<std::byte> into) -> Status {
    BOOST_OUTCOME_TRY(const auto file, InputFile::open(stored[i].path));
    return file->read(at, into);
  };
  BOOST_OUTCOME_TRY(const FileList files, make_manifests(plan, read, true, stop));
  return publish(files);
}

}  // namespace ggufmill
