
#include <boost/json/parse.hpp>
#include <utility>

#include "tests/support/checkpoint_maker.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"

namespace ggufmill {

boost::json::value spec_with_all_parts(const fs::path& specs) {
  namespace json = boost::json;
  json::value spec = json::parse(read_text(specs / "draft-qwen3.5-mtp.json"));
  const json::value other = json::parse(read_text(specs / "mm-qwen3.5.json"));
  const auto is_of_encoder = [](const json::value& tensor) {
    return tensor.at(0).as_string().find(".visual.") != json::string::npos;
  };
  spec.at("config").as_object()["vision_config"] = other.at("config").at("vision_config");
  spec.as_object()["files"] = other.at("files");
  json::array tensors;
  for (const json::value& tensor : spec.at("tensors").as_array())
    if (!is_of_encoder(tensor)) tensors.push_back(tensor);
  for (const json::value& tensor : other.at("tensors").as_array())
    if (is_of_encoder(tensor)) tensors.push_back(tensor);
  spec.as_object()["tensors"] = std::move(tensors);
  return spec;
}

std::string checkpoint_with_all_parts(const fs::path& parent) {
  const auto shared = shared_data();
  if (!shared || !fs::exists(*shared / "hf-more")) return {};
  return make_checkpoint(*shared / "hf", spec_with_all_parts(*shared / "hf-more" / "specs"), parent);
}

}  // namespace ggufmill
