#pragma once
// The effect of the configuration classes of transformers on a config.json, as data: one file in configs/model_types
// for each value of `model_type`.

#include <boost/json/object.hpp>
#include <span>
#include <string_view>

#include "pipeline/config/fields.h"
#include "pipeline/core/error.h"
#include "pipeline/io/platform/filesystem.h"

namespace ggufmill::huggingface {

// Returns the field table for model type files.
FieldSpec model_type_fields();

struct CompletedConfig {
  boost::json::object config;
  bool is_refused = false;  // the class refuses a value
};

// Returns config.json with the keys, the defaults and the computed values that transformers adds for its model type.
// Returns it unchanged if the model type is unknown, or if the class refuses a value: convert_hf_to_gguf.py then reads
// the file unchanged as well. `folder` is the checkpoint's.
Result<CompletedConfig> with_class_defaults(const fs::path& folder, const boost::json::object& config);

// A file that is embedded at build time.
struct BuiltInModelType {
  std::string_view name;
  std::string_view text;
};
// In the order of the files, including those that only others extend.
std::span<const BuiltInModelType> built_in_model_types();

}  // namespace ggufmill::huggingface
