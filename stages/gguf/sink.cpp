// The sink as a pipeline file names it.

#include <fmt/format.h>
#include "stages/gguf/gguf.h"

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
    if (count < 1) return error_at(*tensors, "shard_tensors is at least 1");
    options.shard_tensors = static_cast<std::uint64_t>(count);
  }
  options.as_source = value.find("shards") != nullptr;
  if (options.as_source && (options.shard_size || options.shard_tensors))
    return error_at(value, "the source's shards and a size of shards exclude each other", "give one of them");
  return options;
}

// The path with the name of the recipe in place of every {recipe}.
Result<std::string> named_path(std::string path, const std::string& recipe) {
  constexpr std::string_view kPlace = "{recipe}";
  if (path.find(kPlace) == std::string::npos) return path;
  if (recipe.empty() || recipe.find('/') != std::string::npos)
    return usage_error(recipe.empty() ? "the path wants the name of a recipe, and no quantize stage has given one"
                                      : fmt::format("the recipe's name '{}' cannot be part of a path", recipe));
  for (std::size_t at = 0; (at = path.find(kPlace, at)) != std::string::npos; at += recipe.size())
    path.replace(at, kPlace.size(), recipe);
  return path;
}

Result<std::vector<OutputFile>> lay_out(const Model& model, SinkOptions options) {
  BOOST_OUTCOME_TRY(options.path, named_path(std::move(options.path), model.recipe));
  return lay_out_files(model, options);
}

FieldSpec path_field() {
  FieldSpec field;
  field.kind = FieldKind::kPath;
  field.doc = "The file to write; {recipe} stands for the name of the recipe.";
  field.example = "out/Llama-3-8B-{recipe}.gguf";
  return field;
}

FieldSpec options_field() {
  FieldSpec path = path_field(), size, tensors, shards, field;
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
  field.kind = FieldKind::kMap;
  field.doc = "The file to write, and how it is cut into several.";
  field.example = "{path: out/model.gguf, shard_size: 20G}";
  field.fields = {path, size, tensors, shards};
  return field;
}

// Errors of the layout belong to the place in the pipeline file that asks for the output.
Error placed(const ConfigNode& value, const Error& error) {
  if (error.code != ExitCode::kUsage || !error.where.empty()) return error;
  return error_at(value, error.what, error.help);
}

}  // namespace
}  // namespace gguf

SinkSpec gguf_sink() {
  FieldSpec field;
  field.name = "gguf";
  field.kind = FieldKind::kOneOf;
  field.doc = "Writes a GGUF file, version 3.";
  field.example = "out/model.gguf";
  field.alternatives = {gguf::path_field(), gguf::options_field()};
  return {std::move(field), [](const Model& model, const ConfigNode& value) -> Result<std::vector<OutputFile>> {
            BOOST_OUTCOME_TRY(const gguf::SinkOptions options, gguf::read_options(value));
            Result<std::vector<OutputFile>> files = gguf::lay_out(model, options);
            if (!files) return gguf::placed(value, files.error());
            return files;
          }};
}

}  // namespace ggufmill
