#pragma once
// Which parts of a job are done: a part that has a marker, and whose bytes are still where it wrote them.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/cluster/cluster_job.h"
#include "pipeline/cluster/hems.h"

namespace ggufmill {

// A marker counts while every output file that the part wrote to is the same file (by inode) of full size, and the hems
// are there. Where a file has holes in what the part wrote, as one has that was cut and made longer again, the units
// there are read and compared with their checksums. Bytes that others overwrote are found by the seal alone, which
// reads all of them. Once the seal has given an output its name, every marker counts.
class DoneParts {
 public:
  // Both outlive it. Looks, at one part alone where it is given.
  DoneParts(const ClusterJob& job, const Plan& plan, std::optional<std::size_t> one = {});

  // Looks again. A marker that it knows is not read again, nor are bytes that it has compared.
  void look();
  bool is_done(std::size_t part) const { return parts_[part].marker && parts_[part].lost.empty(); }
  // Whether the seal has given an output its name.
  bool is_published() const { return is_published_; }
  // Why a part that has a marker is not done: "'out/a.gguf' was cut to 0 bytes". Empty for all other parts.
  const std::string& lost(std::size_t part) const { return parts_[part].lost; }
  // None where there is none, or one that is not of this job and part.
  const std::optional<DoneMarker>& marker(std::size_t part) const { return parts_[part].marker; }

 private:
  struct Part {
    std::optional<DoneMarker> marker;
    std::string lost;
    bool was_compared = false;  // what lies in holes
  };
  struct Range {
    std::uint64_t first = 0, last = 0;
  };
  struct File {
    bool is_there = false;
    std::uint64_t inode = 0, bytes = 0;
    std::vector<Range> holes;  // sorted
  };
  File look_at(const std::string& path) const;
  std::string find_loss(std::size_t part);
  bool lies_in_hole(const Hem& piece, const PartPlaces& places) const;
  std::string compare_holes(std::size_t part) const;

  const ClusterJob& job_;
  const Plan& plan_;
  const std::optional<std::size_t> one_;
  const std::vector<StoredFile> stored_;
  const std::vector<PartPlaces> places_;
  bool is_published_ = false;
  std::vector<File> files_;
  std::vector<Part> parts_;
};

// The part is to be done again: its marker is removed, and a journal of what the marker says is left, so that an
// attempt does only the units whose bytes are gone.
Status undo_part(const ClusterJob& job, const Plan& plan, std::size_t part, const DoneMarker& marker);

}  // namespace ggufmill
