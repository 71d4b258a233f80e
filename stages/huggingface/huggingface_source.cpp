#include "stages/huggingface/huggingface_source.h"

namespace ggufmill {
namespace huggingface {
namespace {

class HuggingfaceSource : public Source {
 public:
  HuggingfaceSource(SourceOptions options, CheckpointOpener open)
      : options_(std::move(options)), open_(std::move(open)) {}
  Result<Model> open() const override {
    BOOST_OUTCOME_TRY(ConvertedCheckpoint converted, read_huggingface(options_, open_));
    return std::move(converted.model);
  }

 private:
  SourceOptions options_;
  CheckpointOpener open_;
};

std::vector<FieldSpec> source_fields() {
  FieldSpec outtype{
      "outtype", FieldKind::kEnum,
      "Type of tensors with two or more dimensions before any quantization; auto: BF16 or F16, like the weights."};
  outtype.choices = out_type_names();
  outtype.default_text = "auto";
  FieldSpec draft{"draft_head", FieldKind::kEnum, "What to do with layers that predict further tokens."};
  draft.choices = {"include", "leave_out", "only"};
  draft.default_text = "include";
  FieldSpec defaults{"defaults", FieldKind::kEnum,
                     "How config.json is completed: transformers, with the defaults and computed values of its class "
                     "for the model type, as convert_hf_to_gguf.py does; none, not at all."};
  defaults.choices.assign(kClassDefaultsWords.begin(), kClassDefaultsWords.end());
  defaults.default_text = kClassDefaultsWords[SourceOptions().class_defaults];
  FieldSpec path{"path", FieldKind::kPath, "Folder, or address of a model on the hub: hf://ORG/NAME@REVISION."};
  path.required = true;
  path.example = "models/Llama-3-8B";
  FieldSpec config{"config", FieldKind::kString,
                   "File in the folder that describes the model: config.json, or params.json of Mistral's own format."};
  config.default_text = "config.json";
  return {std::move(path),
          std::move(outtype),
          {"architecture", FieldKind::kString, "Built-in map or file; chosen by config.json if omitted."},
          std::move(config),
          {"model_name", FieldKind::kString, "general.name."},
          {"metadata", FieldKind::kPath, "JSON file with general.* keys."},
          {"pre", FieldKind::kString, "Pre-tokenizer (tokenizer.ggml.pre) if it is not recognized."},
          {"vocabulary_only", FieldKind::kBool, "Write metadata and tokenizer without tensors."},
          {"fuse_gate_up_experts", FieldKind::kBool, "Fuse gate and up experts into one tensor."},
          {"fp8_as_q8_0", FieldKind::kBool, "Write tensors of 8-bit floats as Q8_0."},
          std::move(draft),
          std::move(defaults)};
}

Status read_flag(const ConfigNode& node, std::string_view name, bool& into) {
  if (const ConfigNode* value = node.find(name)) {
    BOOST_OUTCOME_TRY(into, to_bool(*value));
  }
  return ok();
}

void read_text(const ConfigNode& node, std::string_view name, std::optional<std::string>& into) {
  if (const ConfigNode* value = node.find(name)) into = value->scalar;
}

Result<SourceOptions> read_options(const ConfigNode& node) {
  SourceOptions options;
  options.origin = origin_of(node);
  if (node.is_scalar()) {
    options.folder = node.scalar;
    return options;
  }
  options.folder = node.find("path")->scalar;
  if (const ConfigNode* type = node.find("outtype")) options.out_type = *out_type_named(type->scalar);
  if (const ConfigNode* name = node.find("architecture")) options.architecture = name->scalar;
  if (const ConfigNode* config = node.find("config")) options.config = config->scalar;
  read_text(node, "model_name", options.model_name);
  read_text(node, "metadata", options.metadata_file);
  read_text(node, "pre", options.pre);
  BOOST_OUTCOME_TRY(read_flag(node, "vocabulary_only", options.vocabulary_only));
  BOOST_OUTCOME_TRY(read_flag(node, "fuse_gate_up_experts", options.fuse_gate_up_experts));
  BOOST_OUTCOME_TRY(read_flag(node, "fp8_as_q8_0", options.fp8_as_q8_0));
  if (const ConfigNode* defaults = node.find("defaults"))
    options.class_defaults = defaults->scalar == kClassDefaultsWords[true];
  if (const ConfigNode* draft = node.find("draft_head"))
    options.draft_head = draft->scalar == "only"        ? DraftHead::kOnly
                         : draft->scalar == "leave_out" ? DraftHead::kLeaveOut
                                                        : DraftHead::kInclude;
  return options;
}

}  // namespace

}  // namespace huggingface

std::unique_ptr<Source> make_huggingface_source(huggingface::SourceOptions options, CheckpointOpener open) {
  return std::make_unique<huggingface::HuggingfaceSource>(std::move(options), std::move(open));
}

SourceSpec huggingface_source(CheckpointOpener open) {
  FieldSpec folder{"", FieldKind::kPath, "Folder, or address of a model on the hub: hf://ORG/NAME@REVISION."};
  FieldSpec map{"", FieldKind::kMap, "Folder and how it is read."};
  map.fields = huggingface::source_fields();
  FieldSpec field{"huggingface", FieldKind::kOneOf, "Hugging Face checkpoint folder, local or on a hub."};
  field.alternatives = {std::move(folder), std::move(map)};
  field.example = "models/Llama-3-8B";
  return {std::move(field), [open = std::move(open)](const ConfigNode& value) -> Result<std::unique_ptr<Source>> {
            BOOST_OUTCOME_TRY(auto options, huggingface::read_options(value));
            return make_huggingface_source(std::move(options), open);
          }};
}

}  // namespace ggufmill
