// The sink, and its options in a pipeline file.

#include <fmt/format.h>

#include "stages/gguf/output_files.h"

namespace ggufmill {
namespace gguf {
namespace {

Result<SinkOptions> read_options(const ConfigNode& value) {
  SinkOptions options;
  if (value.is_scalar()) options.path = value.scalar;
  if (const ConfigNode* path = value.find("path")) options.path = path->scalar;
  if (const ConfigNode* size = value.find("shard_size")) {
    BOOST_OUTCOME_TRY(options.shard_size, to_bytes(*size));
  }
  if (const ConfigNode* tensors = value.find("shard_tensors")) {
    BOOST_OUTCOME_TRY(const std::int64_t count, to_integer(*tensors));
    options.shard_tensors = static_cast<std::uint64_t>(count);
  }
  options.as_source = value.find("shards") != nullptr;
  if (const ConfigNode* rule = value.find("shard_rule"); rule && rule->scalar == "convert")
    options.shard_rule = ShardRule::kConvert;
  if (const ConfigNode* first = value.find("metadata_shard")) {
    BOOST_OUTCOME_TRY(options.metadata_shard, to_bool(*first));
  }
  if (const ConfigNode* order = value.find("byte_order")) options.big_endian = order->scalar == "big";
  options.origin = origin_of(value);
  return options;
}

class GgufSink : public Sink {
 public:
  explicit GgufSink(SinkOptions options) : options_(std::move(options)) {}

  // Floats that GGUF does not have become F32, which holds all their values.
  Result<Model> adapt(Model model) const override {
    for (Tensor& tensor : model.tensors) {
      if (!is_source_type(*tensor.type) || tensor.type->type_class != TypeClass::kFloat) continue;
      tensor.reason = fmt::format("GGUF does not have {}", tensor.type->name);
      tensor.type = &type_named("F32");
    }
    return model;
  }

  Result<std::vector<OutputFile>> layout(const Model& model) const override {
    Result<std::vector<OutputFile>> files = lay_out(model);
    if (files || files.error().code != ExitCode::kUsage || !files.error().where.empty()) return files;
    return error_at(options_.origin, files.error().what, files.error().help);
  }

 private:
  Result<std::vector<OutputFile>> lay_out(const Model& model) const {
    SinkOptions options = options_;
    BOOST_OUTCOME_TRY(options.path, path_with_recipe(std::move(options.path), model.notes.get(notes::kRecipe)));
    return lay_out_files(model, options);
  }

  SinkOptions options_;
};

FieldSpec path_field() {
  FieldSpec field;
  field.kind = FieldKind::kPath;
  field.doc = "The file to write; {recipe} stands for the name of the recipe.";
  field.example = "out/Llama-3-8B-{recipe}.gguf";
  return field;
}

FieldSpec options_field() {
  FieldSpec path = path_field(), size, tensors, shards, rule, first, order, field;
  path.name = "path";
  path.required = true;
  path.doc =
      "The file to write; with shard_size or shard_tensors, NAME.gguf becomes NAME-00001-of-00005.gguf and so on.";
  size.name = "shard_size";
  size.kind = FieldKind::kBytes;
  size.doc = "Writes several files, each of at most this many bytes of tensor data; headers do not count.";
  size.example = "20G";
  size.minimum = 1;
  tensors.name = "shard_tensors";
  tensors.kind = FieldKind::kInteger;
  tensors.doc = "Writes several files, each of at most this many tensors.";
  tensors.example = "128";
  tensors.minimum = 1;
  shards.name = "shards";
  shards.kind = FieldKind::kEnum;
  shards.choices = {"source"};
  shards.doc = "Writes the shards that the source has; tensors must be in the source's order.";
  rule.name = "shard_rule";
  rule.kind = FieldKind::kEnum;
  rule.choices = {"split", "convert"};
  rule.default_text = "split";
  rule.doc =
      "Whose shards are written: llama-gguf-split's, or convert_hf_to_gguf.py's, which counts no padding, gives a "
      "tensor "
      "that is too large a file of its own, leaves the name of a single file as it is, and pads none without tensors.";
  first.name = "metadata_shard";
  first.kind = FieldKind::kBool;
  first.default_text = "false";
  first.doc = "Writes the metadata into a first file without tensors.";
  order.name = "byte_order";
  order.kind = FieldKind::kEnum;
  order.choices = {"little", "big"};
  order.default_text = "little";
  order.doc = "The order of the bytes of numbers: that of the machines that will read the file.";
  field.kind = FieldKind::kMap;
  field.doc = "The file to write, and how it is cut into several.";
  field.example = "{path: out/model.gguf, shard_size: 20G}";
  field.fields = {path, size, tensors, shards, rule, first, order};
  return field;
}

}  // namespace
}  // namespace gguf

Result<std::unique_ptr<Sink>> make_gguf_sink(gguf::SinkOptions options) {
  if (options.as_source && (options.shard_size || options.shard_tensors || options.metadata_shard ||
                            options.shard_rule != gguf::ShardRule::kSplit))
    return error_at(options.origin,
                    "`shards: source` cannot be given with shard_size, shard_tensors, shard_rule or metadata_shard",
                    "it cuts where the source does");
  if (options.shard_tensors == 0u) return error_at(options.origin, "shard_tensors is at least 1");
  return std::make_unique<gguf::GgufSink>(std::move(options));
}

SinkSpec gguf_sink() {
  FieldSpec field;
  field.name = "gguf";
  field.kind = FieldKind::kOneOf;
  field.doc = "Writes a GGUF file, version 3.";
  field.example = "out/model.gguf";
  field.alternatives = {gguf::path_field(), gguf::options_field()};
  return {std::move(field), [](const ConfigNode& value) -> Result<std::unique_ptr<Sink>> {
            BOOST_OUTCOME_TRY(gguf::SinkOptions options, gguf::read_options(value));
            return make_gguf_sink(std::move(options));
          }};
}

}  // namespace ggufmill
