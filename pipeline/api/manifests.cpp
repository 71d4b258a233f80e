#include "pipeline/api/manifests.h"

#include <map>
#include <mutex>

#include "pipeline/api/reports.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/source_path.h"
#include "pipeline/io/store_scheme.h"
#include "pipeline/plan/written.h"

namespace ggufmill {

namespace {

// Marks the tensors that the run has measured to be quantized without any error.
void mark_exact(const Plan& plan, const RunReport& run, std::size_t output, Manifest& manifest) {
  const ReportOutput report = std::move(report_of(plan, run, "").outputs.at(output));
  for (std::size_t f = 0; f < manifest.files.size(); ++f)
    for (std::size_t i = 0; i < manifest.files[f].tensors.size(); ++i)
      manifest.files[f].tensors[i].exact =
          is_exactly_quantized(report.tensors.at(plan.outputs[output].files[f].tensors[i].tensor));
}

}  // namespace

Result<ManifestFiles> ManifestFiles::make(const Plan& plan, const RunReport* run, const FileReader& read,
                                          bool overwrite, const std::atomic<bool>* stop) {
  ManifestFiles files;
  std::size_t first = 0;
  for (std::size_t output = 0; output < plan.outputs.size(); ++output) {
    Manifest manifest = manifest_of(plan, output);
    if (run) mark_exact(plan, *run, output, manifest);
    BOOST_OUTCOME_TRY(sum_up(
        manifest, [&](std::size_t i, std::uint64_t at, std::span<std::byte> into) { return read(first + i, at, into); },
        threads_for(plan.limits.threads), stop));
    files.texts_.push_back(write_manifest(manifest));
    files.texts_.push_back(write_sums(manifest));
    first += plan.outputs[output].files.size();
  }
  std::vector<StoredFile> stored;
  for (std::size_t output = 0; output < plan.outputs.size(); ++output)
    for (const std::string& path : {plan.manifest_path(output), plan.sums_path(output)}) {
      const std::string& text = files.texts_[stored.size()];
      stored.push_back({path, text, text.size()});
    }
  const std::vector<std::uint64_t> written(stored.size());  // nothing but headers
  StoreOptions options;
  options.overwrite = overwrite;
  options.identity = identity_of(plan);
  BOOST_OUTCOME_TRY(files.store_, create_store(std::move(stored), options));
  BOOST_OUTCOME_TRY(files.store_->seal(written));
  return files;
}

void ManifestFiles::publish_with(OutputStore& outputs) {
  if (store_) outputs.publish_with(*store_);
}

Status ManifestFiles::publish() { return store_ ? store_->publish() : ok(); }

std::vector<std::string> ManifestFiles::warnings() const {
  return store_ ? store_->warnings() : std::vector<std::string>();
}

FileReader published_files(const Plan& plan) {
  struct Files {
    std::vector<StoredFile> stored;
    std::mutex mutex;
    std::map<std::size_t, std::shared_ptr<const ByteSource>> open;
  };
  const auto files = std::make_shared<Files>();
  files->stored = stored_files(plan);
  return [files](std::size_t i, std::uint64_t at, std::span<std::byte> into) -> Status {
    std::shared_ptr<const ByteSource> file;
    {
      const std::scoped_lock lock(files->mutex);
      std::shared_ptr<const ByteSource>& opened = files->open[i];
      if (!opened) {
        BOOST_OUTCOME_TRY(opened, open_source(files->stored[i].path));
      }
      file = opened;
    }
    return file->read(at, into);
  };
}

Status add_manifests(const Plan& plan, const RunReport* run, const std::atomic<bool>* stop) {
  BOOST_OUTCOME_TRY(ManifestFiles files, ManifestFiles::make(plan, run, published_files(plan), true, stop));
  return files.publish();
}

}  // namespace ggufmill
