// Reads a model from one or more files.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "pipeline/core/complete_model.h"
#include "pipeline/core/text.h"
#include "pipeline/io/gguf_files.h"
#include "pipeline/io/source_path.h"
#include "stages/gguf/format.h"
#include "stages/gguf/gguf.h"
#include "stages/gguf/header.h"

namespace ggufmill {
namespace gguf {
namespace {

// Values of a file's split.* keys. A count of 0 or 1: the file is not a shard.
struct Split {
  std::uint64_t number = 0;
  std::uint64_t count = 0;
  std::optional<std::uint64_t> tensors;
};

Result<std::optional<std::uint64_t>> read_split_key(const std::string& path, const Metadata& metadata,
                                                    std::string_view key) {
  const MetadataValue* value = metadata.find(key);
  if (!value) return std::optional<std::uint64_t>();
  const std::optional<std::uint64_t> number = as_unsigned(*value);
  if (!number)
    return input_error(
        path, fmt::format("{} is {} of type {}, not a count", key, describe(*value), metadata_type_name(value->type)));
  return number;
}

Result<Split> read_split(const std::string& path, const Metadata& metadata) {
  Split split;
  BOOST_OUTCOME_TRY(const auto count, read_split_key(path, metadata, kSplitCountKey));
  if (!count || *count < 2) return split;
  split.count = *count;
  BOOST_OUTCOME_TRY(const auto number, read_split_key(path, metadata, kSplitNumberKey));
  if (!number)
    return input_error(path, fmt::format("{} is {}, but {} is missing", kSplitCountKey, *count, kSplitNumberKey));
  split.number = *number;
  BOOST_OUTCOME_TRY(split.tensors, read_split_key(path, metadata, kSplitTensorsKey));
  return split;
}

// Reads files in order into one model.
class ModelReader {
 public:
  explicit ModelReader(const Types& types) : types_(types) {}

  Result<Model> read(const std::string& path) {
    BOOST_OUTCOME_TRY(Header first, open(path));
    BOOST_OUTCOME_TRY(const Split split, read_split(path, first.metadata));
    BOOST_OUTCOME_TRY(const std::string prefix, prefix_of(path, split));
    model_.metadata = std::move(first.metadata);
    BOOST_OUTCOME_TRY(add_tensors(std::move(first.tensors)));
    for (std::uint64_t i = 1; i < split.count; ++i) {
      BOOST_OUTCOME_TRY(read_shard(shard_path(prefix, i, split.count), i, split));
    }
    if (split.tensors && *split.tensors != model_.tensors.size())
      return input_error(path,
                         fmt::format("{} is {}, but the {} files have {}", kSplitTensorsKey, *split.tensors,
                                     split.count, counted(model_.tensors.size(), "tensor")),
                         "check that the files belong to the same model");
    warn_of_long_names(model_);
    return std::move(model_);
  }

 private:
  Result<Header> open(const std::string& path) {
    BOOST_OUTCOME_TRY(const auto file, open_source(path));
    BOOST_OUTCOME_TRY(Header header, read_header(*file, types_));
    model_.files.push_back(file->describe());
    return header;
  }

  // The names of the other shards are derived from the given path, never from data in a file.
  static Result<std::string> prefix_of(const std::string& path, const Split& split) {
    if (split.count < 2) return std::string();
    const auto prefix = shard_prefix(path, split.number, split.count);
    if (split.number != 0)
      return input_error(path,
                         fmt::format("this is file {} of a model split into {} files", split.number + 1, split.count),
                         fmt::format("give the first file: {}", shard_path(prefix.value_or("NAME"), 0, split.count)));
    if (prefix) return *prefix;
    return input_error(
        path,
        fmt::format("this is the first file of a model split into {} files, but its name does not follow the pattern",
                    split.count),
        fmt::format("rename it to {}, and the others accordingly", shard_path("NAME", 0, split.count)));
  }

  Status read_shard(const std::string& path, std::uint64_t index, const Split& first) {
    Result<Header> header = open(path);
    if (!header) {
      header.error().detail +=
          fmt::format("{}this is file {} of {}, after {}", header.error().detail.empty() ? "" : "\n", index + 1,
                      first.count, model_.files.front()->path);
      if (!is_address(path) && !is_file(path))
        header.error().help = fmt::format("the model needs all {} files: copy or download it", first.count);
      return header.error();
    }
    BOOST_OUTCOME_TRY(const Split split, read_split(path, header.value().metadata));
    if (split.count != first.count || split.number != index || (split.tensors && split.tensors != first.tensors))
      return input_error(path,
                         fmt::format("the file contains number {} of {}, not {} of {} as expected from its name and {}",
                                     split.number + 1, split.count, index + 1, first.count, model_.files.front()->path),
                         "check that the files belong to the same model");
    return add_tensors(std::move(header.value().tensors));
  }

  Status add_tensors(std::vector<DescribedTensor> tensors) {
    for (DescribedTensor& described : tensors) {
      if (!names_.insert(described.name).second) return twice(described);
      described.data.source = model_.files.back();
      Tensor& tensor = model_.tensors.emplace_back();
      BOOST_OUTCOME_TRY(tensor.expression, expressions::extent(*described.type, described.shape, described.data));
      tensor.type = described.type;
      tensor.name = std::move(described.name);
    }
    return ok();
  }

  Error twice(const DescribedTensor& described) const {
    Error error =
        input_error(model_.files.back()->path,
                    fmt::format("tensor {} is also in an earlier file of the model", quoted_name(described.name)));
    error.detail = fmt::format("at byte {:#x}", described.described_at);
    return error;
  }

  const Types& types_;
  Model model_;
  std::unordered_set<std::string> names_;
};

// ---- tensors that llama.cpp expects ----

std::optional<std::string_view> text_of(const Model& model, const std::string& key) {
  const MetadataValue* const value = model.metadata.find(key);
  return value ? as_string(*value) : std::nullopt;
}

// Returns true if the file has only the layers that predict further tokens: a draft, which is loaded with its model.
bool is_draft(const Model& model, const std::string& architecture, const std::set<std::uint64_t>& layers,
              std::uint64_t all) {
  const MetadataValue* const value = model.metadata.find(architecture + ".nextn_predict_layers");
  const std::uint64_t nextn = value ? as_unsigned(*value).value_or(0) : 0;
  return nextn > 0 && nextn <= all && !layers.empty() && *layers.begin() >= all - nextn;
}

std::string missing_text(const Model& model, const ModelHoles& holes, const std::set<std::uint64_t>& layers,
                         const std::string& says) {
  std::vector<MissingTensor> missing;
  for (const std::string& name : holes.missing) missing.push_back({name, layer_of(name)});
  return describe_missing(missing, model.tensors.size(), {layers.begin(), layers.end()}, says);
}

// The header of a file that is not written yet.
class PlannedSource : public ByteSource {
 public:
  explicit PlannedSource(const OutputFile& file)
      : header_(file.header),
        description_(std::make_shared<SourceFile>(SourceFile{.path = file.path, .bytes = file.header.size()})) {}
  const SourceRef& describe() const override { return description_; }
  Status check_unchanged() const override { return ok(); }
  std::size_t request_bytes() const override { return header_.size(); }
  Status read(std::uint64_t offset, std::span<std::byte> into) const override {
    if (read_if_cached(offset, into)) return ok();
    return input_error(path(), "only its header is known");
  }
  bool read_if_cached(std::uint64_t offset, std::span<std::byte> into) const override {
    if (offset > header_.size() || into.size() > header_.size() - offset) return false;
    std::memcpy(into.data(), header_.data() + offset, into.size());
    return true;
  }
  void start_read(IoService& /*io*/, std::uint64_t offset, std::span<std::byte> into, Completion done) const override {
    done(read(offset, into));
  }

 private:
  const std::string& header_;
  SourceRef description_;
};

class GgufSource : public Source {
 public:
  GgufSource(std::string path, Types types) : path_(std::move(path)), types_(std::move(types)) {}
  Result<Model> open() const override {
    BOOST_OUTCOME_TRY(Model model, read_gguf(path_, types_));
    if (std::string warning = loading_warning(model); !warning.empty()) model.warnings.push_back(std::move(warning));
    return model;
  }

 private:
  std::string path_;
  Types types_;
};

}  // namespace
}  // namespace gguf

std::optional<Metadata> planned_metadata(const std::vector<OutputFile>& files) {
  if (files.empty() || !files.front().header.starts_with(gguf::kMagic)) return {};
  auto header = gguf::read_metadata(gguf::PlannedSource(files.front()));
  if (!header) return {};
  return std::move(header).value();
}

std::string loading_warning(const Model& model) {
  const std::string architecture(gguf::text_of(model, "general.architecture").value_or(""));
  // Files with such a type other than "model" are adapters, projectors, and importance files.
  if (architecture.empty() || model.tensors.empty() ||
      gguf::text_of(model, "general.type").value_or("model") != "model" ||
      !model.metadata.find(architecture + ".embedding_length"))
    return "";
  ModelHoles holes = find_holes(model);
  if (!holes.is_known || !holes.layers) return "";
  std::set<std::uint64_t> layers;
  for (const Tensor& tensor : model.tensors)
    if (const auto layer = layer_of(tensor.name)) layers.insert(*layer);
  const std::string says = fmt::format("{}.block_count says {}", architecture, counted(*holes.layers, "layer"));
  if (gguf::is_draft(model, architecture, layers, *holes.layers))
    std::erase_if(holes.missing, [&](const std::string& name) {
      const auto layer = layer_of(name);
      return !layer || !layers.contains(*layer);
    });
  std::vector<std::string> faults;
  if (!holes.missing.empty()) faults.push_back(gguf::missing_text(model, holes, layers, says));
  std::vector<const WrongShape*> wrong;
  for (const WrongShape& each : holes.misshapen)
    if (!each.is_odd) wrong.push_back(&each);
  if (!wrong.empty())
    faults.push_back(fmt::format("tensor {} {}{}", quoted_name(wrong[0]->name), describe(*wrong[0]),
                                 wrong.size() == 1 ? ""
                                                   : fmt::format(", and {} more {} wrong", wrong.size() - 1,
                                                                 wrong.size() == 2 ? "shape is" : "shapes are")));
  if (!layers.empty() && *layers.rbegin() >= *holes.layers)
    faults.push_back(fmt::format("{}, numbered from 0, but there is a layer {}", says, *layers.rbegin()));
  if (!holes.unknown.empty()) faults.push_back(describe_unknown(holes.unknown, model.tensors.size()));
  if (faults.empty()) return "";
  return fmt::format("llama.cpp does not load the model: {}", fmt::join(faults, "; "));
}

Result<Model> read_gguf(const std::string& path, const Types& types) {
  std::string file = path;
  if (is_folder(path)) {
    BOOST_OUTCOME_TRY(file, only_gguf_in(path));
  }
  BOOST_OUTCOME_TRY(const std::string at, pinned(file));
  return gguf::ModelReader(types).read(at);
}

ModelOpener gguf_opener(Types types) {
  return [types = std::move(types)](const std::string& path) { return read_gguf(path, types); };
}

std::unique_ptr<Source> make_gguf_source(std::string path, Types types) {
  return std::make_unique<gguf::GgufSource>(std::move(path), std::move(types));
}

SourceSpec gguf_source(Types types) {
  return source_spec(
      "gguf",
      path()
          .doc("A GGUF file, version 1 to 3; for a model split into several files, the first one; or a folder with one "
               "model. Or its address: https://HOST/FILE.gguf, hf://ORG/NAME@REVISION/FILE.gguf, hf://ORG/NAME:Q4_K_M, "
               "s3://BUCKET/KEY.")
          .example("models/Llama-3-8B-BF16.gguf"),
      [types = std::move(types)](std::string path) { return make_gguf_source(std::move(path), types); },
      [](const std::string& path) {
        if (!is_folder(path)) return SourceFit::kOtherwise;
        return holds_only_gguf(path) ? SourceFit::kContents : SourceFit::kNone;
      });
}

}  // namespace ggufmill
