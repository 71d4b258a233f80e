#include "pipeline/core/type_module.h"

#include "pipeline/core/json.h"

namespace ggufmill {

namespace json = boost::json;

json::array modules_json(const std::vector<TypeModule>& modules) {
  json::array list;
  for (const TypeModule& module : modules) {
    json::object written{{"type", module.type}};
    if (!module.encoder.empty()) written["encoder"] = module.encoder;
    written["name"] = module.name;
    written["version"] = module.version;
    written["xxh3"] = module.xxh3;
    list.push_back(std::move(written));
  }
  return list;
}

std::vector<TypeModule> read_modules(const json::array& list) {
  std::vector<TypeModule> modules;
  for (const json::value& module : list)
    modules.push_back({needed_text(module, "type"),
                       json_member(module, "encoder") ? needed_text(module, "encoder") : std::string(),
                       needed_text(module, "name"), needed_text(module, "version"), needed_text(module, "xxh3")});
  return modules;
}

}  // namespace ggufmill
