#pragma once
// Requests to a bucket about one object: multipart uploads, and what the bucket has under the object's key. Source:
// Amazon S3 API Reference.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/ledger.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/io/remote/requests.h"

namespace ggufmill::remote {

// Identity of what a run writes to a key, chosen at random. It is stored with the object as metadata, so that a run
// recognizes the object that it has completed, even if the answer was lost.
struct ObjectToken {
  std::uint64_t high = 0, low = 0;

  static ObjectToken random();
  static std::optional<ObjectToken> parse(std::string_view text);
  std::string text() const;  // 32 hexadecimal digits
  FileId id() const { return {high, low}; }
  bool operator==(const ObjectToken&) const = default;
};

// A part of an upload, as the bucket lists it.
struct StoredPart {
  unsigned number = 0;  // from 1
  std::string etag;
  std::uint64_t bytes = 0;
};

// An object as a bucket describes it.
struct StoredObject {
  std::string etag;
  std::optional<ObjectToken> token;    // none: it was not written by ggufmill
  std::optional<std::uint64_t> bytes;  // none: the server does not say
  std::int64_t modified = 0;           // seconds since 1970; 0: unknown

  // Returns true if it is the complete object that a run writes with this token. Metadata alone prove nothing about the
  // content.
  bool is(const ObjectToken& its_token, std::uint64_t its_bytes) const {
    return token == its_token && bytes == its_bytes;
  }
};

// The place of an object that exists or is to be written. Every request is repeated after temporary failures, like
// those for sources; exit code 75 after the last attempt. A success counts only with the document, or the ETag, that S3
// sends with it, and a document only if it does not name another object. Permanent failures: exit code 2 if the object
// exists and may not be replaced, else 6. Thread-safe.
class Bucket {
 public:
  // Exit code 2 if `path` is not an address of an object, if credentials or settings are malformed, or if the program
  // was built without libcurl.
  static Result<Bucket> open(const std::string& path);

  const std::string& path() const { return address_.text; }
  // URL of the object; contains no secrets.
  const std::string& url() const { return access_.url; }

  // Returns nullopt if there is no such object. Exit code 6 also if the server does not let this user look.
  Result<std::optional<StoredObject>> find(const Settings& settings) const;
  // Returns true if find() fails because this user may write, but not read.
  static bool is_unreadable(const Error& error);
  // Returns true if a call fails because the server answers a success that is not one of S3, such as a web page, or a
  // list that S3 never sends.
  static bool is_malformed(const Error& error);

  struct Started {
    std::string upload;
    bool is_alone = true;  // false: another upload may have been started, whose identifier was lost
  };
  Result<Started> start_upload(const ObjectToken& token, const Settings& settings) const;
  // Uploads a part; returns its ETag. The server checks `md5` (Base64).
  Result<std::string> put_part(const std::string& upload, unsigned number, const RequestBody& body,
                               const std::string& md5, const Settings& settings) const;
  // Returns nullopt if the upload does not exist. The numbers are from 1 to kMaxParts, and ascend.
  Result<std::optional<std::vector<StoredPart>>> list_parts(const std::string& upload, const Settings& settings) const;
  // Makes the object of `bytes` bytes visible. If the answer is not a clear success, one that names this object and its
  // ETag, the existing object decides (StoredObject::is). `etags` has those of all parts, in order.
  Status complete(const std::string& upload, std::span<const std::string> etags, const ObjectToken& token,
                  std::uint64_t bytes, bool overwrite, const Settings& settings) const;
  // Uploads a whole object in one request; otherwise like complete().
  Status put(std::string_view text, const ObjectToken& token, bool overwrite, const Settings& settings) const;
  // Removes an upload and its parts; not an error if it does not exist.
  Status abort(const std::string& upload, const Settings& settings) const;
  // Aborts the uploads to this key, other than `kept`, that were started between the given times of the server's clock
  // (seconds since 1970).
  Status abort_others(const std::string& kept, std::int64_t from, std::int64_t to, const Settings& settings) const;

  // Time of the server's clock when it last answered; 0: unknown.
  std::int64_t server_time() const { return *server_time_; }

 private:
  struct Call;
  struct Reply;
  Bucket(Address address, Access access) : address_(std::move(address)), access_(std::move(access)) {}
  Result<Reply> ask_once(const Call& call, const Settings& settings) const;
  Result<Reply> ask(const Call& call, const Settings& settings) const;
  Error refused(const Call& call, const Reply& reply) const;
  // `why` says what is wrong with the document; empty: it is another one, or missing.
  Error malformed(const Call& call, const Reply& reply, std::string why = {}) const;
  Status send_last(Call call, const ObjectToken& token, std::uint64_t bytes, bool overwrite,
                   const Settings& settings) const;

  Address address_;
  Access access_;
  std::shared_ptr<std::atomic<std::int64_t>> server_time_ = std::make_shared<std::atomic<std::int64_t>>(0);
};

}  // namespace ggufmill::remote
