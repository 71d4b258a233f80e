#pragma once
// The memory that the contenders of one row of the bench work on in turn.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "plugins/abi/ggufmill_kernels.h"

namespace ggufmill::bench {

// One call of a kernel converts so many rows.
inline constexpr std::uint64_t kRows = 16, kCols = 4096, kWeights = kRows * kCols;

// Where the data is when a call begins.
enum class Place : std::uint8_t {
  kCache,   // second-level cache: every call works on the same weights
  kMemory,  // beyond the last-level cache: every call takes the next ones of a buffer that is larger
};

std::string name_of(Place place);

// Of the last-level cache; 32 MiB where the system does not say.
std::size_t last_cache_bytes();

class Workspace {
 public:
  // `source` is what one call reads.
  Workspace(std::span<const std::byte> source, std::size_t target_bytes, Place place);

  // The next call. Its source is as given, its target holds anything.
  ggufmill_call next(const float* importance);
  // Of the latest call.
  std::span<std::byte> target() { return {targets_.data() + at_ * target_bytes_, target_bytes_}; }

 private:
  std::size_t source_bytes_, target_bytes_;
  std::size_t windows_;
  std::size_t at_ = 0;
  std::vector<std::byte> sources_, targets_;
};

}  // namespace ggufmill::bench
