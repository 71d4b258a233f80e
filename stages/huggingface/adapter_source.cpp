#include "stages/huggingface/adapter_source.h"

#include "pipeline/io/source_path.h"
#include "stages/huggingface/huggingface_source.h"

namespace ggufmill {
namespace huggingface {
namespace {

class AdapterSource : public Source {
 public:
  AdapterSource(AdapterOptions options, CheckpointOpener open) : options_(std::move(options)), open_(std::move(open)) {}
  Result<Model> open() const override {
    BOOST_OUTCOME_TRY(ConvertedCheckpoint converted, read_huggingface_adapter(options_, open_));
    return std::move(converted.model);
  }

 private:
  AdapterOptions options_;
  CheckpointOpener open_;
};

Form<OutType> adapter_type_form() {
  std::vector<std::pair<std::string, OutType>> meanings;
  for (const OutType type : kAdapterTypes) meanings.emplace_back(out_type_name(type), type);
  return word<OutType>(std::move(meanings));
}

Form<AdapterOptions> adapter_form() {
  using Options = AdapterOptions;
  return map_of<Options>(
             {
                 field("adapter", &Options::adapter, path(),
                       "Folder of the adapter, or its address on the hub: hf://ORG/NAME@REVISION.")
                     .required()
                     .example("adapters/my-lora"),
                 field("base", &Options::base, path(),
                       "Folder or address of the model that it belongs to; only config.json is needed.")
                     .required()
                     .example("models/Llama-3-8B"),
                 field("outtype", &Options::out_type, adapter_type_form(),
                       "Type of the matrices; auto: BF16 or F16, like the adapter."),
                 field("architecture", &Options::architecture,
                       "Name of a map, or a file; chosen by the base's config.json if omitted."),
                 field("architectures", &Options::architectures, map_places_form(), kArchitecturesDoc)
                     .example("./maps"),
                 field("defaults", &Options::class_defaults, class_defaults_form(), "No effect: see `huggingface`."),
             })
      .at(&Options::origin)
      .doc("LoRA adapter in the format of PEFT.")
      .example("{adapter: adapters/my-lora, base: models/Llama-3-8B}");
}

}  // namespace
}  // namespace huggingface

std::vector<std::string> adapter_type_names() {
  std::vector<std::string> names;
  for (const OutType type : kAdapterTypes) names.emplace_back(out_type_name(type));
  return names;
}

SourceSpec adapter_source(CheckpointOpener open, std::vector<std::string> maps) {
  using Options = huggingface::AdapterOptions;
  return source_spec(
      "lora", huggingface::adapter_form(),
      [open = std::move(open), maps = huggingface::map_places(maps)](Options options) -> std::unique_ptr<Source> {
        options.architectures.insert(options.architectures.begin(), maps.begin(), maps.end());
        return std::make_unique<huggingface::AdapterSource>(std::move(options), open);
      });
}

}  // namespace ggufmill
