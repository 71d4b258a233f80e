#include "pipeline/io/store_scheme.h"

#include <fmt/format.h>

#include "pipeline/core/text.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/io/remote/remote_stores.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace {

// A store that keeps no journal is never asked for what it kept.
Error keeps_nothing(const StoreScheme& scheme) {
  return {ExitCode::kInternal, "", "the store " + std::string(scheme.name()) + ":// keeps no unfinished files", "",
          "this is a bug in ggufmill: please report it"};
}

}  // namespace

Result<std::unique_ptr<OutputStore>> StoreScheme::attach(std::vector<StoredFile>, const StoreOptions&) const {
  return keeps_nothing(*this);
}
std::string StoreScheme::why_not_attachable(const StoredFile&, const std::string&) const {
  return keeps_nothing(*this).what;
}
SealedFile StoreScheme::find_sealed(const StoredFile&, const std::string&, const FileId&) const {
  return SealedFile::kMissing;
}
Status StoreScheme::finish_publishing(std::span<const StoredFile>, std::span<const FileId>, const StoreOptions&) const {
  return keeps_nothing(*this);
}
std::vector<UnfinishedFile> StoreScheme::find_unfinished(std::span<const std::string>,
                                                         std::span<const std::string>) const {
  return {};
}
Status StoreScheme::remove_unfinished(const std::string&) const { return ok(); }

std::vector<const StoreScheme*>& store_schemes() {
  static std::vector<const StoreScheme*> rows{&local_store(), &remote::s3_store(), &remote::hub_store()};
  return rows;
}

Result<const StoreScheme*> find_store_scheme(const std::string& path) {
  const std::string name = is_address(path) ? path.substr(0, path.find("://")) : "";
  for (const StoreScheme* scheme : store_schemes())
    if (scheme->name() == name) return scheme;
  return Error{
      ExitCode::kUsage, remote::without_secrets(path),
      fmt::format("outputs cannot be written to addresses of the scheme {}", quoted_name(name)), "",
      "write a local file, an object of a bucket (s3://BUCKET/KEY), or a file on the hub (hf://ORG/NAME/FILE)"};
}

Result<const StoreScheme*> find_store_scheme(std::span<const StoredFile> files) {
  if (files.empty()) return &local_store();
  BOOST_OUTCOME_TRY(const StoreScheme* const first, find_store_scheme(files.front().path));
  for (const StoredFile& file : files) {
    BOOST_OUTCOME_TRY(const StoreScheme* const scheme, find_store_scheme(file.path));
    if (scheme == first) continue;
    return Error{ExitCode::kUsage, file.path, "the outputs of a run are in different stores", "",
                 "write all of them to local files, or all of them to addresses of the same scheme"};
  }
  return first;
}

Result<std::unique_ptr<OutputStore>> create_store(std::vector<StoredFile> files, const StoreOptions& options) {
  BOOST_OUTCOME_TRY(const StoreScheme* const scheme, find_store_scheme(files));
  return scheme->create(std::move(files), options);
}

Error no_store_for(const std::string& path) {
  return {ExitCode::kUsage, path, "the output is an address, but outputs must be local files", "",
          "give a local file, and copy it there afterward"};
}

}  // namespace ggufmill
