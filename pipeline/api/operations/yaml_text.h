#pragma once
// The result of operations that print a YAML file.

#include "pipeline/api/operations/operation.h"

namespace ggufmill {

struct YamlText {
  std::string yaml;
};

inline void print_yaml(const YamlText& text, TextOutput& to) { to.out = text.yaml; }

inline ResultForm<YamlText> yaml_result(std::string_view doc) {
  return {.members = {result("yaml", &YamlText::yaml, doc)}, .is_alone = true};
}

}  // namespace ggufmill
