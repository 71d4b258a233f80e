#pragma once
// Kinds of output stores, by the scheme of the outputs' paths. A new kind is one file that implements StoreScheme, and
// one row of store_schemes().

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/output_store.h"

namespace ggufmill {

class SharedUploads;

// Location of an output that an earlier run has sealed.
enum class SealedFile { kMissing, kUnfinished, kPublished };

// A file that a run keeps next to an output until the output is complete.
struct UnfinishedFile {
  std::string path;
  std::string output;  // the output it belongs to
  std::string ending;  // of its name: the identity of a plan, with or without the ending of a journal or claim
  std::uint64_t bytes = 0;
  bool is_in_use = false;  // a process is writing it now
};

// Opens the stores of one scheme, and answers what has to be known before and between runs. Thread-safe.
class StoreScheme {
 public:
  virtual ~StoreScheme() = default;
  virtual std::string_view name() const = 0;  // "s3" for s3://BUCKET/KEY; empty: local files

  // Creates the files and reserves their full size. Exit code 2 if a file exists and may not be replaced, 6 if there is
  // no space or no permission, 75 if another run of the same plan is writing them now; reported for the first file in
  // order that failed. Leftover files of an earlier run of the plan are overwritten.
  virtual Result<std::unique_ptr<OutputStore>> create(std::vector<StoredFile> files,
                                                      const StoreOptions& options) const = 0;
  // Returns an error (exit code 2) unless `path` can be an output: it names a file, may be written, and does not exist
  // or may be replaced according to `overwrite`.
  virtual Status check_target(const std::string& path, bool overwrite) const = 0;
  // Adds an error if there is not enough space for the files. `options` are those for create(); the run would take over
  // leftover files of the plan.
  virtual void check_space(std::span<const StoredFile> /*files*/, const StoreOptions& /*options*/,
                           Diagnostics& /*errors*/) const {}

  // Returns the time at which a published file was last touched, in nanoseconds since 1970, which cannot be set back.
  // nullopt: unknown, so that its bytes have to be compared.
  virtual std::optional<std::int64_t> touched_at(const std::string& /*path*/) const { return {}; }

  // ---- stores that keep the unfinished files of an interrupted run; others keep nothing ----

  // Returns false if an interrupted run keeps only what has been uploaded.
  virtual bool keeps_all() const { return true; }

  // Returns the path of the journal of a run whose first output is `output`, on this machine. Empty: the store keeps
  // nothing, so runs keep no journal, and the functions below are not called.
  virtual std::string journal_path(const std::string& /*output*/, const std::string& /*identity*/) const { return {}; }
  // Resumes with the files that leave() kept. Exit code 6 if why_not_attachable() has a reason.
  virtual Result<std::unique_ptr<OutputStore>> attach(std::vector<StoredFile> files, const StoreOptions& options) const;
  // Returns why the unfinished file of an output cannot be attached to, as text for a message; empty if it can.
  virtual std::string why_not_attachable(const StoredFile& file, const std::string& identity) const;
  // Returns where the file with the given identity is: under its own name, or under its temporary one.
  virtual SealedFile find_sealed(const StoredFile& file, const std::string& identity, const FileId& id) const;
  // Completes a publish() of sealed files that was interrupted by a kill: files still under their temporary names get
  // their own, and replaced files are removed. `ids` are those that seal() returned.
  virtual Status finish_publishing(std::span<const StoredFile> files, std::span<const FileId> ids,
                                   const StoreOptions& options) const;
  // Returns the files that runs of any plan have left for the outputs. `endings` has one ending of each kind that their
  // names may have. Files that cannot be examined are ignored.
  virtual std::vector<UnfinishedFile> find_unfinished(std::span<const std::string> outputs,
                                                      std::span<const std::string> endings) const;
  // Removes one of these files. Exit code 6 if that fails; not an error if it is missing.
  virtual Status remove_unfinished(const std::string& path) const;

  // Returns the uploads that machines can share; null if there are none.
  virtual const SharedUploads* shared_uploads() const { return nullptr; }
};

// Files of this machine, or of a file system that machines share.
const StoreScheme& local_store();

// All kinds of stores. Tests may append rows before they use any store; not thread-safe.
std::vector<const StoreScheme*>& store_schemes();
// Returns the scheme of an output. Exit code 2 if there is no store for it.
Result<const StoreScheme*> find_store_scheme(const std::string& path);
// Same for all outputs of a run, which must have the same scheme; local files if there are none.
Result<const StoreScheme*> find_store_scheme(std::span<const StoredFile> files);
// Creates the store of these files.
Result<std::unique_ptr<OutputStore>> create_store(std::vector<StoredFile> files, const StoreOptions& options);
// Error (exit code 2): `path` is an address, but the operation writes local files only.
Error no_store_for(const std::string& path);

}  // namespace ggufmill
