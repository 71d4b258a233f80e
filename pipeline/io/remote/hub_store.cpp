#include "pipeline/io/remote/remote_stores.h"

#include <fmt/format.h>

#include <map>

#include "pipeline/core/text.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/remote/hub.h"
#include "pipeline/io/remote/hub_upload.h"
#include "pipeline/io/remote/upload_target.h"
#include "pipeline/io/remote/xet_python.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/io/threads.h"

namespace ggufmill::remote {
namespace {

// An output: a file of a repository, and the local path that stands for it. Only temporary names next to that path
// exist (temporary_path()).
struct HubTarget {
  HubUpload repository;
  std::string name, local;
};

Result<HubTarget> target_of(const std::string& path) {
  BOOST_OUTCOME_TRY(const Address address, hub().parse(path));
  if (address.path.empty()) return bad_address(path, "names a repository, not a file in it", kHubHelp);
  BOOST_OUTCOME_TRY(const Access access, access_to_hub(""));
  HubTarget target;
  target.repository.repository = address.place;
  target.repository.revision = address.revision;
  target.name = address.path;
  target.local =
      record_base(fmt::format("{}/{}@{}/{}", access.url, address.place, address.revision, address.path), path);
  if (target.local.empty())
    return usage_error("there is no folder for outputs that are to be uploaded", "set HOME or XDG_STATE_HOME");
  return target;
}

Result<std::vector<StoredFile>> local_files_of(std::span<const StoredFile> files) {
  std::vector<StoredFile> local(files.begin(), files.end());
  for (StoredFile& file : local) {
    BOOST_OUTCOME_TRY(HubTarget target, target_of(file.path));
    file.path = std::move(target.local);
  }
  return local;
}

Status make_folders(std::span<const StoredFile> local) {
  for (const StoredFile& file : local) {
    std::error_code error;
    const fs::path folder = fs::path(file.path).parent_path();
    fs::create_directories(folder, error);
    if (error) return io_error(folder, "create the folder", error.value());
  }
  return ok();
}

StoreOptions local_options(StoreOptions options) {
  options.overwrite = true;  // whether the file of the repository may be replaced is another question
  if (options.identity.empty()) options.identity = kNoPlan;
  return options;
}

class HubStore final : public OutputStore {
 public:
  // `local` was opened with local_options(options).
  HubStore(std::vector<StoredFile> files, const StoreOptions& options, std::unique_ptr<OutputStore> local)
      : files_(std::move(files)), options_(options), local_(std::move(local)) {}

  Status write(std::size_t file, std::uint64_t offset, std::span<const std::byte> from) override {
    return local_->write(file, offset, from);
  }
  void start_write(IoService& io, std::size_t file, std::uint64_t offset, std::span<const std::byte> from,
                   Completion done) override {
    local_->start_write(io, file, offset, from, std::move(done));
  }
  Status read(std::size_t file, std::uint64_t offset, std::span<std::byte> into) const override {
    return local_->read(file, offset, into);
  }
  Result<std::vector<FileId>> seal(std::span<const std::uint64_t> written) override { return local_->seal(written); }
  Result<bool> is_as_left() override { return local_->is_as_left(); }
  Status publish() override;
  bool publish_with(OutputStore& other) override;
  void keep() override { local_->keep(); }
  Status leave() override { return local_->leave(); }
  std::vector<std::string> warnings() const override { return local_->warnings(); }

 private:
  // By name and branch.
  using Repositories = std::map<std::pair<std::string, std::string>, std::vector<HubFile>>;
  Status add_files(Repositories& repositories) const;
  Result<HubFile> file_to_send(std::size_t file, const HubTarget& target) const;

  const std::vector<StoredFile> files_;
  const StoreOptions options_;
  std::unique_ptr<OutputStore> local_;
  std::vector<HubStore*> others_;  // published by this store
  bool is_published_ = false;
};

Result<HubFile> HubStore::file_to_send(std::size_t file, const HubTarget& target) const {
  HubFile sent{temporary_path(target.local, local_options(options_).identity), target.name, files_[file].bytes, ""};
  BOOST_OUTCOME_TRY(sent.sha256, sha256_of_file(sent.path, options_.stop));
  return sent;
}

Status HubStore::add_files(Repositories& repositories) const {
  std::vector<std::optional<Result<HubFile>>> sent(files_.size());
  std::vector<HubTarget> targets;
  for (const StoredFile& file : files_) {
    BOOST_OUTCOME_TRY(targets.emplace_back(), target_of(file.path));
  }
  BOOST_OUTCOME_TRY(for_each_on_threads(options_.threads, files_.size(), [&](std::size_t i, auto&) -> Status {
    sent[i] = file_to_send(i, targets[i]);
    return ok();
  }));
  for (std::size_t i = 0; i < files_.size(); ++i) {
    BOOST_OUTCOME_TRY(HubFile file, std::move(*sent[i]));
    const HubUpload& repository = targets[i].repository;
    repositories[{repository.repository, repository.revision}].push_back(std::move(file));
  }
  return ok();
}

bool HubStore::publish_with(OutputStore& other) {
  auto* const store = dynamic_cast<HubStore*>(&other);
  if (!store || store->options_.overwrite != options_.overwrite) return false;
  others_.push_back(store);
  return true;
}

// The files of one repository become visible together. The local files are removed with the store.
Status HubStore::publish() {
  if (is_published_) return ok();
  Repositories repositories;
  BOOST_OUTCOME_TRY(add_files(repositories));
  for (const HubStore* other : others_) {
    BOOST_OUTCOME_TRY(other->add_files(repositories));
  }
  for (const auto& [repository, files] : repositories) {
    HubUpload upload;
    upload.repository = repository.first;
    upload.revision = repository.second;
    upload.replaces = options_.overwrite;
    upload.message = files.size() == 1 ? "Add " + files.front().name : fmt::format("Add {} files", files.size());
    if (const auto sent_all = upload_to_hub(upload, files, {.stop = options_.stop}, {}); !sent_all) {
      Error error = sent_all.error();
      // Not bad input of the run: what it has made is kept.
      if (error.code == ExitCode::kBadInput) error.code = ExitCode::kIo;
      return error;
    }
  }
  is_published_ = true;
  for (HubStore* other : others_) other->is_published_ = true;
  return ok();
}

class HubScheme final : public StoreScheme {
 public:
  std::string_view name() const override { return "hf"; }
  Result<std::unique_ptr<OutputStore>> create(std::vector<StoredFile> files,
                                              const StoreOptions& options) const override {
    BOOST_OUTCOME_TRY(auto local, local_files_of(files));
    BOOST_OUTCOME_TRY(make_folders(local));
    BOOST_OUTCOME_TRY(auto store, local_store().create(std::move(local), local_options(options)));
    return std::unique_ptr<OutputStore>(std::make_unique<HubStore>(std::move(files), options, std::move(store)));
  }
  Status check_target(const std::string& path, bool overwrite) const override {
    BOOST_OUTCOME_TRY(const HubTarget target, target_of(path));
    BOOST_OUTCOME_TRY(const HubContents present, contents_on_hub(target.repository, {}));
    if (present.contains(target.name) && !overwrite) return target_exists(path);
    return ok();
  }
  void check_space(std::span<const StoredFile> files, const StoreOptions& options, Diagnostics& errors) const override {
    check_sizes(files, options, errors);
    if (const auto local = local_files_of(files)) local_store().check_space(local.value(), options, errors);
  }

  // Asks the hub about files that only Xet can send.
  static void check_sizes(std::span<const StoredFile> files, const StoreOptions& options, Diagnostics& errors) {
    for (const StoredFile& file : files) {
      if (file.bytes <= kMaxLfsBytes) continue;
      const auto target = target_of(file.path);
      if (!target) continue;  // reported by check_target()
      const auto python = python_with_xet(options.stop);
      if (!python) return errors.add(python.error());
      const std::string& why = python.value().why;
      const auto offered =
          why.empty() ? offers_xet(target.value().repository, {.stop = options.stop}) : Result<bool>(false);
      if (!offered) return errors.add(offered.error());
      if (offered.value()) continue;
      Error error = too_large("the output", file.bytes, why);
      error.where = file.path;
      errors.add(std::move(error));
    }
  }

  std::string journal_path(const std::string& output, const std::string& identity) const override {
    const auto target = target_of(output);
    return target ? local_store().journal_path(target.value().local, identity) : "";
  }
  Result<std::unique_ptr<OutputStore>> attach(std::vector<StoredFile> files,
                                              const StoreOptions& options) const override {
    BOOST_OUTCOME_TRY(auto local, local_files_of(files));
    BOOST_OUTCOME_TRY(auto store, local_store().attach(std::move(local), local_options(options)));
    return std::unique_ptr<OutputStore>(std::make_unique<HubStore>(std::move(files), options, std::move(store)));
  }
  std::string why_not_attachable(const StoredFile& file, const std::string& identity) const override {
    const auto local = local_files_of({&file, 1});
    return local ? local_store().why_not_attachable(local.value().front(), identity) : local.error().what;
  }
  // A run may have been killed after its commit: finish_publishing() compares the contents.
  SealedFile find_sealed(const StoredFile& file, const std::string& identity, const FileId& id) const override {
    const auto local = local_files_of({&file, 1});
    if (!local) return SealedFile::kMissing;
    const SealedFile place = local_store().find_sealed(local.value().front(), identity, id);
    const auto target = target_of(file.path);
    if (place != SealedFile::kUnfinished || !target) return place;
    const auto present = contents_on_hub(target.value().repository, {});
    return present && present.value().contains(target.value().name) ? SealedFile::kPublished : place;
  }
  Status finish_publishing(std::span<const StoredFile> files, std::span<const FileId> /*ids*/,
                           const StoreOptions& options) const override {
    BOOST_OUTCOME_TRY(const auto store, attach({files.begin(), files.end()}, options));
    Status published = store->publish();
    if (!published) store->keep();
    return published;
  }
  std::vector<UnfinishedFile> find_unfinished(std::span<const std::string> outputs,
                                              std::span<const std::string> endings) const override;
  Status remove_unfinished(const std::string& path) const override { return local_store().remove_unfinished(path); }
};

std::vector<UnfinishedFile> HubScheme::find_unfinished(std::span<const std::string> outputs,
                                                       std::span<const std::string> endings) const {
  std::map<std::string, std::string> addresses;  // by local path
  std::vector<std::string> local;
  for (const std::string& output : outputs)
    if (auto target = target_of(output)) {
      addresses.emplace(target.value().local, output);
      local.push_back(std::move(target.value().local));
    }
  std::vector<std::string> all_endings(endings.begin(), endings.end());
  all_endings.emplace_back(kNoPlan);
  std::vector<UnfinishedFile> found = local_store().find_unfinished(local, all_endings);
  for (UnfinishedFile& file : found) file.output = addresses[file.output];
  return found;
}

}  // namespace

const StoreScheme& hub_store() {
  static const HubScheme scheme;
  return scheme;
}

}  // namespace ggufmill::remote
