#include "pipeline/api/publish/presets/go_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <map>
#include <optional>

#include "pipeline/api/publish/presets/ollama_embedded.h"
#include "pipeline/core/json.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

json::value parsed(std::string_view name, std::string_view text) {
  return parse_json(std::string(name), text).value();  // part of the program
}

std::vector<TriedConversation> read_conversations() {
  const json::value root = parsed("conversations.json", embedded_conversations());
  std::vector<TriedConversation> all;
  for (const json::value& each : needed_list(root, "conversations")) {
    TriedConversation& one = all.emplace_back();
    one.name = needed_text(each, "name");
    one.conversation.messages = needed_list(each, "messages");
    if (json_flag(each, "tools")) one.conversation.tools = needed_list(root, "tools");
  }
  return all;
}

bool has_tools(std::string_view conversation) {
  const auto& all = tried_conversations();
  const auto found = std::ranges::find(all, conversation, &TriedConversation::name);
  return found != all.end() && !found->conversation.tools.empty();
}

std::vector<GoTemplate> read_templates() {
  std::vector<GoTemplate> all;
  for (const EmbeddedTemplate& each : embedded_templates()) {
    GoTemplate& one = all.emplace_back();
    one.name = each.name;
    one.text = each.text.substr(0, each.text.size() - (each.text.ends_with('\n') ? 1 : 0));
    const json::value facts = parsed(each.name, each.renders);
    for (const json::value& stop : needed_list(facts, "stop")) one.stops.emplace_back(*json_text(stop));
    for (const json::key_value_pair& text : needed(facts, "renders").as_object()) {
      one.rendered.emplace_back(text.key(), *json_text(text.value()));
      one.has_tools = one.has_tools || has_tools(text.key());
    }
  }
  return all;
}

// Returns the end of the JSON value that begins with a bracket at `begin`; nullopt if none does.
std::optional<std::size_t> end_of_json(std::string_view text, std::size_t begin) {
  std::size_t depth = 0;
  bool is_string = false;
  for (std::size_t at = begin; at < text.size(); ++at) {
    const char c = text[at];
    if (is_string) {
      if (c == '\\')
        ++at;
      else if (c == '"')
        is_string = false;
    } else if (c == '"') {
      is_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if ((c == '}' || c == ']') && --depth == 0) {
      return at + 1;
    }
  }
  return {};
}

json::value sorted(const json::value& value) {  // NOLINT(misc-no-recursion): the depth is that of a JSON document
  if (value.is_object()) {
    std::map<std::string_view, const json::value*> members;
    for (const json::key_value_pair& each : value.get_object()) members[each.key()] = &each.value();
    json::object made;
    for (const auto& [key, member] : members) made[key] = sorted(*member);
    return made;
  }
  if (!value.is_array()) return value;
  json::array made;
  for (const json::value& item : value.get_array()) made.push_back(sorted(item));
  return made;
}

bool begins_json(std::string_view text, std::size_t at) {
  if (text[at] == '{') return true;
  const std::size_t next = text[at] == '[' ? text.find_first_not_of(" \n", at + 1) : text.npos;
  return next != text.npos && text[next] == '{';
}

// The texts that a chat template renders, by conversation; those that it refuses are missing.
using Texts = std::map<std::string_view, std::string>;

struct Equal {
  std::size_t without_tools = 0, with_tools = 0;  // conversations that are rendered equally
  std::string_view first_difference;              // the name of the first that is not; empty: none
};

Equal compared(const GoTemplate& made, const Texts& texts) {
  Equal equal;
  for (const auto& [name, text] : texts) {
    const auto known = std::ranges::find(made.rendered, name, [](const auto& each) { return each.first; });
    if (known == made.rendered.end()) continue;  // tools, without which it can be used
    if (with_plain_json(known->second) == text)
      ++(has_tools(name) ? equal.with_tools : equal.without_tools);
    else if (equal.first_difference.empty())
      equal.first_difference = name;
  }
  return equal;
}

ChosenTemplate none(std::string why) { return {nullptr, std::move(why)}; }

}  // namespace

const std::vector<TriedConversation>& tried_conversations() {
  static const std::vector<TriedConversation> all = read_conversations();
  return all;
}

const std::vector<GoTemplate>& go_templates() {
  static const std::vector<GoTemplate> all = read_templates();
  return all;
}

std::string with_plain_json(std::string_view text) {
  constexpr std::size_t kMaxTries = 1000;  // a hostile template could write brackets only
  std::string plain;
  std::size_t tries = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = begins_json(text, at) && ++tries <= kMaxTries ? end_of_json(text, at) : std::nullopt;
    if (end)
      if (const auto value = parse_json("", text.substr(at, *end - at))) {
        plain += json::serialize(sorted(value.value()));
        at = *end;
        continue;
      }
    plain += text[at++];
  }
  return plain;
}

ChosenTemplate matching_template(const std::vector<RenderedConversation>& rendered) {
  const auto& conversations = tried_conversations();
  Texts texts;
  std::string error;
  for (std::size_t i = 0; i < conversations.size(); ++i)
    if (rendered[i].error.empty())
      texts[conversations[i].name] = with_plain_json(rendered[i].text);
    else if (error.empty())
      error = rendered[i].error;
  if (texts.empty()) return none("the chat template of the model cannot be rendered: " + error);
  const GoTemplate* best = nullptr;
  Equal most;
  for (const GoTemplate& each : go_templates()) {
    const Equal equal = compared(each, texts);
    if (!equal.first_difference.empty() || equal.without_tools == 0) continue;
    if (best && std::pair(equal.with_tools, equal.without_tools) <= std::pair(most.with_tools, most.without_tools))
      continue;
    best = &each;
    most = equal;
  }
  if (!best)
    return none(fmt::format("none of the {} templates that are known renders the same text", go_templates().size()));
  const bool knows_tools = std::ranges::any_of(texts, [](const auto& each) { return has_tools(each.first); });
  std::string note = fmt::format(
      "renders the text of the model's chat template for the {} conversations that were "
      "tried ({})",
      most.without_tools + most.with_tools, best->name);
  if (best->has_tools && most.with_tools != 0)
    note += ", with tools: only spaces and the order of keys in JSON differ";
  else if (knows_tools)
    note += ", all without tools: Ollama offers none for it";
  return {best, std::move(note)};
}

Result<ChosenTemplate> choose_template(const std::string& path, const Metadata& metadata,
                                       const std::atomic<bool>* stop) {
  if (!metadata.find("tokenizer.chat_template")) return none("the model has no chat template");
  std::vector<Conversation> conversations;
  for (const TriedConversation& each : tried_conversations()) conversations.push_back(each.conversation);
  const auto rendered = render_conversations(path, metadata, conversations, stop);
  if (rendered) return matching_template(rendered.value());
  const Error& error = rendered.error();
  if (error.code == ExitCode::kInterrupted) return error;
  return none(fmt::format("the chat template of the model could not be compared: {}", error.what));
}

}  // namespace ggufmill
