#pragma once
// An object on a server as a source of bytes.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "pipeline/io/byte_source.h"
#include "pipeline/remote/address.h"
#include "pipeline/remote/requests.h"

namespace ggufmill::remote {

// Bytes of one object, read by ranges; every answer must be of the same length and version (ETag, else the time of the
// last change) as the first. Of the hub, whose commits do not change, the revision is the commit that the server named.
// Thread-safe.
class RemoteSource final : public ByteSource {
 public:
  enum class Use {
    kHeader,  // many small reads: more than is asked for is read, and kept
    kRun,     // large reads, each straight into its place
  };
  // Exit code 4 for what is not there or cannot be read in parts, 6 for what is refused, 75 for a server that does not
  // answer.
  static Result<std::shared_ptr<const RemoteSource>> open(Address address, const Settings& settings, Use use);

  const SourceRef& describe() const override { return description_; }
  Status check_unchanged() const override;
  std::size_t request_bytes() const override { return 8 << 20; }
  Status read(std::uint64_t offset, std::span<std::byte> into) const override;
  bool read_if_cached(std::uint64_t, std::span<std::byte>) const override { return false; }
  void start_read(IoService& io, std::uint64_t offset, std::span<std::byte> into, Completion done) const override;

 private:
  struct Attempt;
  // What was read beyond what was asked for.
  struct Window {
    std::mutex mutex;
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
    std::size_t next_bytes = 0;  // of the next one
  };

  RemoteSource(Address address, const Settings& settings, Place origin)
      : address_(std::move(address)), settings_(settings), origin_(std::move(origin)) {}
  Result<Attempt> fetch(std::uint64_t offset, std::span<std::byte> into, const SourceFile* known,
                        bool from_origin) const;
  Result<Attempt> ask(std::uint64_t offset, std::span<std::byte> into, const SourceFile* known, bool from_origin) const;
  Status read_headers(const Answer& answer, const Place& place, std::uint64_t first, std::size_t most,
                      const SourceFile* known, Attempt& attempt) const;
  Result<SourceFile> version_of(const Answer& answer, const Place& place, std::uint64_t bytes) const;
  void remember(const Answer& answer) const;
  Place place() const;

  Address address_;
  const Settings settings_;
  Place origin_;
  SourceRef description_;
  std::unique_ptr<Window> window_;  // of Use::kHeader

  mutable std::mutex mutex_;                  // of what follows
  mutable std::optional<Place> last_;         // where the last answer came from, where that is another place
  mutable std::string hub_tag_, hub_commit_;  // what the hub said of the file when it redirected
};

}  // namespace ggufmill::remote
