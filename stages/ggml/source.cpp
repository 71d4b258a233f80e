#include "stages/ggml/model_reader.h"

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

Result<SourceOptions> read_options(const ConfigNode& value) {
  SourceOptions options;
  options.origin = origin_of(value);
  if (value.is_scalar()) {
    options.file = value.scalar;
    return options;
  }
  options.file = value.find("file")->scalar;
  if (const ConfigNode* name = value.find("name")) options.name = name->scalar;
  if (const ConfigNode* description = value.find("description")) options.description = description->scalar;
  if (const ConfigNode* groups = value.find("query_groups")) {
    BOOST_OUTCOME_TRY(const std::int64_t number, to_integer(*groups));
    options.query_groups = static_cast<std::uint64_t>(number);
  }
  if (const ConfigNode* epsilon = value.find("epsilon")) {
    BOOST_OUTCOME_TRY(options.epsilon, to_number(*epsilon));
  }
  if (const ConfigNode* length = value.find("context_length")) {
    BOOST_OUTCOME_TRY(const std::int64_t number, to_integer(*length));
    options.context_length = static_cast<std::uint32_t>(number);
  }
  return options;
}

FieldSpec map_field() {
  FieldSpec file{.name = "file",
                 .kind = FieldKind::kPath,
                 .doc = "The file to read.",
                 .required = true,
                 .example = "models/llama-7b-f16.bin"};
  FieldSpec name{.name = "name", .doc = "The model's general.name; default: the file name.", .example = "LLaMA 7B"};
  FieldSpec description{.name = "description",
                        .doc = "The model's general.description; default: the format it was converted from.",
                        .example = "from the files of 2023"};
  FieldSpec groups{
      .name = "query_groups",
      .kind = FieldKind::kInteger,
      .doc = "Number of attention heads per key-value head, which the file does not contain: 8 for LLaMA 2 70B.",
      .default_text = "1",
      .example = "8",
      .minimum = 1,
      .maximum = 255};
  FieldSpec epsilon{.name = "epsilon",
                    .kind = FieldKind::kNumber,
                    .doc = "Epsilon of the RMS norms: 1e-6 for LLaMA 1 and OpenLLaMA, 1e-5 for LLaMA 2.",
                    .default_text = "5e-6",
                    .example = "1e-5",
                    .maximum = 1};
  FieldSpec length{.name = "context_length",
                   .kind = FieldKind::kInteger,
                   .doc = "Context length in tokens: 2048 for LLaMA 1, 4096 for LLaMA 2.",
                   .default_text = "2048",
                   .example = "4096",
                   .minimum = 1,
                   .maximum = UINT32_MAX};
  FieldSpec map{.kind = FieldKind::kMap, .doc = "The file, and information about the model that it does not contain."};
  map.fields = {file, name, description, groups, epsilon, length};
  return map;
}

}  // namespace
}  // namespace ggml

std::unique_ptr<Source> make_ggml_source(ggml::SourceOptions options) {
  return std::make_unique<ggml::GgmlSource>(std::move(options));
}

SourceSpec ggml_source() {
  FieldSpec path{.kind = FieldKind::kPath, .doc = "The file to read."};
  FieldSpec field{.name = "ggml",
                  .kind = FieldKind::kOneOf,
                  .doc = "A LLaMA file from before GGUF: GGML, GGMF, or GGJT versions 1 to 3.",
                  .example = "models/llama-7b-f16.bin"};
  field.alternatives = {std::move(path), ggml::map_field()};
  return {std::move(field), [](const ConfigNode& value) -> Result<std::unique_ptr<Source>> {
            BOOST_OUTCOME_TRY(auto options, ggml::read_options(value));
            return make_ggml_source(std::move(options));
          }};
}

}  // namespace ggufmill
