#include "stages/importance/covariance_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "pipeline/core/byte_order.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::string_view kVersionKey = "covariance.version";
constexpr std::string_view kBlockKey = "covariance.block";
constexpr std::string_view kTensorsKey = "covariance.tensors";
constexpr std::string_view kInputsKey = "covariance.inputs";
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kNumbersAtOnce = 1 << 16;

// Adds to the help of an error that the file can be used as an importance matrix.
Error for_importance(Error error, const std::string& help) {
  const std::string use = help + "; or use the file as an importance matrix only: ";
  error.help = use + "importance: {file: ..}";
  return with_options(error, use + option_reference("imatrix", shell_word(error.where)));
}

class CovarianceReader {
 public:
  CovarianceReader(const std::string& path, const Model& model) : path_(path), model_(model) {}

  Result<CovarianceFile> read() {
    CovarianceFile out;
    BOOST_OUTCOME_TRY(const std::uint64_t version, number(kVersionKey));
    if (version != kVersion)
      return for_importance(
          input_error(path_,
                      fmt::format("its covariances have version {}; this program reads version {}", version, kVersion)),
          "use a newer ggufmill");
    BOOST_OUTCOME_TRY(const std::uint64_t block, number(kBlockKey));
    out.block = static_cast<std::uint32_t>(block);
    BOOST_OUTCOME_TRY(out.importance, find_gguf_entries(path_, model_));
    for (const Tensor& tensor : model_.tensors) tensors_.emplace(tensor.name, &tensor);
    for (const ImportanceEntry& entry : out.importance.entries) entries_.emplace(entry.name, &entry);
    BOOST_OUTCOME_TRY(read_groups(out));
    for (CovarianceInput& input : out.inputs) {
      BOOST_OUTCOME_TRY(read_input(out.block, input));
    }
    if (out.inputs.empty()) return error(fmt::format("'{}' is empty", kTensorsKey));
    return out;
  }

 private:
  Error error(const std::string& what) const {
    return input_error(path_, fmt::format("not a valid covariance file: {}", what),
                       "collect the covariance again (ggufmill-calibrate writes such files), or take another copy");
  }

  Result<std::uint64_t> number(std::string_view name) const {
    const MetadataValue* const value = model_.metadata.find(name);
    if (!value) return error(fmt::format("metadata key '{}' is missing", name));
    const auto number = as_unsigned(*value);
    if (!number || *number > UINT32_MAX)
      return error(fmt::format("'{}' is {}, not a number of 32 bits", name, describe(*value)));
    return *number;
  }

  Result<std::vector<std::string>> names(std::string_view key) const {
    const MetadataValue* const value = model_.metadata.find(key);
    if (!value) return error(fmt::format("metadata key '{}' is missing", key));
    const auto array = as_array(*value);
    if (!array || array->element != MetadataType::kString)
      return error(fmt::format("'{}' is {}, not an array of strings", key, describe(*value)));
    std::vector<std::string> texts;
    for (const MetadataValue& item : array_items(*value)) texts.emplace_back(as_string(item).value_or(""));
    return texts;
  }

  // Reads which tensors share an input.
  Status read_groups(CovarianceFile& out) const {
    BOOST_OUTCOME_TRY(const std::vector<std::string> tensors, names(kTensorsKey));
    BOOST_OUTCOME_TRY(const std::vector<std::string> owners, names(kInputsKey));
    if (tensors.size() != owners.size())
      return error(
          fmt::format("'{}' has {} names, but '{}' has {}", kTensorsKey, tensors.size(), kInputsKey, owners.size()));
    std::unordered_map<std::string_view, std::string_view> owner_of;
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (!owner_of.emplace(tensors[i], owners[i]).second)
        return error(fmt::format("'{}' names {} twice", kTensorsKey, quoted_name(tensors[i])));
    std::unordered_map<std::string_view, std::size_t> inputs;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto own = owner_of.find(owners[i]);
      if (own == owner_of.end() || own->second != owners[i])
        return error(fmt::format("the input of {} is named after {}, which does not have that input",
                                 quoted_name(tensors[i]), quoted_name(owners[i])));
      const auto [input, is_new] = inputs.emplace(owners[i], out.inputs.size());
      if (is_new) out.inputs.emplace_back().owner = owners[i];
      out.inputs[input->second].tensors.push_back(tensors[i]);
      out.places.emplace(tensors[i], input->second);
    }
    return ok();
  }

  Status read_input(std::uint32_t block, CovarianceInput& input) {
    const auto owner = entries_.find(input.owner);
    if (owner == entries_.end()) return without_sums(input.owner);
    const ImportanceEntry& own = *owner->second;
    for (const std::string& name : input.tensors) {
      const auto entry = entries_.find(name);
      if (entry == entries_.end()) return without_sums(name);
      if (entry->second->size() != own.size() || entry->second->counts.count != own.counts.count)
        return error(fmt::format(
            "the entry of tensor {} has {} sums and {} counts, but that of {}, with the same input, {} and {}",
            quoted_name(name), entry->second->size(), entry->second->counts.count, quoted_name(input.owner), own.size(),
            own.counts.count));
    }
    input.entry = own;
    return read_correlations(block, input);
  }

  Error without_sums(const std::string& tensor) const {
    return error(fmt::format("tensor {} has an input, but no {}.in_sum2", quoted_name(tensor), printable(tensor)));
  }

  Status read_correlations(std::uint32_t block, CovarianceInput& input) {
    const std::string name = input.owner + ".in_corr";
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return error(fmt::format("tensor {} is missing", quoted_name(name)));
    const Tensor& tensor = *found->second;
    if (tensor.source_type().name != "F16")
      return error(fmt::format("{} is {}, not F16", quoted_name(name), tensor.source_type().name));
    Covariance& covariance = input.covariance;
    covariance.name = input.owner;
    covariance.matrices = input.entry.counts.count;
    covariance.columns = input.entry.size() / covariance.matrices;
    covariance.block = block;
    const std::optional<std::uint64_t> length = covariance.packing().length();
    const Shape& shape = tensor.shape();
    if (!length || shape.columns() != *length || shape.dims[2] != 1 || shape.dims[3] != 1 ||
        (shape.dims[1] != 1 && shape.dims[1] != covariance.matrices))
      return error(fmt::format("{} is {}, but {} columns{} of {} have {}", quoted_name(name), describe(shape),
                               covariance.columns, block == 0 ? "" : fmt::format(" in blocks of {}", block),
                               counted(covariance.matrices, "expert"),
                               length ? fmt::format("{} correlations", *length) : "too many correlations"));
    covariance.is_pooled = shape.dims[1] < covariance.matrices;
    covariance.sums = input.entry.sums.extent();
    covariance.correlations = *tensor.expression->as_extent();
    BOOST_OUTCOME_TRY(read_vectors(covariance));
    std::shared_ptr<const ByteSource>& file = files_[covariance.correlations.source->path];
    if (!file) {
      BOOST_OUTCOME_TRY(file, open_source(covariance.correlations.source->path));
    }
    input.file = file;
    return ok();
  }

  Status read_vectors(Covariance& covariance) const {
    const std::string name = covariance.name + ".in_rows";
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) return ok();
    const Tensor& tensor = *found->second;
    if (tensor.source_type().name != "BF16")
      return error(fmt::format("{} is {}, not BF16", quoted_name(name), tensor.source_type().name));
    const Shape& shape = tensor.shape();
    if (shape.columns() != covariance.columns || shape.dims[2] != covariance.matrices || shape.dims[3] != 1)
      return error(fmt::format("{} is {}, but the input has {} columns of {}", quoted_name(name), describe(shape),
                               covariance.columns, counted(covariance.matrices, "expert")));
    if (shape.dims[1] == 0 || shape.dims[1] > kMaxHeldOut)
      return error(fmt::format("{} has {} vectors of each expert; there may be 1 to {}", quoted_name(name),
                               shape.dims[1], kMaxHeldOut));
    covariance.held_out = shape.dims[1];
    covariance.vectors = *tensor.expression->as_extent();
    if (covariance.vectors.source->path != covariance.correlations.source->path)
      return error(fmt::format("{} is in another shard than the correlations", quoted_name(name)));
    return ok();
  }

  const std::string& path_;
  const Model& model_;
  std::unordered_map<std::string_view, const Tensor*> tensors_;
  std::unordered_map<std::string_view, const ImportanceEntry*> entries_;
  std::unordered_map<std::string, std::shared_ptr<const ByteSource>> files_;  // of the correlations
};

// Calls `read` with the number of the first of each piece of `count` numbers, for which `piece` then has the size.
template <class Read>
Status for_pieces(std::uint64_t count, std::vector<float>& piece, const Read& read) {
  for (std::uint64_t first = 0; first < count; first += piece.size()) {
    piece.resize(std::min(kNumbersAtOnce, count - first));
    BOOST_OUTCOME_TRY(read(first));
  }
  return ok();
}

// Compares a run of numbers of a tensor with that of the tensor that their input is named after.
Status check_equal(const FloatRun& own, const FloatRun& other, const std::string& what, const std::string& path) {
  std::vector<float> piece, expected;
  return for_pieces(own.count, piece, [&](std::uint64_t first) -> Status {
    expected.resize(piece.size());
    BOOST_OUTCOME_TRY(own.read(first, expected));
    BOOST_OUTCOME_TRY(other.read(first, piece));
    if (piece == expected) return ok();
    return input_error(path, "not a valid covariance file: " + what,
                       "collect the covariance again (ggufmill-calibrate writes such files), or take another copy");
  });
}

}  // namespace

Status CovarianceInput::read(std::uint64_t set, std::uint64_t first, std::span<float> into) const {
  std::vector<std::uint16_t> halves(into.size());
  const Extent extent = covariance.correlations_of(set);
  const auto bytes = std::as_writable_bytes(std::span(halves));
  BOOST_OUTCOME_TRY(file->read(extent.offset + first * sizeof(std::uint16_t), bytes));
  if (extent.big_endian) swap_words(sizeof(std::uint16_t), bytes);
  const std::size_t bad = decode_correlations(halves, into);
  if (bad != into.size()) return covariance.bad_correlation(set, first + bad, into[bad]);
  return ok();
}

Status CovarianceInput::read_vectors(std::uint64_t expert, std::uint64_t first, std::span<float> into) const {
  std::vector<std::uint16_t> numbers(into.size());
  const Extent extent = covariance.vectors_of(expert);
  const auto bytes = std::as_writable_bytes(std::span(numbers));
  BOOST_OUTCOME_TRY(file->read(extent.offset + first * sizeof(std::uint16_t), bytes));
  if (extent.big_endian) swap_words(sizeof(std::uint16_t), bytes);
  const std::size_t bad = decode_vectors(numbers, into);
  if (bad != into.size()) return covariance.bad_vector(expert, first + bad, into[bad]);
  return ok();
}

Status CovarianceInput::read_sums(std::uint64_t expert, std::uint64_t first, std::span<float> into) const {
  BOOST_OUTCOME_TRY(entry.sums.read(expert * columns() + first, into));
  const auto bad = std::ranges::find_if(into, [](float sum) { return !std::isfinite(sum) || sum < 0; });
  if (bad != into.end())
    return covariance.bad_sum(expert, first + static_cast<std::uint64_t>(bad - into.begin()), *bad);
  return ok();
}

const CovarianceInput* CovarianceFile::input_of(std::string_view tensor) const {
  const auto found = places.find(std::string(tensor));
  return found == places.end() ? nullptr : &inputs[found->second];
}

bool has_covariance(const Model& importance) { return importance.metadata.find(kVersionKey) != nullptr; }

Result<bool> is_covariance_file(const std::string& path, const ModelOpener& open) {
  BOOST_OUTCOME_TRY(const std::shared_ptr<const ByteSource> file, open_source(path));
  BOOST_OUTCOME_TRY(const bool is_gguf, is_gguf_importance(*file));
  if (!is_gguf) return false;
  BOOST_OUTCOME_TRY(const Model model, open(path));
  return has_covariance(model);
}

Result<CovarianceFile> open_covariance(const std::string& path, const ModelOpener& open) {
  BOOST_OUTCOME_TRY(const std::shared_ptr<const ByteSource> file, open_source(path));
  BOOST_OUTCOME_TRY(const bool is_gguf, is_gguf_importance(*file));
  bool is_importance = !is_gguf;
  if (is_gguf) {
    BOOST_OUTCOME_TRY(const Model model, open(path));
    if (has_covariance(model)) return CovarianceReader(path, model).read();
    is_importance = model.metadata.find("imatrix.chunk_count") != nullptr;
  }
  Error error = input_error(path, "it has no covariances", "ggufmill-calibrate collects them");
  return is_importance ? for_importance(error, error.help) : error;
}

Status check_shared_sums(const CovarianceFile& file) {
  for (const ImportanceEntry& entry : file.importance.entries) {
    const CovarianceInput* const input = file.input_of(entry.name);
    if (!input || input->owner == entry.name) continue;
    const std::string what = fmt::format("the sums or counts of {} are not those of {}, whose input it has",
                                         quoted_name(entry.name), quoted_name(input->owner));
    BOOST_OUTCOME_TRY(check_equal(input->entry.sums, entry.sums, what, file.importance.path));
    BOOST_OUTCOME_TRY(check_equal(input->entry.counts, entry.counts, what, file.importance.path));
  }
  return ok();
}

Status check_numbers(const CovarianceFile& file) {
  std::vector<float> piece;
  for (const CovarianceInput& input : file.inputs) {
    for (std::uint64_t expert = 0; expert < input.experts(); ++expert) {
      BOOST_OUTCOME_TRY(for_pieces(input.columns(), piece,
                                   [&](std::uint64_t first) { return input.read_sums(expert, first, piece); }));
      BOOST_OUTCOME_TRY(for_pieces(input.covariance.held_out * input.columns(), piece,
                                   [&](std::uint64_t first) { return input.read_vectors(expert, first, piece); }));
    }
    for (std::uint64_t set = 0; set < input.sets(); ++set) {
      BOOST_OUTCOME_TRY(for_pieces(*input.covariance.packing().length(), piece,
                                   [&](std::uint64_t first) { return input.read(set, first, piece); }));
    }
  }
  return check_shared_sums(file);
}

}  // namespace ggufmill
