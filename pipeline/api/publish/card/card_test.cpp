#include "pipeline/api/publish/card/card.h"

#include <limits>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

std::string default_template() { return std::string(built_in_cards().front().text); }

// Returns the card, or the messages.
std::string rendered(const Card& card, std::string_view text) {
  const Result<std::string> result = render_card(card, text, "mine.md");
  if (result) return result.value();
  std::string messages = render(result.error());
  for (const Error& error : result.error().also) messages += render(error);
  return messages;
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

CardFile measured(const std::string& recipe, std::uint64_t bytes, double bits, CardQuality quality) {
  return {.shards = {{"Tiny-" + recipe + ".gguf", "sha-of-" + recipe}},
          .recipe = recipe,
          .bytes = bytes,
          .bits_per_weight = bits,
          .importance = true,
          .quality = quality};
}

CardFile projector() {
  return {.shards = {{"mmproj-Tiny-F16.gguf", "sha-of-mmproj"}},
          .recipe = "F16",
          .part = "projector",
          .bytes = 650 << 20,
          .bits_per_weight = 16.01};
}

Card tiny_card() {
  Card card;
  card.name = "Tiny-8B";
  card.base_model = "example/Tiny-8B";
  card.repository = "someone/Tiny-8B-GGUF";
  card.base.license = {"other"};
  card.base.license_name = "tiny-license";
  card.base.license_link = "LICENSE";
  card.base.language = {"en", "no"};
  card.base.pipeline_tag = "text-generation";
  card.base.tags = {"chat", "safetensors"};
  card.files = {
      {.shards = {{"BF16/Tiny-BF16-00001-of-00002.gguf", "sha-of-1"},
                  {"BF16/Tiny-BF16-00002-of-00002.gguf", "sha-of-2"}},
       .recipe = "BF16",
       .bytes = 16069395456,
       .bits_per_weight = 16.00,
       .is_base = true},
      measured("Q8_0", 8540775168, 8.50, {.divergence = 0.00136, .same_top = 0.9809}),
      projector(),
      measured("Q4_K_M", 4920738944, 4.90, {.divergence = 0.0282, .same_top = 0.9172}),
      measured("Q5_K_M", 5732992128, 5.71, {.divergence = 0.0108, .same_top = 0.9489}),
  };
  card.files[3].encoder = "search";
  card.contexts = {{8192, std::uint64_t{3} << 29}, {32768, std::uint64_t{9} << 29}};
  card.measurement = CardMeasurement{"wiki.test.raw", 564, 512};
  card.importance = CardImportance{"calibration.txt", 125, "imatrix.gguf"};
  card.job = "version: 1\nsource: {huggingface: hf://example/Tiny-8B}\n";
  card.version = "0.1.0";
  return card;
}

}  // namespace

TEST_CASE("the default card in full") {
  CHECK(rendered(tiny_card(), default_template()) == R"card(---
base_model: example/Tiny-8B
base_model_relation: quantized
license: other
license_name: tiny-license
license_link: 'https://huggingface.co/example/Tiny-8B/blob/main/LICENSE'
language:
- en
- 'no'
pipeline_tag: text-generation
tags:
- gguf
- imatrix
- chat
---

# Tiny-8B - GGUF

GGUF files of [example/Tiny-8B](https://huggingface.co/example/Tiny-8B) in several sizes, for [llama.cpp](https://github.com/ggml-org/llama.cpp) and the programs based on it.

## Files

| File | Type | Size | Bits per weight | KL divergence | Same top token | Note |
|---|---|--:|--:|--:|--:|---|
| [Tiny-Q4_K_M.gguf](Tiny-Q4_K_M.gguf) | Q4_K_M | 4.58 GiB | 4.90 | 0.0282 | 91.72 % | **good balance of size and quality**, encoder: search |
| [Tiny-Q5_K_M.gguf](Tiny-Q5_K_M.gguf) | Q5_K_M | 5.34 GiB | 5.71 | 0.0108 | 94.89 % | **high quality** |
| [Tiny-Q8_0.gguf](Tiny-Q8_0.gguf) | Q8_0 | 7.95 GiB | 8.50 | 0.00136 | 98.09 % | **hardly any loss** |
| [BF16/Tiny-BF16-00001-of-00002.gguf](BF16/Tiny-BF16-00001-of-00002.gguf) | BF16 | 14.97 GiB | 16.00 |  |  | the others are compared with it, 2 files |
| [mmproj-Tiny-F16.gguf](mmproj-Tiny-F16.gguf) | F16 | 650.00 MiB | 16.01 |  |  | for images or sound: load it with `--mmproj` |

Each file was compared with BF16/Tiny-BF16-00001-of-00002.gguf on wiki.test.raw (564 chunks of 512 tokens). The KL divergence is the mean difference of the two models' predictions in nats; lower is better. "Same top token" is how often both predict the same token as the most likely one. The notes name the smallest file whose mean divergence is at most 0.002 (hardly any loss), 0.02 (high quality) and 0.05 (good balance of size and quality).

Choose the largest file that fits into the memory of your GPU together with the context: llama.cpp needs about 1.50 GiB for 8192 tokens, 4.50 GiB for 32768. A larger one runs more slowly, as long as it fits into the memory of GPU and computer together.

<details>
<summary>SHA-256</summary>

```
sha-of-Q4_K_M  Tiny-Q4_K_M.gguf
sha-of-Q5_K_M  Tiny-Q5_K_M.gguf
sha-of-Q8_0  Tiny-Q8_0.gguf
sha-of-1  BF16/Tiny-BF16-00001-of-00002.gguf
sha-of-2  BF16/Tiny-BF16-00002-of-00002.gguf
sha-of-mmproj  mmproj-Tiny-F16.gguf
```

</details>

## How to use

```sh
llama-cli -hf someone/Tiny-8B-GGUF -hff Tiny-Q4_K_M.gguf   # llama.cpp
ollama run hf.co/someone/Tiny-8B-GGUF:Q4_K_M   # Ollama
lms get https://huggingface.co/someone/Tiny-8B-GGUF   # LM Studio
```

## How the files were made

The files were made with ggufmill 0.1.0.
They were quantized with an importance matrix, imatrix.gguf, computed from calibration.txt (125 chunks).

<details>
<summary>The job</summary>

```yaml
version: 1
source: {huggingface: hf://example/Tiny-8B}
```

</details>

For the capabilities, limits and terms of use of the model, see [example/Tiny-8B](https://huggingface.co/example/Tiny-8B).
)card");
}

TEST_CASE("the commands of a card fit the use of the model") {
  Card card = tiny_card();
  card.use = CardUse::kEmbedding;
  std::string text = rendered(card, default_template());
  CHECK(contains(text, "llama-embedding -hf someone/Tiny-8B-GGUF -hff Tiny-Q4_K_M.gguf -p \"a text\""));
  CHECK_FALSE(contains(text, "ollama"));
  CHECK_FALSE(contains(text, "llama-cli"));
  card.repository.clear();
  CHECK(contains(rendered(card, default_template()), "llama-embedding -m Tiny-Q4_K_M.gguf"));
  card = tiny_card();
  card.use = CardUse::kAdapter;
  text = rendered(card, default_template());
  CHECK(contains(text, "hf download someone/Tiny-8B-GGUF Tiny-Q4_K_M.gguf --local-dir .\n"));
  CHECK(contains(text, "llama-cli -m BASE.gguf --lora Tiny-Q4_K_M.gguf"));
  CHECK(contains(text, "base_model: example/Tiny-8B\nbase_model_relation: adapter\n"));
  CHECK(contains(text, "A LoRA adapter for [example/Tiny-8B]"));
  CHECK_FALSE(contains(text, "ollama"));
  CHECK_FALSE(contains(text, "Choose the largest file"));
}

TEST_CASE("without a name on the hub, a card has the base models of the checkpoint's own card") {
  Card card = tiny_card();
  card.base_model.clear();
  const auto front_matter = [&] {
    const std::string text = rendered(card, default_template());
    return text.substr(0, text.find("license:"));
  };
  CHECK(front_matter() == "---\n");
  card.base.base_model = {"/home/me/Tiny", "~/Tiny", "../Tiny", "Tiny", "a/b/c"};
  CHECK(front_matter() == "---\n");
  card.base.base_model.push_back("example/Tiny-base");
  CHECK(front_matter() == "---\nbase_model: example/Tiny-base\nbase_model_relation: finetune\n");
  card.base.base_model_relation = "quantized";
  CHECK(front_matter() == "---\nbase_model: example/Tiny-base\nbase_model_relation: quantized\n");
  card.base.base_model_relation.clear();
  card.base.base_model.push_back("example/Other");
  CHECK(front_matter() == "---\nbase_model:\n- example/Tiny-base\n- example/Other\nbase_model_relation: merge\n");
}

TEST_CASE("the default card of files that were not measured has no columns for quality") {
  Card card = tiny_card();
  for (CardFile& file : card.files) file.quality.reset();
  card.measurement.reset();
  const std::string text = rendered(card, default_template());
  CHECK(contains(text,
                 "| File | Type | Size | Bits per weight | Note |\n|---|---|--:|--:|---|\n"
                 "| [Tiny-Q4\\_") == false);
  CHECK(contains(text,
                 "| [Tiny-Q4_K_M.gguf](Tiny-Q4_K_M.gguf) | Q4_K_M | 4.58 GiB | 4.90 | **good balance of size and "
                 "quality**, encoder: search |\n"));
  CHECK_FALSE(contains(text, "divergence"));
}

TEST_CASE("the default card of a model that is not on the Hub names neither") {
  Card card = tiny_card();
  card.base_model.clear();
  card.repository.clear();
  const std::string text = rendered(card, default_template());
  CHECK(contains(text, "---\nlicense: other\nlicense_name: tiny-license\nlicense_link: LICENSE\n"));
  CHECK(contains(text, "GGUF files of Tiny-8B in several sizes"));
  CHECK(contains(text, "llama-cli -m Tiny-Q4_K_M.gguf --mmproj mmproj-Tiny-F16.gguf   # llama.cpp\n"));
  CHECK(contains(text, "lms import Tiny-Q4_K_M.gguf"));
  CHECK_FALSE(contains(text, "huggingface.co"));
}

TEST_CASE("the default card of nothing is a card") {
  const std::string text = rendered(Card(), default_template());
  CHECK(text.starts_with("---\ntags:\n- gguf\n---\n\n#  - GGUF\n"));
  CHECK_FALSE(contains(text, "\n\n\n"));
}

TEST_CASE("names from outside stay in their cell of the table") {
  Card card;
  card.files = {{.shards = {{"a|b\n| c `d` [e](f) <g>.gguf", ""}}, .recipe = "*x*|"}};
  CHECK(rendered(card, "{{#files}}| {{file}} | {{recipe}} |{{/files}}") ==
        "| a\\|b\\\\x0a\\| c \\`d\\` \\[e\\](f) \\<g\\>.gguf | \\*x\\*\\| |");
  CHECK(
      rendered(card, "{{#files}}{{{link}}}{{/files}}") ==
      "[a\\|b\\\\x0a\\| c \\`d\\` \\[e\\](f) \\<g\\>.gguf](a%7Cb%0A%7C%20c%20%60d%60%20%5Be%5D%28f%29%20%3Cg%3E.gguf)");
}

TEST_CASE("names from outside are single words of a command") {
  Card card;
  card.files = {{.shards = {{"my model; rm -rf $HOME 'x'.gguf", ""}}}};
  CHECK(rendered(card, "{{{example_file}}}") == R"('my model; rm -rf $HOME '\''x'\''.gguf')");
}

TEST_CASE("the front matter of the base model cannot break the card's") {
  Card card;
  card.base_model = "a/b\n---\nc: d";
  card.base.license = {"mit: {"};
  card.base.language = {"en\n- no", "'"};
  card.base.tags = {"a: b", "- c", "\xff"};
  CHECK(rendered(card, "{{{front_matter}}}") ==
        "base_model: \"a/b\\u000a---\\u000ac: d\"\n"
        "base_model_relation: quantized\n"
        "license: 'mit: {'\n"
        "language:\n- \"en\\u000a- no\"\n- ''''\n"
        "tags:\n- gguf\n- 'a: b'\n- '- c'\n- '\\xff'");
}

TEST_CASE("a job cannot end its code block") {
  Card card;
  card.job = "a: |\n  ```\n  ````\n  </details>\r\n";
  CHECK(rendered(card, "{{{job}}}") == "`````yaml\na: |\n  ```\n  ````\n  </details>\n`````");
}

TEST_CASE("a license is a list if the base model has several") {
  Card card;
  card.base.license = {"mit", "apache-2.0"};
  CHECK(contains(rendered(card, "{{{front_matter}}}"), "license:\n- mit\n- apache-2.0\n"));
}

TEST_CASE("the link of a license is kept if it is a URL") {
  Card card;
  card.base_model = "a/b";
  card.base.license_link = "https://example.org/license";
  CHECK(rendered(card, "{{{license_link}}}") == "https://example.org/license");
}

TEST_CASE("quantized_by is in the front matter if it is given") {
  Card card;
  card.quantized_by = "someone";
  CHECK(rendered(card, "{{{front_matter}}}") == "quantized_by: someone\ntags:\n- gguf");
}

TEST_CASE("numbers are shown with the digits that matter") {
  Card card;
  card.files = {{.quality = CardQuality{.divergence = 0.1,
                                        .divergence_99 = 123.4,
                                        .divergence_max = 1.23456e-5,
                                        .same_top = 0.99996,
                                        .perplexity = 6.2332}}};
  CHECK(
      rendered(card,
               "{{#files}}{{divergence}} {{divergence_99}} {{divergence_max}} {{same_top}} {{perplexity}}{{/files}}") ==
      "0.100 123 1.23e-05 100.00 % 6.23");
}

TEST_CASE("numbers that are not finite are not shown") {
  Card card;
  card.files = {{.quality = CardQuality{.divergence = std::numeric_limits<double>::quiet_NaN(),
                                        .divergence_max = std::numeric_limits<double>::infinity()}}};
  CHECK(rendered(card, "{{#files}}[{{divergence}}{{divergence_max}}]{{/files}}") == "[]");
}

TEST_CASE("Ollama's tag is the name of the file if the recipe is not in it, and missing for shards") {
  Card card;
  card.files = {{.shards = {{"mine.gguf", ""}}, .recipe = "Q4_K_M"}};
  CHECK(rendered(card, "{{{example_tag}}}") == "mine.gguf");
  card.files = {{.shards = {{"mine-q4_k_m.gguf", ""}}, .recipe = "Q4_K_M"}};
  CHECK(rendered(card, "{{{example_tag}}}") == "Q4_K_M");
  card.files.front().shards.push_back({"b.gguf", ""});
  CHECK(rendered(card, "[{{{example_tag}}}]") == "[]");
}

TEST_CASE("importance is noted if only some files have it") {
  Card card;
  card.files = {{.recipe = "A", .importance = true}, {.recipe = "B"}};
  CHECK(rendered(card, "{{#files}}{{recipe}}: {{{note}}};{{/files}}") == "A: with importance;B: ;");
}

TEST_CASE("the memory for contexts is left to the reader if it is not known") {
  Card card;
  card.files = {{.shards = {{"a.gguf", ""}}, .recipe = "A"}};
  CHECK(rendered(card, default_template()).find("with 1 to 2 GiB to spare for the context") != std::string::npos);
}

TEST_CASE("a template of one's own has its own text, and every placeholder works in it") {
  std::string text = "Grüße & <b>{{! remark }}\n";
  for (const CardPlaceholder& placeholder : card_placeholders())
    if (placeholder.section.empty() && placeholder.kind != CardPlaceholder::Kind::kList)
      text += "{{#" + placeholder.name + "}}" + placeholder.name + " {{/" + placeholder.name + "}}";
  CHECK(rendered(tiny_card(), text) ==
        "Grüße & <b>\nname base_model base_model_link is_text repository front_matter license license_name "
        "license_link language "
        "pipeline_tag has_sha256 quality quality_text quality_chunks quality_context base_file context_memory "
        "recommendation_rule "
        "has_importance importance_text importance_chunks importance_file example_file example_tag projector_file job "
        "version ");
}

TEST_CASE("lines that have only a tag of a section leave nothing") {
  Card card;
  card.name = "x";
  CHECK(
      rendered(card, "a\n{{#name}}\nb\n{{/name}}\n\n  {{^name}}\nc\n{{/name}}  \n{{!\nd\n}}\ne\n{{#name}}f{{/name}}") ==
      "a\nb\n\ne\nf");
  CHECK(rendered(card, "{{#job}}\r\na\r\n{{/job}}\r\nb\r\n") == "b\n");
}

TEST_CASE("a tag may have several lines") {
  Card card;
  card.name = "x";
  CHECK(rendered(card, "{{\n  name\n}} {{!\n}} {{{ name }}}{{&name}}") == "x  xx");
}

TEST_CASE("every text is a template or an error") {
  const std::string text =
      "# {{name}}\n{{#files}}\n{{{ link }}} {{#shards}}{{^sha256}}-{{/sha256}}{{/shards}}\n{{/files}}{{!x}}";
  const Card card = tiny_card();
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const std::string_view part : {"", "{", "}", "{{", "}}", "#", "/", "=", "\n", " ", ".", "!", "{{#", "\xff"}) {
      for (const std::size_t removed : {0, 1, 5}) {
        std::string changed = text;
        changed.replace(at, removed, part);
        rendered(card, changed);
        rendered(card, changed.substr(0, at));
      }
    }
  }
  SUCCEED();
}

TEST_CASE("values are not templates") {
  Card card;
  card.name = "{{version}}";
  card.version = "1";
  CHECK(rendered(card, "{{name}}") == "{{version}}");
}

TEST_CASE("an unknown name is an error with the names that exist") {
  const std::string text = rendered(tiny_card(), "# {{name}}\n{{#files}}{{siz}}{{/files}}\n{{licence}}\n");
  CHECK(contains(text, "mine.md:2:11: error: unknown name 'siz'\n"));
  CHECK(contains(text, "did you mean 'size'? known here: name, base_model,"));
  CHECK(contains(text, "mine.md:3:1: error: unknown name 'licence'\n"));
  CHECK(contains(text, "did you mean 'license'?"));
}

TEST_CASE("an unknown name is an error also in a section that does not appear") {
  CHECK(contains(rendered(Card(), "{{#job}}{{nome}}{{/job}}"), "mine.md:1:9: error: unknown name 'nome'\n"));
}

TEST_CASE("a name of a list's items is unknown elsewhere") {
  const std::string text = rendered(tiny_card(), "{{#files}}{{sha256}}{{/files}}");
  CHECK(contains(text, "unknown name 'sha256'\n"));
  CHECK(contains(text, "'sha256' is known inside {{#shards}}; known here: "));
}

TEST_CASE("a section that is not closed is an error") {
  CHECK(contains(rendered(Card(), "a\n{{#files}}\nb\n"), "mine.md:2:1: error: unclosed section 'files'\n"));
  CHECK(contains(rendered(Card(), "{{#files}}{{/name}}"), "mine.md:1:1: error: unclosed section 'files'\n"));
  CHECK(contains(rendered(Card(), "\n{{/files}}"), "mine.md:2:1: error: unopened section 'files'\n"));
}

TEST_CASE("a tag that is not closed is an error") {
  for (const std::string text : {"{{", "{{{", "{{name", "{{{name}}", "{{#", "{{ "}) {
    CAPTURE(text);
    CHECK(contains(rendered(Card(), text), "mine.md:1:1: error: unclosed tag\n"));
  }
}

TEST_CASE("parts of Mustache that cards do not have are errors") {
  CHECK(contains(rendered(Card(), "{{>name}}"), "error: a card's template cannot include others\n"));
  CHECK(contains(rendered(Card(), "{{=<% %>=}}"), "error: a card's template cannot change the delimiters {{ and }}\n"));
  CHECK(contains(rendered(Card(), "{{files}}"), "error: 'files' has no text\n"));
  CHECK(contains(rendered(Card(), "{{job}}"), "error: 'job' is Markdown or YAML itself\n"));
}

TEST_CASE("a template is limited in size and depth") {
  const auto nested = [](int depth) {
    std::string text = "x";
    for (int i = 0; i < depth; ++i) text = "{{^name}}" + text + "{{/name}}";
    return text;
  };
  CHECK(contains(rendered(Card(), std::string(2 << 20, 'a')), "more than 1 MiB"));
  std::string many;
  for (int i = 0; i < 1001; ++i) many += "{{#name}}{{/name}}";
  CHECK(contains(rendered(Card(), many), "more than 1000 sections"));
  CHECK(rendered(Card(), nested(16)) == "x");
  CHECK(contains(rendered(Card(), nested(17)), "mine.md:1:145: error: sections are nested more than 16 levels deep\n"));
  CHECK(contains(rendered(Card(), "a\xff"), "mine.md:1:2: error: byte 0xff is not UTF-8\n"));
}

TEST_CASE("a list that repeats itself for each of its items ends at the limit of a card") {
  Card card;
  card.files.resize(20, {.shards = {{"a", ""}}});
  std::string begin, end;
  for (int i = 0; i < 15; ++i) {
    begin += "{{#files}}";
    end += "{{/files}}";
  }
  const std::string_view message = "error: mine.md: the card would have more than 1.00 MiB";
  CHECK(contains(rendered(card, begin + "text" + end), message));
  CHECK(contains(rendered(card, begin + end), message));  // also if nothing is written
}

TEST_CASE("a list within itself is allowed within the limit") {
  Card card;
  card.files = {{.shards = {{"a", ""}}, .recipe = "A"}, {.shards = {{"b", ""}}, .recipe = "B"}};
  CHECK(rendered(card, "{{#files}}{{#files}}{{recipe}}{{/files}};{{/files}}") == "AB;AB;");
}

TEST_CASE("a long value that a template repeats ends at the limit of a card") {
  Card card;
  card.job = std::string(100'000, 'x');
  std::string text;
  for (int i = 0; i < 100; ++i) text += "{{{job}}}";
  CHECK(contains(rendered(card, text), "error: mine.md: the card would have more than 1.00 MiB"));
}

TEST_CASE("not every one of very many unknown names is reported") {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "{{a}}";
  const Result<std::string> result = render_card(Card(), text, "mine.md");
  REQUIRE_FALSE(result);
  CHECK(result.error().also.size() == 99);
}
