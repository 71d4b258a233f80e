#include "pipeline/api/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <chrono>
#include <unordered_map>
#include <utility>

#include "pipeline/core/text.h"
#include "pipeline/io/command.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/process.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::string_view kTemplate = "tokenizer.chat_template";
constexpr int kMaxSeconds = 5;                                // that a template may take
constexpr std::uint64_t kMaxMemory = std::uint64_t{1} << 29;  // that the process may have
constexpr std::size_t kMaxRequestBytes = 1 << 20;             // bytes; systems limit the size of an environment
constexpr std::size_t kVariableBytes = 30'000;                // bytes of a variable, which some systems limit
constexpr std::size_t kMaxCharacters = 100'000;               // of a rendered text
constexpr std::size_t kMaxTextBytes = 2'000'000;              // of the texts of all cases together, as JSON
static_assert(kMaxTextBytes < 2 * kKeptOutput);
constexpr const char* kAsks = "What is the weather in Oslo?";
constexpr const char* kTool = "get_weather";

json::object message(const char* role, const char* content) { return {{"role", role}, {"content", content}}; }

json::array tools() {
  return {{{"type", "function"},
           {"function",
            {{"name", kTool},
             {"description", "Returns the weather in a city."},
             {"parameters",
              {{"type", "object"},
               {"properties", {{"city", {{"type", "string"}, {"description", "name of the city"}}}}},
               {"required", json::array{"city"}}}}}}}};
}

json::object call_of_tool() {
  return {{"role", "assistant"},
          {"content", ""},
          {"tool_calls", json::array{{{"id", "call00001"},
                                      {"type", "function"},
                                      {"function", {{"name", kTool}, {"arguments", {{"city", "Oslo"}}}}}}}}};
}

json::object result_of_tool() {
  return {{"role", "tool"}, {"name", kTool}, {"tool_call_id", "call00001"}, {"content", "12 degrees, rain"}};
}

// The conversations that every template is tried with.
enum Case : std::uint8_t { kQuestion, kQuestionAlone, kAnswer, kSystem, kTools, kWhole, kWholeAlone, kCases };

json::object case_of(json::array messages, json::array with_tools, bool prompts) {
  json::object made{{"messages", std::move(messages)}, {"add_generation_prompt", prompts}};
  made["tools"] = with_tools.empty() ? json::value() : json::value(std::move(with_tools));
  return made;
}

json::array cases_of(const std::optional<Conversation>& given) {
  const Conversation whole = given ? *given : usual_conversation();
  const json::array question{message("user", kAsks)};
  json::array cases;
  cases.push_back(case_of(question, {}, true));
  cases.push_back(case_of(question, {}, false));
  cases.push_back(case_of({message("user", kAsks), message("assistant", "It rains.")}, {}, false));
  cases.push_back(case_of({message("system", "Be brief."), message("user", kAsks)}, {}, true));
  cases.push_back(case_of({message("user", kAsks), call_of_tool(), result_of_tool()}, tools(), true));
  cases.push_back(case_of(whole.messages, whole.tools, true));
  cases.push_back(case_of(whole.messages, whole.tools, false));
  return cases;
}

struct Rendered {
  std::string text{}, error{};
  std::vector<std::string> undefined{};
  bool is_ok() const { return error.empty(); }
};

std::string member_text(const json::object& object, const char* name) {
  const json::value* const found = object.if_contains(name);
  return found && found->is_string() ? std::string(found->get_string()) : std::string();
}

Rendered rendered_of(const json::object& line) {
  Rendered made{.text = member_text(line, "text"), .error = member_text(line, "error")};
  if (const json::value* const names = line.if_contains("undefined"); names && names->is_array())
    for (const json::value& name : names->get_array())
      if (name.is_string()) made.undefined.emplace_back(name.get_string());
  return made;
}

// The kind of token that a text is in the vocabulary.
enum class TokenKind { kNone, kText, kSpecial };

class Vocabulary {
 public:
  explicit Vocabulary(const Metadata& metadata) : metadata_(metadata) {
    std::vector<std::int64_t> types;
    if (const MetadataValue* const all = metadata.find("tokenizer.ggml.token_type"))
      for_each_item(*all, [&](const MetadataValue& type) {
        types.push_back(as_signed(type).value_or(0));
        return true;
      });
    if (const MetadataValue* const all = metadata.find("tokenizer.ggml.tokens"))
      for_each_item(*all, [&](const MetadataValue& token) {
        const std::size_t at = tokens_.size();
        tokens_.emplace_back(as_string(token).value_or(""));
        // Types of llama.cpp: 3 is control, 4 user-defined, 2 unknown. Without types, none is known to be text.
        const bool is_special = at >= types.size() || (types[at] >= 2 && types[at] <= 4);
        kinds_[tokens_.back()] = is_special ? TokenKind::kSpecial : TokenKind::kText;
        return true;
      });
  }

  bool empty() const { return tokens_.empty(); }
  TokenKind kind_of(const std::string& text) const {
    const auto found = kinds_.find(text);
    return found == kinds_.end() ? TokenKind::kNone : found->second;
  }
  // Returns the text of the token that a key names: "tokenizer.ggml.bos_token_id".
  std::string token_of(const std::string& key) const {
    const MetadataValue* const value = metadata_.find(key);
    const auto id = value ? as_unsigned(*value) : std::nullopt;
    return id && *id < tokens_.size() ? tokens_[*id] : std::string();
  }
  // Returns true if programs put the first token before every text.
  bool adds_bos() const {
    if (const MetadataValue* const flag = metadata_.find("tokenizer.ggml.add_bos_token")) return as_bool(*flag) == true;
    const auto text_of = [&](const char* key) {
      const MetadataValue* const value = metadata_.find(key);
      return value ? as_string(*value).value_or("") : std::string_view();
    };
    const std::string_view model = text_of("tokenizer.ggml.model"), pre = text_of("tokenizer.ggml.pre");
    return std::ranges::any_of(ggufmill::added_bos(), [&](const AddedBos& row) {
      return row.model == model && (row.pre == "*" || row.pre == pre);
    });
  }

 private:
  const Metadata& metadata_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, TokenKind> kinds_;
};

// Returns the length of the special token at the beginning of a text, by its form: <|name|>, <start_of_turn>, <s>;
// 0 if there is none.
std::size_t special_length(std::string_view text) {
  constexpr std::size_t kMaxLength = 80;
  for (const auto& [open, close] : {std::pair<std::string_view, std::string_view>{"<|", "|>"}, {"<｜", "｜>"}}) {
    if (!text.starts_with(open)) continue;
    const std::size_t end = text.substr(0, kMaxLength).find(close, open.size());
    const bool is_one =
        end != text.npos && text.substr(open.size(), end - open.size()).find_first_of("< \n") == text.npos;
    return is_one && end > open.size() ? end + close.size() : 0;
  }
  if (text.starts_with("<start_of_") || text.starts_with("<end_of_")) {
    const std::size_t end = text.substr(0, kMaxLength).find('>');
    const bool is_one = end != text.npos && text.substr(0, end).find_first_of(" \n") == text.npos;
    return is_one ? end + 1 : 0;
  }
  for (const std::string_view token : {"<s>", "</s>", "<bos>", "<eos>"})
    if (text.starts_with(token)) return token.size();
  return 0;
}

std::vector<std::string> special_tokens_of(std::string_view text) {
  std::vector<std::string> tokens;
  for (std::size_t at = text.find('<'); at != text.npos; at = text.find('<', at + 1)) {
    const std::size_t length = special_length(text.substr(at));
    if (length == 0) continue;
    std::string token(text.substr(at, length));
    if (std::ranges::find(tokens, token) == tokens.end()) tokens.push_back(std::move(token));
  }
  return tokens;
}

// Looks for what would surprise the users of a template.
class Lint {
 public:
  Lint(const std::vector<Rendered>& cases, const Vocabulary& vocabulary, RenderedTemplate& into)
      : cases_(cases), vocabulary_(vocabulary), into_(into) {}

  void run() {
    check_abilities();
    check_prompt();
    check_tokens();
    check_bos();
    check_undefined();
  }

 private:
  void warn(std::string what, std::string_view help) {
    into_.warnings.push_back(fmt::format("{}: {}; {}", into_.name, what, help));
  }

  void check_abilities() {
    if (!cases_[kQuestion].is_ok()) return;  // the error of the template itself
    if (const Rendered& with = cases_[kSystem]; !with.is_ok())
      warn(fmt::format("it fails for a system message: {}", with.error),
           "put the text into the first message of the user, or change the template");
    const Rendered& with = cases_[kTools];
    if (!with.is_ok())
      warn(fmt::format("it fails for a call of a tool and its result: {}", with.error),
           "use the model without tools, or with a template for tools");
    else if (with.text.find(kTool) == std::string::npos)
      warn("it ignores tools and their calls", "use the model without tools, or with a template for tools");
  }

  void check_prompt() {
    const Rendered &with = cases_[kQuestion], &alone = cases_[kQuestionAlone], &answer = cases_[kAnswer];
    if (!with.is_ok() || !alone.is_ok()) return;
    if (!with.text.starts_with(alone.text)) {
      warn("the text with add_generation_prompt does not begin with the text without it",
           "add the prompt of the model at the end only: {% if add_generation_prompt %}...{% endif %}");
      return;
    }
    if (with.text.size() > alone.text.size() || !answer.is_ok() || !answer.text.starts_with(alone.text)) return;
    const std::size_t begin = answer.text.find("It rains.", alone.text.size());
    if (begin == std::string::npos) return;
    const std::string_view header =
        trimmed(std::string_view(answer.text).substr(alone.text.size(), begin - alone.text.size()));
    if (!header.empty())
      warn(fmt::format("add_generation_prompt adds nothing, but answers begin with {}", quoted_name(header)),
           "add that at the end: {% if add_generation_prompt %}...{% endif %}");
  }

  void check_tokens() {
    if (vocabulary_.empty()) return;
    std::vector<std::string> missing, plain;
    for (const Rendered& each : cases_)
      for (std::string& token : special_tokens_of(each.text)) {
        const TokenKind kind = vocabulary_.kind_of(token);
        if (kind == TokenKind::kSpecial) continue;
        std::vector<std::string>& list = kind == TokenKind::kNone ? missing : plain;
        if (std::ranges::find(list, token) == list.end()) list.push_back(std::move(token));
      }
    if (!missing.empty())
      warn(fmt::format("the vocabulary has no token {}", list_some(quoted(missing))),
           "the model sees it as plain text: use the template that belongs to the vocabulary");
    if (!plain.empty())
      warn(fmt::format("the type of {} {} in the vocabulary is text, not control",
                       plain.size() == 1 ? "token" : "tokens", list_some(quoted(plain))),
           "programs do not recognize it in a prompt: convert the model again, or correct tokenizer.ggml.token_type");
  }

  static std::vector<std::string> quoted(const std::vector<std::string>& texts) {
    std::vector<std::string> all;
    for (const std::string& text : texts) all.push_back(quoted_name(text));
    return all;
  }

  void check_bos() {
    const std::string bos = vocabulary_.token_of("tokenizer.ggml.bos_token_id");
    const Rendered& question = cases_[kQuestion];
    if (bos.empty() || !question.is_ok()) return;
    if (question.text.starts_with(bos + bos))
      warn(fmt::format("it writes {} twice at the beginning", quoted_name(bos)), "write it once");
    else if (question.text.starts_with(bos) && vocabulary_.adds_bos())
      warn(fmt::format("it begins with {}, which tokenizer.ggml.add_bos_token adds as well", quoted_name(bos)),
           "programs that do not remove one see it twice: remove it from the template, or set the key to false");
  }

  void check_undefined() {
    std::vector<std::string> names;
    for (const Rendered& each : cases_)
      for (const std::string& name : each.undefined)
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    if (!names.empty())
      warn(fmt::format("it uses what is not defined: {}", list_some(names)),
           "it is empty text: ask for it with `is defined`, or pass it");
  }

  const std::vector<Rendered>& cases_;
  const Vocabulary& vocabulary_;
  RenderedTemplate& into_;
};

Error missing(const std::string& what, const char* help) {
  return Error{ExitCode::kIo, "", what, "chat templates are rendered by Jinja, a module of Python", help};
}

Result<std::string> python() {
  for (const char* const name : {"python3", "python"})
    if (find_program(name)) return std::string(name);
  return missing("there is no program python3", "install Python 3 and its module jinja2: `apt install python3-jinja2`");
}

bool is_within_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// Returns the reason why the process ended before it had rendered all cases.
std::string early_end(const Result<CommandResult>& ran) {
  constexpr int kOutOfTime = 128 + 24;  // SIGXCPU of Linux and macOS
  if (!ran || ran.value().exit_code == kOutOfTime) return fmt::format("it takes longer than {} s", kMaxSeconds);
  const int code = ran.value().exit_code;
  return code > 128 ? fmt::format("Python was ended by signal {}", code - 128)
                    : fmt::format("Python ended with exit code {}", code);
}

// Renders all cases with one template.
Result<std::vector<Rendered>> render(const std::string& path, const std::string& name, std::string_view text,
                                     const json::object& names, const json::array& cases,
                                     const RenderOptions& options) {
  if (!is_utf8(text)) return std::vector<Rendered>(cases.size(), Rendered{.error = "it is not UTF-8"});
  const json::object request{
      {"template", text},       {"names", names},      {"cases", cases},         {"characters", kMaxCharacters},
      {"seconds", kMaxSeconds}, {"bytes", kMaxMemory}, {"output", kMaxTextBytes}};
  const std::string written = json::serialize(request);
  if (written.size() > kMaxRequestBytes)
    return input_error(path,
                       fmt::format("{} and the conversation together have {}, more than the limit of {}", name,
                                   human_bytes(written.size()), human_bytes(kMaxRequestBytes)),
                       options.conversation ? "use a shorter conversation, or change the template"
                                            : "set another template with `ggufmill edit --chat-template-file`");
  CommandOptions how{.stop = options.stop, .time_limit = std::chrono::seconds(4 * kMaxSeconds)};
  for (std::size_t at = 0, i = 0; at < written.size(); ++i) {
    std::size_t end = std::min(at + kVariableBytes, written.size());
    // Not within a character, which has at most three bytes after its first; tokens that are not UTF-8 may have more.
    for (int bytes = 0; bytes < 3 && end < written.size() && is_within_character(written[end]); ++bytes) --end;
    how.environment.emplace_back(fmt::format("GGUFMILL_REQUEST_{}", i), written.substr(at, end - at));
    at = end;
  }
  BOOST_OUTCOME_TRY(const std::string program, python());
  const auto ran = run_command({program, "-I", "-c", std::string(template_renderer())}, how);
  if (!ran && ran.error().code != ExitCode::kTransient) return ran.error();
  std::vector<Rendered> made;
  if (ran)
    for (std::string_view left = ran.value().out; !left.empty();) {
      const std::size_t end = std::min(left.find('\n'), left.size());
      auto line = parse_json(name, left.substr(0, end));
      left.remove_prefix(std::min(end + 1, left.size()));
      if (!line || !line.value().is_object()) break;
      if (member_text(line.value().get_object(), "kind") == "jinja2")
        return missing(fmt::format("{} has no module jinja2", program),
                       "install it: `apt install python3-jinja2`, or `pip install jinja2`");
      made.push_back(rendered_of(line.value().get_object()));
    }
  if (made.empty() && ran && ran.value().exit_code < 128 && !ran.value().err.empty())
    return Error{ExitCode::kIo, program, "cannot render chat templates", ran.value().err.substr(0, 400),
                 "Python 3.8 or later with jinja2 3.0 or later is required"};
  // The last answer is that of the other cases as well: an error in the template, or the time limit.
  Rendered last{.error = early_end(ran)};
  if (ran && ran.value().exit_code == 0 && !made.empty() && !made.back().is_ok()) last = made.back();
  made.resize(cases.size(), last);
  return made;
}

std::vector<std::pair<std::string, std::string>> templates_of(const Metadata& metadata) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const MetadataEntry& entry : metadata.entries()) {
    const bool is_one = entry.key == kTemplate || entry.key.starts_with(std::string(kTemplate) + ".");
    if (const auto text = as_string(entry.value); is_one && text) all.emplace_back(entry.key, std::string(*text));
  }
  return all;
}

Error without_template(const std::string& path) {
  return input_error(path, "the model has no chat template", "`ggufmill edit --chat-template-file FILE` adds one");
}

// Returns the texts of special tokens under the names that templates know.
json::object token_names(const Vocabulary& vocabulary) {
  json::object names;
  for (const auto& [name, key] : {std::pair("bos_token", "bos"),
                                  {"eos_token", "eos"},
                                  {"unk_token", "unknown"},
                                  {"pad_token", "padding"},
                                  {"sep_token", "separator"},
                                  {"cls_token", "cls"},
                                  {"mask_token", "mask"}})
    if (std::string token = vocabulary.token_of(fmt::format("tokenizer.ggml.{}_token_id", key)); !token.empty())
      names[name] = std::move(token);
  return names;
}

}  // namespace

Conversation usual_conversation() {
  return {{message("system", "Be brief."), message("user", kAsks), call_of_tool(), result_of_tool(),
           message("assistant", "It rains."), message("user", "And tomorrow?")},
          tools()};
}

Result<Conversation> read_conversation(const std::string& path) {
  constexpr const char* kExample = R"(for example [{"role": "user", "content": "Hello"}])";
  BOOST_OUTCOME_TRY(json::value value, read_json(path));
  Conversation made;
  if (json::object* const object = value.if_object()) {
    for (const auto& member : *object)
      if (member.key() != "messages" && member.key() != "tools")
        return input_error(path, fmt::format("unknown key {}", quoted_name(member.key())),
                           "a conversation has \"messages\", and may have \"tools\"");
    if (const json::value* const given = object->if_contains("tools"); given && !given->is_null()) {
      if (!given->is_array()) return input_error(path, "\"tools\" is not a list", "write the schemas as [{...}]");
      made.tools = given->get_array();
    }
    json::value* const messages = object->if_contains("messages");
    if (!messages) return input_error(path, "\"messages\" is missing", kExample);
    value = json::value(*messages);
  }
  if (!value.is_array() || value.get_array().empty())
    return input_error(path, "the conversation is not a list of messages", kExample);
  for (const json::value& each : value.get_array())
    if (!each.is_object() || !each.get_object().contains("role"))
      return input_error(path, fmt::format("message {} has no role", made.messages.size() + 1), kExample);
    else
      made.messages.push_back(each);
  return made;
}

Result<std::vector<RenderedConversation>> render_conversations(const std::string& path, const Metadata& metadata,
                                                               const std::vector<Conversation>& conversations,
                                                               const std::atomic<bool>* stop) {
  const MetadataValue* const value = metadata.find(kTemplate);
  const auto text = value ? as_string(*value) : std::nullopt;
  if (!text) return without_template(path);
  json::array cases;
  for (const Conversation& each : conversations) cases.push_back(case_of(each.messages, each.tools, true));
  const Vocabulary vocabulary(metadata);
  const std::string bos = vocabulary.adds_bos() ? vocabulary.token_of("tokenizer.ggml.bos_token_id") : std::string();
  BOOST_OUTCOME_TRY(std::vector<Rendered> rendered,
                    render(path, std::string(kTemplate), *text, token_names(vocabulary), cases, {.stop = stop}));
  std::vector<RenderedConversation> made;
  for (Rendered& each : rendered) {
    if (!bos.empty() && each.text.starts_with(bos)) each.text.erase(0, bos.size());
    made.push_back({std::move(each.text), std::move(each.error)});
  }
  return made;
}

Result<std::vector<RenderedTemplate>> render_templates(const std::string& path, const Metadata& metadata,
                                                       const RenderOptions& options) {
  const auto templates = templates_of(metadata);
  if (templates.empty()) return without_template(path);
  const Vocabulary vocabulary(metadata);
  const json::object names = token_names(vocabulary);
  std::vector<RenderedTemplate> all;
  for (const auto& [name, text] : templates) {
    BOOST_OUTCOME_TRY(std::vector<Rendered> cases,
                      render(path, name, text, names, cases_of(options.conversation), options));
    RenderedTemplate& made = all.emplace_back();
    made.name = name;
    Lint(cases, vocabulary, made).run();
    // A template without tools, or without system messages, still shows what it can.
    std::size_t shown = kWhole, alone = kWholeAlone;
    if (!options.conversation && !cases[kWhole].is_ok()) {
      shown = kQuestion, alone = kQuestionAlone;
      if (cases[kQuestion].is_ok() && cases[kSystem].is_ok() && cases[kTools].is_ok())  // no warning has the reason
        made.warnings.push_back(
            fmt::format("{}: it fails for a conversation of several turns: {}; only its first "
                        "question is shown",
                        name, cases[kWhole].error));
    }
    made.error = cases[shown].error;
    made.text = std::move(cases[shown].text);
    if (cases[alone].is_ok() && made.text.starts_with(cases[alone].text))
      made.generation_prompt = made.text.substr(cases[alone].text.size());
  }
  return all;
}

}  // namespace ggufmill
