#include "pipeline/api/chat_template.h"

#include <boost/json.hpp>

#include "pipeline/io/command.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// Templates in the style of those of known models.
constexpr const char* kTurns =  // ChatML
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
constexpr const char* kTurnsWithTools =
    "{% if tools %}<|im_start|>system\n{% for t in tools %}{{ t | tojson }}\n{% endfor %}<|im_end|>\n{% endif %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>"
    "{{ c.function | tojson }}</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
constexpr const char* kHeaders =  // Llama 3
    "{{ bos_token }}{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content | trim }}"
    "<|eot_id|>{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}";
constexpr const char* kNoSystem =  // Gemma
    "{{ bos_token }}{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content }}"
    "<end_of_turn>\n{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}";
constexpr const char* kInstructions =  // Mistral
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
    "{% elif m.tool_calls %}[TOOL_CALLS]{% for c in m.tool_calls %}{% if c.id | length != 9 %}"
    "{{ raise_exception('ids have 9 characters') }}{% endif %}{{ c.function | tojson }}{% endfor %}"
    "{% elif m.role == 'tool' %}[TOOL_RESULTS]{{ m.content }}[/TOOL_RESULTS]{% else %}{{ m.content }}{{ eos_token }}"
    "{% endif %}{% endfor %}";

MetadataValue texts(const std::vector<std::string>& all) {
  std::vector<MetadataValue> values;
  for (const std::string& text : all) values.push_back(metadata_string(text));
  return metadata_array(MetadataType::kString, values);
}

// A model with control tokens, of which the first begins every text.
Metadata model(const char* text, const std::vector<std::string>& tokens, bool adds_bos = false) {
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", metadata_string("gpt2"));
  metadata.set("tokenizer.ggml.tokens", texts(tokens));
  metadata.set(
      "tokenizer.ggml.token_type",
      metadata_array(MetadataType::kInt32, std::vector(tokens.size(), metadata_unsigned(MetadataType::kInt32, 3))));
  metadata.set("tokenizer.ggml.bos_token_id", metadata_unsigned(MetadataType::kUint32, 0));
  metadata.set("tokenizer.ggml.eos_token_id", metadata_unsigned(MetadataType::kUint32, 1));
  metadata.set("tokenizer.ggml.add_bos_token", metadata_bool(adds_bos));
  metadata.set("tokenizer.chat_template", metadata_string(text));
  return metadata;
}

bool has_jinja() {
  for (const char* const name : {"python3", "python"})
    if (const auto ran = run_command({name, "-c", "import jinja2"}); ran && ran.value().exit_code == 0) return true;
  WARN("skipped: Python has no module jinja2");
  return false;
}

RenderedTemplate rendered(const Metadata& metadata, const RenderOptions& options = {}) {
  auto all = render_templates("model.gguf", metadata, options);
  REQUIRE(all);
  REQUIRE(all.value().size() == 1);
  return all.value().front();
}

std::string warnings(const Metadata& metadata) {
  std::string text;
  for (const std::string& warning : rendered(metadata).warnings) text += warning.substr(0, warning.find(';')) + "\n";
  return text;
}

}  // namespace

TEST_CASE("a conversation with an unknown key is refused") {
  const TempDir folder;
  write_text(folder.file("a.json"), R"({"messages": [{"role": "user", "content": "a"}], "tool": []})");
  const auto read = read_conversation(folder.file("a.json"));
  REQUIRE(!read);
  CHECK(read.error().what == "unknown key 'tool'");
}

TEST_CASE("the first token is known to be added where llama.cpp adds it without being told") {
  if (!has_jinja()) return;
  Metadata metadata = model(kHeaders, {"<|begin|>", "<|end|>"});
  metadata.remove("tokenizer.ggml.add_bos_token");
  const std::vector<Conversation> question{{{{{"role", "user"}, {"content", "a"}}}, {}}};
  const auto text = [&] { return render_conversations("a.gguf", metadata, question).value().front().text; };
  CHECK(text().starts_with("<|begin|><|start_header_id|>"));
  metadata.set("tokenizer.ggml.pre", metadata_string("llama-bpe"));
  CHECK(text().starts_with("<|start_header_id|>"));
}

TEST_CASE("a conversation is rendered with the prompt of the answer") {
  if (!has_jinja()) return;
  const Metadata chat = model(kTurnsWithTools, {"<|im_start|>", "<|im_end|>"});
  const RenderedTemplate made = rendered(chat);
  CHECK(made.error.empty());
  CHECK(made.warnings.empty());
  CHECK(made.generation_prompt == "<|im_start|>assistant\n");
  CHECK(made.text.ends_with("<|im_start|>user\nAnd tomorrow?<|im_end|>\n<|im_start|>assistant\n"));
  CHECK(made.text.find("\"name\": \"get_weather\", \"arguments\": {\"city\": \"Oslo\"}") != std::string::npos);
  RenderOptions options;
  options.conversation = Conversation{boost::json::parse(R"([{"role": "user", "content": "Grüße"}])").as_array(), {}};
  CHECK(rendered(chat, options).text == "<|im_start|>user\nGrüße<|im_end|>\n<|im_start|>assistant\n");
}

TEST_CASE("what surprises users of a template is found") {
  if (!has_jinja()) return;
  const std::string tools = "tokenizer.chat_template: it ignores tools and their calls\n";
  CHECK(warnings(model(kTurns, {"<|im_start|>", "<|im_end|>"})) == tools);
  CHECK(warnings(model(kTurns, {"<s>", "</s>"})) ==
        tools + "tokenizer.chat_template: the vocabulary has no token '<|im_start|>', '<|im_end|>'\n");
  CHECK(warnings(
            model(kHeaders, {"<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>", "<|end_header_id|>"}, true)) ==
        tools +
            "tokenizer.chat_template: it begins with '<|begin_of_text|>', which tokenizer.ggml.add_bos_token adds as "
            "well\n");
  CHECK(warnings(model(kNoSystem, {"<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"})) ==
        "tokenizer.chat_template: it fails for a system message: System role not supported\n" + tools);
  CHECK(warnings(model(kInstructions, {"<s>", "</s>"})).empty());
  CHECK(
      warnings(model("{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ date }}", {"<s>", "</s>"})) ==
      tools +
          "tokenizer.chat_template: add_generation_prompt adds nothing, but answers begin with '<assistant>'\n"
          "tokenizer.chat_template: it uses what is not defined: date\n");
}

TEST_CASE("a model without tools still shows what it can, and each template is rendered") {
  if (!has_jinja()) return;
  Metadata two = model(kNoSystem, {"<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"});
  two.set("tokenizer.chat_template.tool_use", metadata_string("{{ messages"));
  const auto all = render_templates("model.gguf", two, {});
  REQUIRE(all);
  REQUIRE(all.value().size() == 2);
  CHECK(all.value()[0].text ==
        "<bos><start_of_turn>user\nWhat is the weather in Oslo?<end_of_turn>\n<start_of_turn>model\n");
  CHECK(all.value()[1].name == "tokenizer.chat_template.tool_use");
  CHECK(all.value()[1].error.find("unexpected end of template") == 0);
  CHECK(all.value()[1].warnings.empty());
  CHECK(render_templates("model.gguf", Metadata(), {}).error().code == ExitCode::kBadInput);
}

TEST_CASE("a hostile template ends with an error") {
  if (!has_jinja()) return;
  const std::vector<std::string> tokens{"<s>", "</s>"};
  const auto error = [&](const char* text) { return rendered(model(text, tokens)).error; };
  CHECK(error("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}") ==
        "it takes longer than 5 s");
  CHECK(error("{% for a in range(99999) %}0123456789{% endfor %}") == "it writes more than 100000 characters");
  CHECK(error("{{ 'x' * 10000000000 }}") == "it needs more than 512 MiB of memory");
  CHECK(error("{{ ''.__class__.__mro__ }}") == "access to attribute '__class__' of 'str' object is unsafe.");
  CHECK(error("{{ cycler.__init__.__globals__ }}") == "access to attribute '__init__' of 'type' object is unsafe.");
  CHECK(error("{% include '/etc/passwd' %}") == "no loader for this environment specified");
  CHECK(error("{{ messages.append(1) }}") == "access to attribute 'append' of 'list' object is unsafe.");
  CHECK(error("{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}") == "maximum recursion depth exceeded");
  CHECK(error("{{ 9 ** (9 ** 9) }}") == "it takes longer than 5 s");
  CHECK(error("{{ messages[0].content | wordwrap(10) }}").empty());
}

TEST_CASE("a template whose texts are long together fails only for the last ones") {
  if (!has_jinja()) return;
  const Metadata emoji = model("{% for a in range(99990) %}\xF0\x9F\x98\x80{% endfor %}", {"<s>", "</s>"});
  const RenderedTemplate made = rendered(emoji);
  CHECK(made.text.size() == 4 * 99990);
  REQUIRE(!made.warnings.empty());
  CHECK(made.warnings.back().find("it writes too much for the conversations that are tried") != std::string::npos);
}

TEST_CASE("templates and tokens that are not UTF-8 end, and characters that UTF-8 does not have are replaced") {
  if (!has_jinja()) return;
  const std::string bytes(70'000, '\x80');
  CHECK(rendered(model(bytes.c_str(), {"<s>", "</s>"})).error == "it is not UTF-8");
  CHECK(rendered(model("gr\xFC\xDF", {"<s>", "</s>"})).error == "it is not UTF-8");
  CHECK(rendered(model("a", {bytes, "</s>"})).text == "a");
  CHECK(rendered(model("a{{ '\\ud800' }}", {"<s>", "</s>"})).text == "a?");
}

TEST_CASE("a template that fails only for several turns says so") {
  if (!has_jinja()) return;
  const RenderedTemplate made = rendered(
      model("{% if messages | length > 4 %}{{ raise_exception('too long') }}{% endif %}{{ messages[0].content }}"
            "{{ tools | tojson }}",
            {"<s>", "</s>"}));
  CHECK(made.text == "What is the weather in Oslo?null");
  REQUIRE(!made.warnings.empty());
  CHECK(made.warnings.back() ==
        "tokenizer.chat_template: it fails for a conversation of several turns: too long; only its first question is "
        "shown");
}

TEST_CASE("a conversation is a list of messages") {
  const TempDir folder;
  const auto read = [&](const std::string& text) {
    write_text(folder.file("chat.json"), text);
    return read_conversation(folder.file("chat.json"));
  };
  CHECK(read(R"([{"role": "user", "content": "x"}])").value().messages.size() == 1);
  CHECK(read(R"({"messages": [{"role": "user"}], "tools": [{}]})").value().tools.size() == 1);
  CHECK(read(R"({"tools": []})").error().what == "\"messages\" is missing");
  CHECK(read("[]").error().what == "the conversation is not a list of messages");
  CHECK(read(R"([{"content": "x"}])").error().what == "message 1 has no role");
  CHECK(read(R"({"messages": [{"role": "user"}], "tools": 7})").error().code == ExitCode::kBadInput);
}
