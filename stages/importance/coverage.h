#pragma once
// Assigns importance data to the tensors of a model, and substitutes for those whose own data is missing or too little.

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/core/model.h"
#include "stages/importance/merged_importance.h"

namespace ggufmill {

// Policies for tensors without data, and for experts (matrices of a tensor) that saw too few tokens.
enum class Missing {
  kNone,        // as llama-quantize: tensors are quantized without importance, experts with weights of 1
  kError,       // they are problems
  kMean,        // experts get the mean of the others of their tensor; tensors are quantized without importance
  kNeighbours,  // as kMean, but tensors of layers get the mean of the same tensors of the nearest layers with data
};

struct CoveragePolicy {
  Missing missing = Missing::kNone;
  std::uint64_t least_counts = 1;  // tokens that an expert must have seen to be used
  bool any_model = false;          // a file may be of another model, see check_model()
};

// Adds a problem (exit code 4) to the model if no entry of the file has the name of a tensor, so that it belongs to
// another model, or a warning if only some entries match, or if `any_model` is set. `remedy` says what to do about the
// problem.
void check_model(const ImportanceFile& file, bool any_model, const std::string& remedy, Model& model);

// Assigns the entry with the same name to each tensor of the model. Reads each entry once to check its numbers; invalid
// numbers are an error. Adds problems to the model (Model::problems, exit code 4) for:
// - an entry with a size other than the tensor's columns times its matrices (dims[0] * dims[2]; matrices along dims[3]
//   share entries) if the tensor is converted. Otherwise sets Tensor::importance_fault, for the stage that will decide
//   its type. Token embeddings get a warning and no importance, as in the reference;
// - with Missing::kError, tensors without an entry that have two or more dimensions, are named *weight and are kept by
//   `selection`, and experts that saw fewer than `least_counts` tokens. Token embeddings need no entry, because
//   calibration looks their rows up instead of multiplying by them.
// Weights that are all 0 are used as they are with Missing::kNone, as in the reference, with a warning; otherwise they
// count as missing. All experts and all tensors that do not use data of their own get one warning; Importance::note
// records it for each tensor.
Status attach_importance(const MergedImportance& data, const Selection& selection, CoveragePolicy policy, Model& model);

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
