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
#include "pipeline/io/remote/address.h"
#include "pipeline/io/remote/requests.h"
#include "pipeline/io/remote/xet_download.h"

namespace ggufmill::remote {

// Reads the bytes of one object by ranges; every response must have the same length and version (ETag, else the time of
// the last change) as the first. For the hub, whose commits do not change, the revision is replaced by the commit that
// the server named, and a file that it redirects to nowhere is read by Xet. Thread-safe.
class RemoteSource final : public ByteSource {
 public:
  enum class Use {
    kHeader,  // many small reads: reads ahead and caches the data
    kRun,     // large reads, each directly into its destination
  };
  // Exit code 4 if the object is missing or cannot be read in parts, 6 if access is refused, 75 if the server does not
  // respond.
  static Result<std::shared_ptr<const RemoteSource>> open(Address address, const Settings& settings, Use use);

  const SourceRef& describe() const override { return description_; }
  Status check_unchanged() const override;
  std::size_t request_bytes() const override { return 8 << 20; }
  Status read(std::uint64_t offset, std::span<std::byte> into) const override;
  bool read_if_cached(std::uint64_t, std::span<std::byte>) const override { return false; }
  void start_read(IoService& io, std::uint64_t offset, std::span<std::byte> into, Completion done) const override;

 private:
  struct Attempt;
  // Data read ahead.
  struct Window {
    std::mutex mutex;
    std::uint64_t offset = 0;
    std::vector<std::byte> bytes;
    std::size_t next_bytes = 0;  // size of the next window
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
  // Lets the next requests read from the content store of the hub. Returns false if the hub has not named the file
  // there.
  Result<bool> use_xet() const;

  Address address_;
  const Settings settings_;
  Place origin_;
  SourceRef description_;
  std::unique_ptr<Window> window_;  // for Use::kHeader only

  mutable std::mutex mutex_;                  // guards the members below
  mutable std::optional<Place> last_;         // origin of the last response, if redirected
  mutable std::string hub_tag_, hub_commit_;  // from the hub's response when it redirected
  mutable XetDownload::File hub_xet_;         // likewise
  mutable std::mutex xet_mutex_;              // guards the member below
  mutable std::unique_ptr<XetDownload> xet_;  // null as long as the hub redirects to the bytes
};

}  // namespace ggufmill::remote
