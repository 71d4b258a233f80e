#include "pipeline/report/models_page.h"

#include <boost/json.hpp>

#include "pipeline/report/json_text.h"
#include "pipeline/report/pages.h"

namespace ggufmill {

namespace json = boost::json;

std::string models_html(const std::vector<PicturedModel>& models) {
  json::array all;
  for (const PicturedModel& model : models) {
    json::array tensors;
    for (const PicturedTensor& tensor : model.tensors) {
      json::array shape;
      for (std::uint32_t i = 0; i < tensor.shape.rank; ++i) shape.push_back(tensor.shape.dims[i]);
      tensors.push_back(json::object{{"name", tensor.name},
                                     {"shape", std::move(shape)},
                                     {"type", tensor.type->name},
                                     {"weights", tensor.shape.elements()},
                                     {"bytes", tensor.bytes},
                                     {"rule", tensor.rule}});
    }
    all.push_back(json::object{{"name", model.name}, {"tensors", std::move(tensors)}});
  }
  return page_with(kModelsPage, script_text(to_json_text(all)));
}

}  // namespace ggufmill
