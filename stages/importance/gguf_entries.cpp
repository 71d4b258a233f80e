#include "stages/importance/importance_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

constexpr std::string_view kDatasets = "imatrix.datasets";
constexpr std::string_view kChunkCount = "imatrix.chunk_count";
constexpr std::string_view kChunkSize = "imatrix.chunk_size";
constexpr std::string_view kPredictionLayers = "imatrix.n_layer_nextn";

// The tensors of an entry.
struct Parts {
  const Tensor* sums = nullptr;
  const Tensor* counts = nullptr;
  const Tensor* activations = nullptr;  // null: not recorded
};

struct Ending {
  std::string_view text;
  const Tensor* Parts::*part;
};
constexpr Ending kEndings[] = {
    {".in_sum2", &Parts::sums}, {".counts", &Parts::counts}, {".in_sum", &Parts::activations}};

std::map<std::string, Parts> entries_in(const Model& model) {
  std::map<std::string, Parts> entries;
  for (const Tensor& tensor : model.tensors)
    for (const Ending& ending : kEndings)
      if (tensor.name.ends_with(ending.text))
        entries[tensor.name.substr(0, tensor.name.size() - ending.text.size())].*ending.part = &tensor;
  return entries;
}

class GgufEntries {
 public:
  GgufEntries(const std::string& path, const Model& model) : path_(path), model_(model) {}

  Result<ImportanceFile> find() {
    ImportanceFile out;
    out.path = path_;
    out.files = model_.paths();
    BOOST_OUTCOME_TRY(read_metadata(out));
    for (const SourceRef& file : model_.files) {
      BOOST_OUTCOME_TRY(files_.emplace_back(), open_source(file->path));
    }
    for (const auto& [name, parts] : entries_in(model_)) {
      BOOST_OUTCOME_TRY(out.entries.emplace_back(), entry_of(name, parts));
    }
    if (out.entries.empty()) return error("it has no tensors named NAME.in_sum2 and NAME.counts");
    return out;
  }

 private:
  Error error(const std::string& what) const {
    return input_error(path_, fmt::format("not a valid importance file: {}", what),
                       "importance files are written by llama-imatrix, as GGUF or in the legacy .dat format");
  }

  Result<const MetadataValue*> key(std::string_view name) const {
    const MetadataValue* value = model_.metadata.find(name);
    if (!value) return error(fmt::format("metadata key '{}' is missing", name));
    return value;
  }

  Status read_metadata(ImportanceFile& out) const {
    BOOST_OUTCOME_TRY(const MetadataValue* datasets, key(kDatasets));
    BOOST_OUTCOME_TRY(const MetadataValue* chunks, key(kChunkCount));
    BOOST_OUTCOME_TRY(const MetadataValue* size, key(kChunkSize));
    const auto array = as_array(*datasets);
    if (!array || array->element != MetadataType::kString)
      return error(fmt::format("'{}' is {}, not an array of strings", kDatasets, describe(*datasets)));
    for (const MetadataValue& name : array_items(*datasets)) {
      const std::string_view text = as_string(name).value_or("");
      out.datasets.emplace_back(text.substr(0, text.find('\0')));  // truncated at a zero byte, as by the reference
    }
    const auto count = as_unsigned(*chunks);
    if (!count || *count > INT32_MAX)
      return error(fmt::format("'{}' is {}, not a number of chunks", kChunkCount, describe(*chunks)));
    out.chunks = static_cast<std::uint32_t>(*count);
    if (const auto tokens = as_unsigned(*size); tokens && *tokens <= INT32_MAX)
      out.chunk_size = static_cast<std::uint32_t>(*tokens);
    if (const MetadataValue* layers = model_.metadata.find(kPredictionLayers)) {
      const auto number = as_unsigned(*layers);
      if (!number || *number > INT32_MAX)
        return error(fmt::format("'{}' is {}, not a number of layers", kPredictionLayers, describe(*layers)));
      out.prediction_layers = static_cast<std::uint32_t>(*number);
    }
    return ok();
  }

  FloatRun run_of(const Tensor& tensor) const {
    const Extent& extent = *tensor.expression->as_extent();
    const auto file = std::ranges::find(model_.files, extent.source) - model_.files.begin();
    return {files_[static_cast<std::size_t>(file)], extent.offset, tensor.shape().elements(), extent.big_endian};
  }

  Result<ImportanceEntry> entry_of(const std::string& name, const Parts& parts) const {
    if (name.empty()) return error("an entry has no tensor name");
    if (!parts.sums || !parts.counts)
      return error(fmt::format("the entry of tensor {} has no {}", quoted_name(name), parts.sums ? "counts" : "sums"));
    for (const Tensor* tensor : {parts.sums, parts.counts, parts.activations})
      if (tensor && !tensor->source_type().is_f32())
        return error(fmt::format("{} is {}, not F32", quoted_name(tensor->name), tensor->source_type().name));
    const std::uint64_t sums = parts.sums->shape().elements();
    const std::uint64_t counts = parts.counts->shape().elements();
    if (counts == 0 || sums == 0 || sums % counts != 0)
      return error(fmt::format("the entry of tensor {} has {} sums and {} counts", quoted_name(name), sums, counts));
    if (const std::uint64_t number = parts.activations ? parts.activations->shape().elements() : sums; number != sums)
      return error(fmt::format("the entry of tensor {} has {} sums of activations, but {} sums of their squares",
                               quoted_name(name), number, sums));
    return ImportanceEntry{name, run_of(*parts.sums), run_of(*parts.counts), 0,
                           parts.activations ? run_of(*parts.activations) : FloatRun{}};
  }

  const std::string& path_;
  const Model& model_;
  std::vector<std::shared_ptr<const ByteSource>> files_;
};

}  // namespace

Result<ImportanceFile> find_gguf_entries(const std::string& path, const Model& model) {
  return GgufEntries(path, model).find();
}

}  // namespace ggufmill
