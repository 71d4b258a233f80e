#pragma once
// Renders conversations with the chat templates of a model, and looks for what would surprise their users. Jinja of
// Python renders them, the engine of transformers: it is the reference, and every system packages it, which is not the
// case for a C++ library of Jinja. It runs in a process of its own, render_template.py, with limits of time and memory
// and without files and network.

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>

#include "pipeline/core/error.h"
#include "pipeline/core/model.h"

namespace ggufmill {

// The program that renders, in Python.
std::string_view template_renderer();

// A vocabulary to which llama.cpp adds the first token of every text if the file does not say whether to.
struct AddedBos {
  std::string_view model, pre;  // tokenizer.ggml.model and .pre; "*": any
};
std::span<const AddedBos> added_bos();

struct Conversation {
  boost::json::array messages;  // objects with role and content, as transformers takes them
  boost::json::array tools;     // JSON schemas of functions; may be empty
};

// Returns a conversation with a system message, a question, a call of a tool, its result, and another question.
Conversation usual_conversation();
// Reads a conversation: a list of messages, or {"messages": [...], "tools": [...]}. Exit code 4 if it is something
// else.
Result<Conversation> read_conversation(const std::string& path);

struct RenderedTemplate {
  std::string name;               // its key: "tokenizer.chat_template", "tokenizer.chat_template.tool_use"
  std::string text;               // the conversation, and the generation prompt
  std::string generation_prompt;  // end of `text`; empty: none
  std::string error;              // why it cannot be rendered; empty: it can
  std::vector<std::string> warnings;
};

struct RenderOptions {
  std::optional<Conversation> conversation{};  // none: the usual one, or the part of it that the template renders
  const std::atomic<bool>* stop = nullptr;
};

// A conversation with the generation prompt, as a template renders it.
struct RenderedConversation {
  std::string text;   // without the first token, if programs add it to every text
  std::string error;  // why it cannot be rendered; empty: it can
};
// Renders conversations with the chat template of a model, tokenizer.chat_template, in one process. Fails like
// render_templates(). Thread-safe.
Result<std::vector<RenderedConversation>> render_conversations(const std::string& path, const Metadata& metadata,
                                                               const std::vector<Conversation>& conversations,
                                                               const std::atomic<bool>* stop = nullptr);

// Renders all chat templates of a model. Exit code 4 if it has none; 6 if Python or its module jinja2 is missing.
// Starts one process for each template. Thread-safe.
Result<std::vector<RenderedTemplate>> render_templates(const std::string& path, const Metadata& metadata,
                                                       const RenderOptions& options);

}  // namespace ggufmill
