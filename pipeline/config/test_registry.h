#pragma once
// A registry similar to the real one, with stages that do nothing. Used by the tests of this folder.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pipeline/config/registry.h"

namespace ggufmill::testing {

// A source of a model whose only file has the given name.
class NamedSource final : public Source {
 public:
  explicit NamedSource(std::string name) : name_(std::move(name)) {}
  Result<Model> open() const override {
    Model model;
    model.files.push_back(std::make_shared<const SourceFile>(SourceFile{name_, 0, 0, 0}));
    return model;
  }

 private:
  std::string name_;
};

// A sink with one output file, which carries the sink's options.
class OptionsSink final : public Sink {
 public:
  OptionsSink(std::string path, std::uint64_t shard_size) : path_(std::move(path)), shard_size_(shard_size) {}
  Result<std::vector<OutputFile>> layout(const Model&) const override {
    return std::vector<OutputFile>{{path_, "", {}, shard_size_}};
  }

 private:
  std::string path_;
  std::uint64_t shard_size_;
};

inline std::string path_of(const Source& source) { return source.open().value().files[0]->path; }
inline OutputFile file_of(const Sink& sink) { return sink.layout({}).value()[0]; }

class NoStage final : public Stage {
 public:
  Result<Model> apply(Model model) const override { return model; }
};

inline Result<std::unique_ptr<Stage>> make_nothing(const ConfigNode&) { return std::make_unique<NoStage>(); }

// Rejects F64, like a stage that checks more than the field table does.
inline Result<std::unique_ptr<Stage>> make_quantize(const ConfigNode& value) {
  if (value.scalar == "F64") return error_at(value, "nothing is quantized to F64");
  return std::make_unique<NoStage>();
}

inline FieldSpec quantize_field() {
  const FieldSpec match{
      .name = "match", .kind = FieldKind::kRegex, .doc = "Found in the name.", .required = true, .example = "ffn_down"};
  const FieldSpec type{
      .name = "type", .kind = FieldKind::kTypeName, .doc = "The type to have.", .required = true, .example = "Q5_K"};
  const FieldSpec rule{.kind = FieldKind::kMap, .doc = "The first rule that matches counts.", .fields = {match, type}};
  const FieldSpec rules{.name = "tensors",
                        .kind = FieldKind::kList,
                        .doc = "Rules for single tensors.",
                        .example = "[{match: ffn_down, type: Q5_K}]",
                        .item = {rule}};
  const FieldSpec keep{
      .name = "keep", .kind = FieldKind::kBool, .doc = "Keep small ones.", .default_text = "true", .example = "false"};
  const FieldSpec missing{.name = "missing",
                          .kind = FieldKind::kEnum,
                          .doc = "Where data lacks.",
                          .default_text = "error",
                          .example = "unweighted",
                          .choices = {"error", "unweighted"}};
  const FieldSpec scale{
      .name = "scale", .kind = FieldKind::kNumber, .doc = "A number.", .example = "0.5", .maximum = 1};
  const FieldSpec plain{.kind = FieldKind::kTypeName, .doc = "One type for all."};
  const FieldSpec full{.kind = FieldKind::kMap, .doc = "With rules.", .fields = {type, rules, keep, missing, scale}};
  return {.name = "quantize",
          .kind = FieldKind::kOneOf,
          .doc = "Changes the type of tensors.",
          .example = "Q4_K",
          .alternatives = {plain, full}};
}

inline FieldSpec metadata_field() {
  const FieldSpec set{.name = "set",
                      .kind = FieldKind::kDictionary,
                      .doc = "Keys to set.",
                      .example = "{general.license: mit}",
                      .item = {{.kind = FieldKind::kAny, .doc = "The value."}}};
  const FieldSpec remove{.name = "remove",
                         .kind = FieldKind::kList,
                         .doc = "Keys to remove.",
                         .example = "[general.url]",
                         .item = {{.doc = "A key."}}};
  return {.name = "metadata",
          .kind = FieldKind::kMap,
          .doc = "Changes metadata.",
          .example = "{remove: [general.url]}",
          .fields = {set, remove}};
}

inline FieldSpec sink_field() {
  const FieldSpec path{
      .name = "path", .kind = FieldKind::kPath, .doc = "The file.", .required = true, .example = "out/model.gguf"};
  const FieldSpec shard{.name = "shard_size", .kind = FieldKind::kBytes, .doc = "Cut here.", .example = "20G"};
  const FieldSpec plain{.kind = FieldKind::kPath, .doc = "One file."};
  const FieldSpec full{.kind = FieldKind::kMap, .doc = "With options.", .fields = {path, shard}};
  return {.name = "gguf",
          .kind = FieldKind::kOneOf,
          .doc = "Writes GGUF.",
          .example = "out/model.gguf",
          .alternatives = {plain, full}};
}

inline Registry make_registry() {
  const FieldSpec source{.name = "gguf", .kind = FieldKind::kPath, .doc = "A GGUF file.", .example = "model.gguf"};
  Registry registry;
  registry.sources = {{source, [](const ConfigNode& value) -> Result<std::unique_ptr<Source>> {
                         return std::make_unique<NamedSource>(value.scalar);
                       }}};
  registry.stages = {{metadata_field(), false, make_nothing}, {quantize_field(), true, make_quantize}};
  registry.sinks = {{sink_field(), [](const ConfigNode& value) -> Result<std::unique_ptr<Sink>> {
                       const ConfigNode *path = value.find("path"), *size = value.find("shard_size");
                       return std::make_unique<OptionsSink>(path ? path->scalar : value.scalar,
                                                            size ? to_bytes(*size).value() : 0);
                     }}};
  return registry;
}

// One registry for tests that only read it.
inline const Registry& registry() {
  static const Registry all = make_registry();
  return all;
}

}  // namespace ggufmill::testing
