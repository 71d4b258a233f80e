// The sink: distributes the tensors of a model among files, and parses the options in a pipeline file.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/gguf/format.h"
#include "stages/gguf/gguf.h"
#include "stages/gguf/header.h"

namespace ggufmill {
namespace gguf {
namespace {

// ---- distribution of tensors ----

constexpr std::uint64_t kMaxShards = std::numeric_limits<std::uint16_t>::max();       // maximum of split.count
constexpr std::uint64_t kMaxShardTensors = std::numeric_limits<std::int32_t>::max();  // maximum of split.tensors.count

Result<std::uint64_t> checked_alignment(const Metadata& metadata) {
  const MetadataValue* value = metadata.find(kAlignmentKey);
  if (!value) return kDefaultAlignment;
  if (value->type == MetadataType::kUint32 && is_valid_alignment(*as_unsigned(*value))) return *as_unsigned(*value);
  return usage_error(fmt::format("{} is {} ({}), not a power of two up to {} of type uint32", kAlignmentKey,
                                 describe(*value), metadata_type_name(value->type), kLargestAlignment),
                     "remove the key, or set it to a power of two of type uint32, such as 64");
}

// Returns the index of each file's end tensor; the last is the number of tensors. Follows the reference (llama.cpp,
// tools/gguf-split and gguf-py/gguf/gguf_writer.py): only tensor data counts, a file is complete when the next tensor
// would exceed a limit, and a tensor larger than shard_size gets a file of its own. The rules differ only in whether
// padding counts.
Result<std::vector<std::size_t>> cut(const Model& model, const SinkOptions& options, std::uint64_t alignment) {
  std::vector<std::size_t> ends;
  if (options.metadata_shard) ends.push_back(0);
  const bool converts = options.shard_rule == ShardRule::kConvert;
  const std::uint64_t most_bytes = options.shard_size.value_or(UINT64_MAX),
                      most = options.shard_tensors.value_or(UINT64_MAX);
  std::uint64_t bytes = 0, tensors = 0;
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    BOOST_OUTCOME_TRY(std::uint64_t size, tensor_bytes(model.tensors[i]));
    if (!converts) size = padded(size, alignment).value_or(UINT64_MAX);
    const bool fits = bytes <= most_bytes && size <= most_bytes - bytes;
    if (tensors != 0 && (!fits || tensors == most)) {
      ends.push_back(i);
      bytes = tensors = 0;
    }
    bytes += size;
    ++tensors;
  }
  ends.push_back(model.tensors.size());
  return ends;
}

// Returns the index of the first file of the model that the tensor is read from; the number of files if it is read from
// none.
std::ptrdiff_t file_of(const Model& model, std::size_t tensor) {
  const Extent* extent = first_extent(*model.tensors[tensor].expression);
  return std::ranges::find(model.files, extent ? extent->source : nullptr) - model.files.begin();
}

// Same for the shards of the source: tensors must be in the order of the source's files. A first file with only
// metadata is kept; other files left without tensors are omitted.
Result<std::vector<std::size_t>> cut_as_source(const Model& model) {
  std::vector<std::size_t> ends;
  if (!model.tensors.empty() && file_of(model, 0) != 0) ends.push_back(0);
  for (std::size_t i = 1; i < model.tensors.size(); ++i) {
    const auto before = file_of(model, i - 1), now = file_of(model, i);
    if (now < before)
      return usage_error("the source's shards cannot be kept because its tensors are in a different order",
                         "keep the order as well: quantize: {..., order: source}");
    if (now != before) ends.push_back(i);
  }
  ends.push_back(model.tensors.size());
  return ends;
}

// Returns a shard's own entries. Each shard must be readable independently, so that later shards also contain an
// alignment other than the default.
std::vector<MetadataEntry> shard_entries(std::size_t index, std::size_t count, std::size_t tensors,
                                         std::uint64_t alignment, const SinkOptions& options) {
  std::vector<MetadataEntry> entries;
  if (index != 0 && alignment != kDefaultAlignment)
    entries.push_back({std::string(kAlignmentKey), metadata_unsigned(MetadataType::kUint32, alignment)});
  entries.push_back({std::string(kSplitNumberKey), metadata_unsigned(MetadataType::kUint16, index)});
  entries.push_back({std::string(kSplitTensorsKey), metadata_unsigned(MetadataType::kInt32, tensors)});
  entries.push_back({std::string(kSplitCountKey), metadata_unsigned(MetadataType::kUint16, count)});
  if (options.shards != Shards::kSource && options.shard_rule == ShardRule::kSplit) return entries;
  std::swap(entries.back(), entries[entries.size() - 2]);  // the order of llama-quantize and gguf-py, not gguf-split
  if (count == 1) entries.clear();
  return entries;
}

std::string path_of_shard(const SinkOptions& options, std::size_t index, std::size_t count) {
  const fs::path path = options.path;
  if (options.shard_rule == ShardRule::kConvert)
    return count == 1 ? options.path : shard_path((path.parent_path() / path.stem()).string(), index, count);
  const std::string_view all = options.path;
  return shard_path(all.ends_with(".gguf") ? all.substr(0, all.size() - 5) : all, index, count);
}

std::vector<const MetadataEntry*> carried(const Model& model) {
  std::vector<const MetadataEntry*> entries;
  for (const MetadataEntry& entry : model.metadata.entries())
    if (!is_split_key(entry.key)) entries.push_back(&entry);
  return entries;
}

// Returns the split entries that a merged model keeps. The last is a count of 0, so that the file is not taken for a
// shard.
std::vector<MetadataEntry> merged_entries(const Model& model, const SinkOptions& options) {
  std::vector<MetadataEntry> entries;
  if (options.shards != Shards::kMerged) return entries;
  for (const MetadataEntry& entry : model.metadata.entries())
    if (is_split_key(entry.key) && entry.key != kSplitCountKey) entries.push_back(entry);
  entries.push_back({std::string(kSplitCountKey), metadata_unsigned(MetadataType::kUint16, 0)});
  return entries;
}

Result<std::vector<OutputFile>> lay_out_shards(const Model& model, const SinkOptions& options,
                                               std::uint64_t alignment) {
  BOOST_OUTCOME_TRY(const std::vector<std::size_t> ends,
                    options.shards == Shards::kSource ? cut_as_source(model) : cut(model, options, alignment));
  if (ends.size() > kMaxShards || model.tensors.size() > kMaxShardTensors)
    return usage_error(fmt::format("{} tensors in {} files; at most {} files are possible", model.tensors.size(),
                                   ends.size(), kMaxShards),
                       "allow more bytes or more tensors in a file");
  std::vector<OutputFile> files;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const auto own = shard_entries(i, ends.size(), model.tensors.size(), alignment, options);
    FileContent content{
        path_of_shard(options, i, ends.size()), {}, i == 0 ? 0 : ends[i - 1], ends[i], options.big_endian};
    if (i == 0) content.metadata = carried(model);
    for (const MetadataEntry& entry : own) content.metadata.push_back(&entry);
    BOOST_OUTCOME_TRY(OutputFile file, lay_out_file(model, content, alignment));
    files.push_back(std::move(file));
  }
  return files;
}

// Lays out one file or, with limits, as many as needed (at least one), named as shards. The first contains the metadata
// without the model's split.* keys; each shard gets its own. Fails with exit code 2 for more than 65535 shards, an
// invalid general.alignment, and duplicate names.
Result<std::vector<OutputFile>> lay_out_files(const Model& model, const SinkOptions& options) {
  BOOST_OUTCOME_TRY(const std::uint64_t alignment, checked_alignment(model.metadata));
  BOOST_OUTCOME_TRY(check_unique_names(model));
  if (options.sharded()) return lay_out_shards(model, options, alignment);
  const std::vector<MetadataEntry> own = merged_entries(model, options);
  if (options.shards == Shards::kMerged && !model.metadata.find(kSplitCountKey))
    return with_options(usage_error("the source is not a shard: split.count is missing", "omit `shards: merged`"),
                        "to copy it all the same: " + option_reference("clean", "true"));
  // A conversion without tensors writes only a vocabulary. The file ends after its last value.
  const bool is_bare = options.shard_rule == ShardRule::kConvert && model.tensors.empty();
  FileContent content{options.path, carried(model), 0, model.tensors.size(), options.big_endian, is_bare};
  for (const MetadataEntry& entry : own) content.metadata.push_back(&entry);
  BOOST_OUTCOME_TRY(OutputFile file, lay_out_file(model, content, alignment));
  return std::vector<OutputFile>{std::move(file)};
}

// ---- sink and options ----

class GgufSink : public Sink {
 public:
  explicit GgufSink(SinkOptions options) : options_(std::move(options)) {}

  // Converts floats that GGUF does not support to F32, which can represent all their values, and warns of long names.
  Result<Model> adapt(Model model) const override {
    for (Tensor& tensor : model.tensors) {
      if (!is_source_type(*tensor.type) || tensor.type->type_class != TypeClass::kFloat) continue;
      tensor.reason = fmt::format("GGUF does not support {}", tensor.type->name);
      tensor.type = &type_named("F32");
    }
    warn_of_long_names(model);
    return model;
  }

  // An invalid alignment is an error of layout().
  std::uint64_t tensor_alignment(const Model& model) const override {
    const auto alignment = checked_alignment(model.metadata);
    return alignment ? alignment.value() : kDefaultAlignment;
  }
  std::string_view extension() const override { return ".gguf"; }
  std::string target() const override { return options_.path; }

  Result<std::vector<OutputFile>> layout(const Model& model) const override {
    Result<std::vector<OutputFile>> files = lay_out(model);
    if (files || files.error().code != ExitCode::kUsage || !files.error().where.empty()) return files;
    return error_at(options_.origin, files.error().what, files.error().help);
  }

 private:
  Result<std::vector<OutputFile>> lay_out(const Model& model) const {
    SinkOptions options = options_;
    BOOST_OUTCOME_TRY(options.path, path_with_recipe(std::move(options.path), model.notes.get(notes::kRecipe)));
    if (options.path == "-")
      return usage_error("an output cannot be written to standard output",
                         "give the name of a file; for one that is called '-': ./-");
    return lay_out_files(model, options);
  }

  SinkOptions options_;
};

Form<std::string> output_path() {
  return path()
      .doc("The file to write; {recipe} is replaced by the recipe name.")
      .example("out/Llama-3-8B-{recipe}.gguf");
}

Form<SinkOptions> options_form() {
  using Options = SinkOptions;
  return map_of<Options>(
             {
                 field("path", &Options::path, output_path(),
                       "The file to write; with shard_size or shard_tensors, NAME.gguf becomes "
                       "NAME-00001-of-00005.gguf and "
                       "so on.")
                     .required(),
                 field("shard_size", &Options::shard_size, bytes(),
                       "Splits the output into files of at most this many bytes of tensor data, not counting headers; "
                       "a larger tensor gets a file of its own.")
                     .at_least(1)
                     .example("20G"),
                 field("shard_tensors", &Options::shard_tensors,
                       "Splits the output into files of at most this many tensors.")
                     .at_least(1)
                     .example("128"),
                 field(
                     "shards", &Options::shards,
                     word<Shards>({{"source", Shards::kSource}, {"merged", Shards::kMerged}}),
                     "`source`: splits the output as the source is split; tensors must be in the same order. `merged`: "
                     "writes one file with the split.* keys that llama-gguf-split --merge leaves."),
                 field("shard_rule", &Options::shard_rule,
                       word<ShardRule>({{"split", ShardRule::kSplit}, {"convert", ShardRule::kConvert}}),
                       "The tool whose rules for shards to follow: llama-gguf-split, or convert_hf_to_gguf.py, which "
                       "does not count padding, keeps the name of a single file, and does not pad files without "
                       "tensors."),
                 field("metadata_shard", &Options::metadata_shard,
                       "Whether to write the metadata into a first file without tensors."),
                 field("byte_order", &Options::big_endian, word<bool>({{"little", false}, {"big", true}}),
                       "Byte order of numbers: that of the machines that will read the file."),
             })
      .doc("The file to write, and how to split it.")
      .example("{path: out/model.gguf, shard_size: 20G}");
}

}  // namespace
}  // namespace gguf

Result<std::unique_ptr<Sink>> make_gguf_sink(gguf::SinkOptions options) {
  if (options.shards == gguf::Shards::kSource &&
      (options.shard_size || options.shard_tensors || options.metadata_shard ||
       options.shard_rule != gguf::ShardRule::kSplit))
    return error_at(options.origin,
                    "`shards: source` cannot be combined with shard_size, shard_tensors, shard_rule, or metadata_shard",
                    "it splits where the source does");
  if (options.shards == gguf::Shards::kMerged && options.sharded())
    return error_at(options.origin, "`shards: merged` cannot be combined with options that split the output",
                    "it writes a single file");
  if (options.shard_tensors == 0u) return error_at(options.origin, "shard_tensors must be at least 1");
  return std::make_unique<gguf::GgufSink>(std::move(options));
}

SinkSpec gguf_sink() {
  auto form = either<gguf::SinkOptions>(shorthand(&gguf::SinkOptions::path, gguf::output_path()), gguf::options_form());
  return sink_spec(
      "gguf",
      std::move(form).at(&gguf::SinkOptions::origin).doc("Writes a GGUF file, version 3.").example("out/model.gguf"),
      make_gguf_sink);
}

}  // namespace ggufmill
