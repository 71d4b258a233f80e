#include "stages/importance/importance_entry.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "pipeline/core/importance.h"

namespace ggufmill {
namespace {

constexpr std::size_t kPiece = 64 * 1024;  // weights checked at once

struct HashFree {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

}  // namespace

Status ImportanceEntry::weights(std::uint64_t first, std::span<float> into) const {
  if (into.empty()) return ok();
  BOOST_OUTCOME_TRY(sums.read(first, into));
  std::vector<float> parts;
  if (counts.file) {
    const std::uint64_t part = size() / counts.count, first_part = first / part;
    parts.resize((first + into.size() - 1) / part - first_part + 1);
    BOOST_OUTCOME_TRY(counts.read(first_part, parts));
  }
  return to_weights({sums.file->path(), name, size(), counts.count, calls}, first, parts, into);
}

Result<std::string> fingerprint_weights(const ImportanceEntry& entry) {
  const std::unique_ptr<XXH3_state_t, HashFree> state(XXH3_createState());
  if (!state) return Error{ExitCode::kTransient, "", "no memory for a hash", "", ""};
  XXH3_128bits_reset(state.get());
  std::vector<float> piece(std::min<std::uint64_t>(kPiece, entry.size()));
  for (std::uint64_t first = 0; first < entry.size(); first += piece.size()) {
    piece.resize(std::min<std::uint64_t>(piece.size(), entry.size() - first));
    BOOST_OUTCOME_TRY(entry.weights(first, piece));
    XXH3_128bits_update(state.get(), piece.data(), piece.size() * sizeof(float));
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace ggufmill
