#pragma once
// Importance for experts and tensors whose own data is missing or too little.

#include <cstdint>
#include <string>
#include <vector>

#include "stages/importance/merged_importance.h"

namespace ggufmill {

// An entry as the importance of a tensor with `columns` columns and `matrices` matrices, which are its experts.
// `columns * matrices` is the size of the entry.
struct EntryUse {
  const MergedEntry* entry = nullptr;
  std::uint64_t columns = 0, matrices = 0;
  std::vector<std::uint64_t> rare{};  // matrices that saw too few tokens, in ascending order

  bool has_data() const { return entry && rare.size() < matrices; }
  bool is_rare(std::uint64_t matrix) const;
};

// Returns the use of an entry; matrices that saw fewer than `least_counts` tokens are rare.
EntryUse use_of(const MergedEntry& entry, std::uint64_t columns, std::uint64_t matrices, std::uint64_t least_counts);

// Returns the matrices that saw enough tokens, but whose weights are all 0, in ascending order. Reads each matrix up to
// its first weight that is not. Fails as MergedEntry::weights() does.
Result<std::vector<std::uint64_t>> zero_matrices(const EntryUse& use);

// Returns the weights of the columns over all tokens of the matrices that are not rare; at least one is not. Sums are
// in double precision, in the order of the matrices, and rounded once. Fails as MergedEntry::weights() does.
Result<std::vector<float>> mean_weights(const EntryUse& use);

// Returns the importance of a tensor: that of `use.entry` if it is not null, with `substitute` as the weights of rare
// matrices if it is not empty. Reads the weights once to check them.
Result<Importance> importance_of(const std::string& tensor, const EntryUse& use, std::vector<float> substitute);

}  // namespace ggufmill
