#pragma once
// Who writes which bytes of an output that several machines write at once.
//
// Two clients of a network file system that write one page lose bytes even where these do not overlap, so every chunk
// of 1 MiB of an output file has one writer. A chunk in which all bytes are of one part is that part's. Bytes in any
// other chunk, among them those that share one with the header, are hems: the part keeps them in a file of its own, and
// the seal brings them to their places when all parts are done.

#include <cstdint>
#include <vector>

#include "pipeline/cluster/cluster_job.h"

namespace ggufmill {

inline constexpr std::uint64_t kChunkBytes = 1 << 20;

// Bytes of an output file that a part keeps beside.
struct Hem {
  std::size_t file = 0;  // among those of all outputs
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t at = 0;  // in the part's hem file
};

// What a part writes: which files, and of these the hems, sorted by file and offset. A pure function of plan and cuts.
struct PartPlaces {
  std::vector<std::size_t> files;  // ascending
  std::vector<Hem> hems;
  std::uint64_t hem_bytes = 0;
};
// Of each part from `first` on, `count` of them.
std::vector<PartPlaces> places_of(const Plan& plan, const std::vector<std::size_t>& cuts, std::size_t first,
                                  std::size_t count);

// Bytes of an output file that nothing is written to: what lies between tensors. They are zeros.
struct Gap {
  std::size_t file = 0;
  std::uint64_t offset = 0, bytes = 0;
};
std::vector<Gap> gaps_of(const Plan& plan);

}  // namespace ggufmill
