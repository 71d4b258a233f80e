#pragma once
// Content of files, sent to the hub with Git LFS: in one piece or in parts, as the hub asks for it.

#include <boost/json/value.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/io/remote/hub_client.h"

namespace ggufmill::remote {

// The files of one answer of the batch API. Not thread-safe; the client must outlive it.
class LfsUpload {
 public:
  // `sent` receives bytes as they are sent, from several threads, but one call at a time; it may be empty.
  LfsUpload(const HubClient& client, const std::function<void(std::uint64_t bytes)>& sent);
  ~LfsUpload();
  LfsUpload(const LfsUpload&) = delete;
  LfsUpload& operator=(const LfsUpload&) = delete;

  // Adds a file, which must outlive this object. `object` is what the hub has answered about it. Nothing is sent yet.
  // Exit code 6 if the hub refuses the file, 75 if it has forgotten content that was sent, 4 if the file has another
  // size than its description.
  Status add(const HubFile& file, const boost::json::value& object);
  // Sends all files, several pieces at a time. After an error, no new piece is started.
  Status send();

 private:
  struct Pieces;
  struct Content;
  Result<Pieces> pieces_of(const HubFile& file, const HubAction& upload) const;

  const HubClient& client_;
  std::function<void(std::uint64_t)> sent_;
  std::vector<std::unique_ptr<Content>> contents_;
};

}  // namespace ggufmill::remote
