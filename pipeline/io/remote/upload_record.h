#pragma once
// The state of an upload in progress, kept in a local file so that a later run can resume or abort it.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pipeline/core/error.h"
#include "pipeline/io/journal_file.h"
#include "pipeline/io/remote/bucket.h"

namespace ggufmill::remote {

// Returns the path that stands for the object in the folder of records, by default `$XDG_STATE_HOME/ggufmill/uploads`
// (else below `~/.local/state`): temporary_path() of it is the path of a record, and names the same kinds of files as
// next to a local output. It depends on the server too. Empty if neither variable is set.
std::string record_base(const Bucket& bucket, std::string folder = {});
// Same for an output of another kind, whose URL and path are given.
std::string record_base(const std::string& url, const std::string& path, std::string folder = {});

// The contents of a record: lines of JSON. The first, {format, version, object, server, bytes, token, since}, is
// written before the upload is started; {upload} when it has an identifier, and {part, etag, bytes} for each part that
// the server has. An incomplete last line, as a kill leaves it, is ignored.
struct RecordText {
  std::string object;
  std::uint64_t bytes = 0;  // of the object
  ObjectToken token;
  std::int64_t since = 0;  // time of the server's clock at which the upload was about to be started
  std::string upload{};    // empty: unknown
  std::map<unsigned, StoredPart> parts{};
};
std::optional<RecordText> read_record(std::string_view text);
// Reads a file; nullopt if it is missing or not a record.
std::optional<RecordText> load_record(const std::string& path);

// The open record of an upload, locked against other processes. Not thread-safe.
class UploadRecord {
 public:
  // Creates the record. `discard` is called with the contents of an existing one before that is emptied. Exit code 75
  // if another process is writing the object, 6 if the file cannot be written.
  static Result<std::unique_ptr<UploadRecord>> create(const std::string& path, const RecordText& beginning,
                                                      const std::function<Status(const RecordText&)>& discard);
  // Opens an existing record; exit code 6 if there is none.
  static Result<std::unique_ptr<UploadRecord>> open(const std::string& path);

  const RecordText& text() const { return text_; }
  Status set_upload(const std::string& upload);
  Status add_part(const StoredPart& part);
  // Removes the file, because the upload is over.
  void remove() { file_.remove(); }

 private:
  explicit UploadRecord(const std::string& path) : file_(path) {}
  Status append(const std::string& line);

  JournalFile file_;
  RecordText text_;
  std::uint64_t end_ = 0;
};

}  // namespace ggufmill::remote
