#pragma once
// The files of configs/ollama.

#include <span>
#include <string_view>

namespace ggufmill {

struct EmbeddedTemplate {
  std::string_view name, text, renders;  // NAME.gotmpl and NAME.json
};
std::span<const EmbeddedTemplate> embedded_templates();
std::string_view embedded_conversations();  // conversations.json

}  // namespace ggufmill
