#pragma once
// What the configuration classes of transformers make of a config.json, as data: one file of configs/model_types for
// each model type that its `model_type` can name.

#include <boost/json/object.hpp>
#include <filesystem>
#include <span>
#include <string_view>

#include "pipeline/config/fields.h"
#include "pipeline/core/error.h"

namespace ggufmill::huggingface {

// The field table of such a file.
FieldSpec model_type_fields();

struct CompletedConfig {
  boost::json::object config;
  bool is_refused = false;  // the class refuses a value
};

// config.json with the keys, the defaults and the computed values that transformers gives its model type. Unchanged for
// an unknown model type, and for values that the class refuses: convert_hf_to_gguf.py then reads the file as it is,
// too. `folder` is that of the checkpoint.
Result<CompletedConfig> with_class_defaults(const std::filesystem::path& folder, const boost::json::object& config);

// A file embedded at build time.
struct BuiltInModelType {
  std::string_view name;
  std::string_view text;
};
// In the order of their files; those that others extend included.
std::span<const BuiltInModelType> built_in_model_types();

}  // namespace ggufmill::huggingface
