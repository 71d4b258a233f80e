#pragma once
// Templates of Ollama, which are written in the language of Go's text/template. One stands for the chat template of a
// model if both render the same text for a number of conversations: what Ollama renders is part of the data
// (configs/ollama), and a test compares it with Ollama itself.

#include <atomic>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/api/chat_template.h"
#include "pipeline/core/error.h"
#include "pipeline/core/metadata.h"

namespace ggufmill {

struct TriedConversation {
  std::string name;
  Conversation conversation;
};
// The conversations that templates are compared with: with and without a system message and tools.
const std::vector<TriedConversation>& tried_conversations();

struct GoTemplate {
  std::string name, text;
  std::vector<std::string> stops;                             // texts that end an answer
  std::vector<std::pair<std::string, std::string>> rendered;  // by the name of the conversation
  bool has_tools = false;
};
const std::vector<GoTemplate>& go_templates();

// Returns a text in which JSON objects, and lists of them, have no spaces and sorted keys: Go writes those of tools in
// another way than Python does.
std::string with_plain_json(std::string_view text);

struct ChosenTemplate {
  const GoTemplate* found = nullptr;
  std::string note;  // what it renders equally; or why there is none, in one line
};
// Returns the template of Ollama that renders what `rendered`, the texts of tried_conversations(), are.
ChosenTemplate matching_template(const std::vector<RenderedConversation>& rendered);
// Returns that for the chat template of a model. A model without one, and a machine without Python or jinja2, get none.
// Fails only with kInterrupted. `path` is for messages.
Result<ChosenTemplate> choose_template(const std::string& path, const Metadata& metadata,
                                       const std::atomic<bool>* stop = nullptr);

}  // namespace ggufmill
