#include "stages/ggml/ggml.h"

namespace ggufmill {
namespace ggml {
namespace {

class GgmlSource : public Source {
 public:
  explicit GgmlSource(SourceOptions options) : options_(std::move(options)) {}
  Result<Model> open() const override { return read_model(options_); }

 private:
  SourceOptions options_;
};

Form<SourceOptions> options_form() {
  using Options = SourceOptions;
  return map_of<Options>(
             {
                 field("file", &Options::file, path(), "The file to read.")
                     .required()
                     .example("models/llama-7b-f16.bin"),
                 field("name", &Options::name, "The model's general.name; default: the file name.").example("LLaMA 7B"),
                 field("description", &Options::description,
                       "The model's general.description; default: the format it was converted from.")
                     .example("from the files of 2023"),
                 field("query_groups", &Options::query_groups,
                       "Number of attention heads per key-value head, which the file does not contain: 8 for LLaMA 2 "
                       "70B.")
                     .at_least(1)
                     .at_most(255)
                     .example("8"),
                 field("epsilon", &Options::epsilon,
                       "Epsilon of the RMS norms: 1e-6 for LLaMA 1 and OpenLLaMA, 1e-5 for LLaMA 2.")
                     .shown_default("5e-6")
                     .at_most(1)
                     .example("1e-5"),
                 field("context_length", &Options::context_length,
                       "Context length in tokens: 2048 for LLaMA 1, 4096 for LLaMA 2.")
                     .at_least(1)
                     .at_most(UINT32_MAX)
                     .example("4096"),
             })
      .doc("The file, and information about the model that it does not contain.");
}

}  // namespace
}  // namespace ggml

std::unique_ptr<Source> make_ggml_source(ggml::SourceOptions options) {
  return std::make_unique<ggml::GgmlSource>(std::move(options));
}

SourceSpec ggml_source() {
  using Options = ggml::SourceOptions;
  return source_spec("ggml",
                     either<Options>(shorthand(&Options::file, path()).doc("The file to read."), ggml::options_form())
                         .at(&Options::origin)
                         .doc("A LLaMA file from before GGUF: GGML, GGMF, or GGJT versions 1 to 3.")
                         .example("models/llama-7b-f16.bin"),
                     make_ggml_source);
}

}  // namespace ggufmill
