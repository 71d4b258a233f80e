#include "stages/huggingface/huggingface_source.h"

#include "pipeline/io/gguf_files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace huggingface {
namespace {

class HuggingfaceSource : public Source {
 public:
  HuggingfaceSource(SourceOptions options, CheckpointOpener open)
      : options_(std::move(options)), open_(std::move(open)) {}
  Result<Model> open() const override {
    auto read = read_huggingface(options_, open_);
    if (!read && holds_only_gguf(options_.folder)) return not_a_checkpoint(options_.folder);
    BOOST_OUTCOME_TRY(ConvertedCheckpoint converted, std::move(read));
    return std::move(converted.model);
  }
  Result<std::vector<Model>> open_parts(std::span<const PartRequest> requests) const override {
    auto read = read_huggingface_parts(options_, requests, open_);
    if (!read && holds_only_gguf(options_.folder)) return not_a_checkpoint(options_.folder);
    BOOST_OUTCOME_TRY(std::vector<ConvertedCheckpoint> parts, std::move(read));
    std::vector<Model> models;
    for (ConvertedCheckpoint& part : parts) models.push_back(std::move(part.model));
    return models;
  }

 private:
  SourceOptions options_;
  CheckpointOpener open_;
};

Form<std::string> folder_form() {
  return path().doc("Folder, or address of a model on the hub: hf://ORG/NAME@REVISION.").example("models/Llama-3-8B");
}

Form<SourceOptions> options_form() {
  using Options = SourceOptions;
  const Form<std::string> folder = folder_form();
  return map_of<Options>(
             {
                 field("path", &Options::folder, folder, folder.spec.doc).required(),
                 field(
                     "part", &Options::part, enumeration<ModelPart>(kModelPartWords),
                     "Part of the checkpoint: the text model, the projector with the encoders of images and sound, or "
                     "the layers that predict further tokens. An output can name another one."),
                 field(
                     "outtype", &Options::out_type, enumeration<OutType>(kOutTypeWords),
                     "Type of tensors with two or more dimensions before any quantization; auto: BF16 or F16, like the "
                     "weights."),
                 field("architecture", &Options::architecture,
                       "Name of a map, or a file; chosen by config.json if omitted."),
                 field("architectures", &Options::architectures, map_places_form(), kArchitecturesDoc)
                     .example("./maps"),
                 field("config", &Options::config,
                       "File in the folder that describes the model: config.json, or params.json of Mistral's own "
                       "format.")
                     .shown_default("config.json"),
                 field("model_name", &Options::model_name, "general.name."),
                 field("metadata", &Options::metadata_file, path(), "JSON file with general.* keys."),
                 field("pre", &Options::pre, "Pre-tokenizer (tokenizer.ggml.pre) if it is not recognized."),
                 field("vocabulary_only", &Options::vocabulary_only, "Write metadata and tokenizer without tensors."),
                 field("fuse_gate_up_experts", &Options::fuse_gate_up_experts,
                       "Fuse gate and up experts into one tensor."),
                 field("fuse_qkv", &Options::fuse_qkv,
                       "Fuse the queries, keys, and values of a layer into one tensor, where llama.cpp has one."),
                 field("fp8_as_q8_0", &Options::fp8_as_q8_0, "Write tensors of 8-bit floats as Q8_0."),
                 field("allow_missing", &Options::allow_missing,
                       "Convert a checkpoint even if files or tensors of the model are missing or tensors have other "
                       "shapes, with a warning instead of an error."),
                 field("dense_modules", &Options::dense_modules,
                       "Include the Dense modules of sentence-transformers (2_Dense, 3_Dense) of an embedding model."),
                 field("draft_head", &Options::draft_head,
                       word<DraftHead>({{"include", DraftHead::kInclude}, {"leave_out", DraftHead::kLeaveOut}}),
                       "Whether the text model includes its layers that predict further tokens."),
                 field("dspark", &Options::dspark,
                       "Read the DSpark draft in the checkpoint of a model (DeepSeek V4) instead of the model."),
                 field("adapter", &Options::adapter,
                       "Read the LoRA adapter with this name in the checkpoint of a model (Jina embeddings v3) instead "
                       "of the model."),
                 field("target", &Options::target, path(),
                       "For a draft of another model (EAGLE-3, DFlash, DSpark): the folder of that model. Its "
                       "config.json and "
                       "tokenizer are read.")
                     .example("models/Llama-3-8B"),
                 field("defaults", &Options::class_defaults, class_defaults_form(),
                       "No effect: keys missing in config.json always get the defaults and computed values of their "
                       "class in transformers, as in convert_hf_to_gguf.py."),
             })
      .doc("Folder and how it is read.");
}

}  // namespace

Form<std::vector<MapPlace>> map_places_form() {
  return one_or_more(shorthand(&MapPlace::path, path().doc("Folder or file.")).at(&MapPlace::origin),
                     "Folders and files; the first take precedence.");
}

Form<bool> class_defaults_form() { return word<bool>({{"none", false}, {"transformers", true}}); }

}  // namespace huggingface

std::unique_ptr<Source> make_huggingface_source(huggingface::SourceOptions options, CheckpointOpener open) {
  return std::make_unique<huggingface::HuggingfaceSource>(std::move(options), std::move(open));
}

SourceSpec huggingface_source(CheckpointOpener open, std::vector<std::string> maps) {
  using Options = huggingface::SourceOptions;
  return source_spec(
      "huggingface",
      either<Options>(shorthand(&Options::folder, huggingface::folder_form()), huggingface::options_form())
          .at(&Options::origin)
          .doc("Hugging Face checkpoint folder, local or on a hub.")
          .example("models/Llama-3-8B"),
      [open = std::move(open), maps = huggingface::map_places(maps)](Options options) {
        options.architectures.insert(options.architectures.begin(), maps.begin(), maps.end());
        return make_huggingface_source(std::move(options), open);
      },
      [](const std::string& path) {
        const bool is_checkpoint = is_folder(path) && is_file(fs::path(path) / "config.json") && !holds_only_gguf(path);
        return is_checkpoint ? SourceFit::kContents : SourceFit::kNone;
      });
}

}  // namespace ggufmill
