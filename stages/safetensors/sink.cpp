// The sink and its options in a pipeline file.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <limits>
#include <map>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/safetensors/header_reader.h"
#include "stages/safetensors/safetensors.h"

namespace ggufmill {
namespace safetensors {
namespace {

constexpr std::size_t kAlignment = 8;  // of the data; suffices for the largest elements

bool is_float(const TypeInfo& type) { return type.type_class == TypeClass::kFloat; }

std::string json_quoted(std::string_view text) { return boost::json::serialize(boost::json::string(text)); }

std::string entry_of(const Tensor& tensor, std::uint64_t begin, std::uint64_t bytes) {
  const Shape& shape = tensor.shape();
  std::vector<std::uint64_t> dims(shape.dims.begin(), shape.dims.begin() + shape.rank);
  std::ranges::reverse(dims);
  return fmt::format(R"({}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})", json_quoted(tensor.name),
                     tensor.type->name, fmt::join(dims, ","), begin, begin + bytes);
}

// Indices in the model of the tensors of one file.
using Shard = std::vector<std::size_t>;

class SafetensorsSink final : public Sink {
 public:
  explicit SafetensorsSink(SinkOptions options) : options_(std::move(options)) {}

  Result<Model> adapt(Model model) const override {
    BOOST_OUTCOME_TRY(choose_types(model));
    if (!options_.original_names) return model;
    CheckpointOrigin origin{config_file(), options_.architecture, options_.origin, noted_checkpoint_maps(model.notes)};
    if (origin.config.empty()) {
      origin.config = model.notes.get(notes::kCheckpointConfig);
      if (origin.architecture.empty()) origin.architecture = model.notes.get(notes::kCheckpointArchitecture);
    }
    return options_.restore(std::move(model), origin);
  }

  std::vector<std::string> inputs() const override {
    std::vector<std::string> paths;
    if (!options_.config.empty()) paths.push_back(config_file());
    if (is_file(options_.architecture)) paths.push_back(options_.architecture);
    return paths;
  }

  Result<std::vector<OutputFile>> layout(const Model& model) const override {
    Result<std::vector<OutputFile>> files = lay_out(model);
    if (files || !files.error().where.empty()) return files;
    return error_at(options_.origin, files.error().what, files.error().help);
  }

 private:
  std::string config_file() const {
    std::error_code none;
    return fs::is_directory(options_.config, none) ? (fs::path(options_.config) / "config.json").string()
                                                   : options_.config;
  }

  Status choose_types(Model& model) const {
    std::vector<const Tensor*> misfits;
    for (Tensor& tensor : model.tensors) {
      const bool is_wanted = tensor.type->is_quantized() && tensor.converted();  // by a stage, not in the source
      if (is_wanted || (!options_.type && tensor.type->is_quantized()))
        misfits.push_back(&tensor);
      else if (options_.type && tensor.type != options_.type && (is_float(*tensor.type) || tensor.type->is_quantized()))
        become(tensor, *options_.type);
    }
    if (misfits.empty()) return ok();
    const Tensor& first = *misfits.front();
    return error_at(options_.origin,
                    fmt::format("safetensors does not support {}, the type of tensor {}{}", first.type->name,
                                quoted_name(first.name),
                                misfits.size() == 1 ? "" : fmt::format(" (and {} more)", misfits.size() - 1)),
                    first.converted() ? "remove the stage that quantizes, or write GGUF"
                                      : "choose a type to decode to, such as dtype: bf16");
  }

  void become(Tensor& tensor, const TypeInfo& type) const {
    tensor.type = &type;
    tensor.fallback_from = nullptr;
    tensor.reason = fmt::format("dtype: {}", type.name);
  }

  Result<std::vector<OutputFile>> lay_out(const Model& model) const {
    BOOST_OUTCOME_TRY(std::string folder, path_with_recipe(options_.path, model.notes.get(notes::kRecipe)));
    BOOST_OUTCOME_TRY(check_unique_names(model));
    if (folder.empty() || !is_separator(folder.back())) folder += '/';
    const std::vector<Shard> shards = cut(model);
    std::vector<OutputFile> files;
    std::map<std::string_view, std::string> file_of;  // file name by tensor name
    std::uint64_t data = 0;
    for (std::size_t i = 0; i < shards.size(); ++i) {
      const std::string name = shards.size() == 1
                                   ? "model.safetensors"
                                   : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
      BOOST_OUTCOME_TRY(OutputFile file, lay_out_file(model, folder + name, shards[i]));
      for (const Placement& placement : file.tensors) {
        file_of.emplace(model.tensors[placement.tensor].name, name);
        data += placement.bytes;
      }
      files.push_back(std::move(file));
    }
    if (shards.size() > 1) files.push_back(index_file(folder, file_of, data));
    if (const std::string config = model.notes.get(notes::kRestoredConfig); !config.empty())
      files.push_back(config_file_of(folder, config));
    return files;
  }

  // Splits the tensors like huggingface_hub: a file is complete when the next tensor would exceed its limit, and a
  // tensor larger than the limit gets its own file. Source: huggingface_hub, serialization/_base.py (Apache 2.0).
  std::vector<Shard> cut(const Model& model) const {
    std::vector<Shard> shards;
    Shard open;
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < model.tensors.size(); ++i) {
      const std::uint64_t size = bytes_of(model.tensors[i]);
      if (size > options_.shard_size) {
        shards.push_back({i});
        continue;
      }
      if (size > options_.shard_size - bytes) {
        shards.push_back(std::exchange(open, {}));
        bytes = 0;
      }
      open.push_back(i);
      bytes += size;
    }
    if (!open.empty() || shards.empty()) shards.push_back(open);
    return shards;
  }

  static std::uint64_t bytes_of(const Tensor& tensor) {
    const auto bytes = ggufmill::bytes_of(*tensor.type, tensor.shape());
    return bytes ? bytes.value() : UINT64_MAX;
  }

  // Lays out one file. Large elements come first, so that all elements are aligned without gaps, which the format
  // forbids.
  static Result<OutputFile> lay_out_file(const Model& model, std::string path, Shard shard) {
    std::ranges::stable_sort(shard, std::greater<>(),
                             [&](std::size_t i) { return model.tensors[i].type->block_bytes; });
    OutputFile file;
    file.path = std::move(path);
    std::string header = R"({"__metadata__":{"format":"pt"})";
    std::uint64_t end = 0;
    for (const std::size_t i : shard) {
      const Tensor& tensor = model.tensors[i];
      const std::uint64_t bytes = bytes_of(tensor);
      if (tensor.name == "__metadata__")
        return usage_error("a tensor is named '__metadata__', which is reserved in safetensors files",
                           "rename it first: stages: [{rename: ...}]");
      if (bytes > static_cast<std::uint64_t>(INT64_MAX) - 2 * kMaxHeaderLength - end)
        return usage_error(fmt::format("the output {} would be larger than 2^63 bytes", quoted_name(file.path)));
      header += "," + entry_of(tensor, end, bytes);
      file.tensors.push_back({i, end, bytes});
      end += bytes;
    }
    header += "}";
    header.resize((header.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
    if (header.size() > kMaxHeaderLength)
      return usage_error(
          fmt::format("the header of the output {} would have {} bytes, more than the format's limit of {}",
                      quoted_name(file.path), header.size(), kMaxHeaderLength),
          "choose a smaller shard_size");
    for (std::size_t i = 0; i < 8; ++i) file.header += static_cast<char>(header.size() >> (8 * i));
    file.header += header;
    for (Placement& placement : file.tensors) placement.offset += file.header.size();
    file.bytes = file.header.size() + end;
    return file;
  }

  static OutputFile index_file(const std::string& folder, const std::map<std::string_view, std::string>& file_of,
                               std::uint64_t data) {
    OutputFile file;
    file.path = folder + "model.safetensors.index.json";
    file.header = fmt::format("{{\n  \"metadata\": {{\n    \"total_size\": {}\n  }},\n  \"weight_map\": {{", data);
    const char* separator = "\n";
    for (const auto& [name, shard] : file_of) {
      file.header += fmt::format("{}    {}: \"{}\"", separator, json_quoted(name), shard);
      separator = ",\n";
    }
    file.header += "\n  }\n}\n";
    file.bytes = file.header.size();
    return file;
  }

  static OutputFile config_file_of(const std::string& folder, const std::string& config) {
    OutputFile file;
    file.path = folder + "config.json";
    file.header = config;
    file.bytes = file.header.size();
    return file;
  }

  SinkOptions options_;
};

Form<std::string> output_path() {
  return path().doc("Folder for the files; {recipe} is replaced by the recipe name.").example("out/Llama-3-8B");
}

Form<SinkOptions> options_form() {
  using Options = SinkOptions;
  return map_of<Options>(
             {
                 field("path", &Options::path, output_path(),
                       "Folder for the files; {recipe} is replaced by the recipe name.")
                     .required(),
                 field("shard_size", &Options::shard_size, bytes(),
                       "Maximum number of bytes of tensor data per file; a larger tensor gets a file of its own.")
                     .at_least(1)
                     .example("2G"),
                 field("dtype", &Options::type,
                       word<const TypeInfo*>({{"keep", nullptr},
                                              {"f32", &type_named("F32")},
                                              {"f16", &type_named("F16")},
                                              {"bf16", &type_named("BF16")}}),
                       "Type for floats and quantized tensors. With keep, types are unchanged, and a quantized tensor "
                       "is an "
                       "error. Integers are never converted.")
                     .example("bf16"),
                 field("names", &Options::original_names, word<bool>({{"gguf", false}, {"huggingface", true}}),
                       "Names and layout of the tensors: as they are in GGUF, or as in the original checkpoint, "
                       "including "
                       "the order of heads and one tensor per expert. The latter reverses the mapping of the "
                       "architecture.")
                     .example("huggingface"),
                 field(
                     "config", &Options::config, path(),
                     "With names: huggingface: config.json (or params.json) of the checkpoint, or its folder. Default: "
                     "that of the source, if it is a checkpoint; otherwise config.json is made from the metadata and "
                     "written with the tensors, for the architectures whose map has `checkpoint`.")
                     .example("models/Llama-3-8B")
                     .at(&Options::config_origin),
                 field("architecture", &Options::architecture,
                       "With names: huggingface: name of a built-in map, or a file. Default: chosen from config.json.")
                     .example("llama")
                     .at(&Options::architecture_origin),
             })
      .doc("The folder, the size of its files, and the types and names of the tensors.")
      .example("{path: out/model, dtype: bf16}");
}

// `config` and `architecture` describe the checkpoint whose names are restored.
Status check_names(const SinkOptions& options) {
  if (options.original_names) return ok();
  const char* key = !options.config.empty() ? "config" : !options.architecture.empty() ? "architecture" : nullptr;
  if (!key) return ok();
  return error_at(options.config.empty() ? options.architecture_origin : options.config_origin,
                  fmt::format("`{}` requires names: huggingface", key), "add it, or omit this option");
}

}  // namespace
}  // namespace safetensors

Result<std::unique_ptr<Sink>> make_safetensors_sink(safetensors::SinkOptions options) {
  BOOST_OUTCOME_TRY(safetensors::check_names(options));
  return std::make_unique<safetensors::SafetensorsSink>(std::move(options));
}

SinkSpec safetensors_sink(CheckpointRestorer restore) {
  using Options = safetensors::SinkOptions;
  auto form = either<Options>(shorthand(&Options::path, safetensors::output_path()), safetensors::options_form());
  return sink_spec("safetensors",
                   std::move(form)
                       .at(&Options::origin)
                       .doc("Writes the tensors of a model, without its metadata, to a folder as safetensors: "
                            "model.safetensors, or several files and model.safetensors.index.json.")
                       .example("out/model"),
                   [restore = std::move(restore)](Options options) {
                     options.restore = restore;
                     return make_safetensors_sink(std::move(options));
                   });
}

}  // namespace ggufmill
