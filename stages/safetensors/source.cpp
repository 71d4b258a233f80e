// The source and its options in a pipeline file.

#include <fmt/format.h>

#include "pipeline/core/text.h"
#include "pipeline/io/source_path.h"
#include "stages/safetensors/safetensors.h"

namespace ggufmill {
namespace safetensors {
namespace {

class SafetensorsSource final : public Source {
 public:
  explicit SafetensorsSource(SourceOptions options) : options_(std::move(options)) {}

  Result<Model> open() const override {
    BOOST_OUTCOME_TRY(const Checkpoint checkpoint, read_safetensors(options_.path));
    Model model;
    for (const CheckpointFile& file : checkpoint.files) model.files.push_back(file.source);
    if (!options_.architecture.empty())
      model.metadata.set_at_end("general.architecture", metadata_string(options_.architecture));
    for (const CheckpointTensor& each : checkpoint.tensors) {
      Tensor& tensor = model.tensors.emplace_back();
      tensor.name = each.name;
      tensor.expression = each.values;
      tensor.type = each.values->type;
      if (each.dims.size() > each.values->shape.dims.size())
        model.warnings.push_back(fmt::format("tensor {} has {} dimensions; the slowest ones are merged, giving {}",
                                             quoted_name(each.name), each.dims.size(), describe(each.values->shape)));
    }
    return model;
  }

 private:
  SourceOptions options_;
};

Form<std::string> source_path() {
  return path()
      .doc("A folder with the files of a checkpoint, its index, or a single file; local, or an address.")
      .example("models/stable-diffusion/unet");
}

}  // namespace
}  // namespace safetensors

std::unique_ptr<Source> make_safetensors_source(safetensors::SourceOptions options) {
  return std::make_unique<safetensors::SafetensorsSource>(std::move(options));
}

SourceSpec safetensors_source() {
  using Options = safetensors::SourceOptions;
  const Form<std::string> path = safetensors::source_path();
  auto map = map_of<Options>({
                                 field("path", &Options::path, path, path.spec.doc).required(),
                                 field("architecture", &Options::architecture,
                                       "Value of general.architecture, which is then the only metadata.")
                                     .example("flux"),
                             })
                 .doc("The files, and information they do not contain.")
                 .example("{path: model.safetensors, architecture: flux}");
  return source_spec("safetensors",
                     either<Options>(shorthand(&Options::path, path), std::move(map))
                         .doc("Tensors of safetensors files, unchanged, with their own names and without metadata: for "
                              "models other than language models. They are ordered by file, then by name.")
                         .example("models/unet/diffusion_pytorch_model.safetensors"),
                     make_safetensors_source, [](const std::string& given) {
                       const bool is_named =
                           given.ends_with(".safetensors") || given.ends_with(".safetensors.index.json");
                       return is_named || is_folder(given) ? SourceFit::kName : SourceFit::kNone;
                     });
}

}  // namespace ggufmill
