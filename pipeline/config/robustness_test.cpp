// Any text results in a Job or errors: never in a crash, a hang or an exception.

#include <random>

#include "pipeline/config/job.h"
#include "pipeline/config/test_registry.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

constexpr std::string_view kSeed = R"(version: 1
parameters: {MODEL: {doc: "in", default: llama.gguf}, OUT: {}}
source: {gguf: '${MODEL}'}
stages:
  - metadata: {set: {general.license: mit, a: [1, "x"]}, remove: [general.url]}
outputs:
  - gguf: out/Llama-{recipe}.gguf
    quantize: Q4_K
  - gguf: {path: "out/\u00fc.gguf", shard_size: 20G}
    quantize:
      type: Q3_K
      tensors:
        - {match: 'blk\.\d+\.ffn_down', type: Q5_K} # comment
      keep: |
        x
limits: {memory: 512MiB, threads: auto}
)";

// Parses a text and renders all errors; returns the length of the messages.
std::size_t try_text(std::string_view text, const JobOptions& options = {}) {
  static const Registry registry = testing::make_registry();
  Diagnostics errors;
  const bool bound = parse_job(text, "a.yaml", registry, options, errors).has_value();
  std::size_t bytes = 0;
  for (const Error& error : errors.errors()) bytes += render(error).size();
  CHECK(bound == errors.empty());
  CHECK(errors.errors().size() <= 3 * kMaxErrors);
  CHECK(bytes < 300000);
  return bytes;
}

}  // namespace

TEST_CASE("random bytes never crash the reader") {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    std::string text(random() % 200, '\0');
    for (char& c : text) c = static_cast<char>(random());
    try_text(text);
  }
}

TEST_CASE("random YAML characters never crash the reader") {
  constexpr std::string_view kAlphabet = "{}[]:,-?&*!|>'\"%@`#~ab1 \n\n  \t$\\<.=";
  std::mt19937 random(11);
  for (int round = 0; round < 6000; ++round) {
    std::string text(random() % 60, ' ');
    for (char& c : text) c = kAlphabet[random() % kAlphabet.size()];
    try_text(text);
  }
}

TEST_CASE("a damaged pipeline file never crashes the reader") {
  constexpr std::string_view kAlphabet = "{}[]:,-&*!|'\"#~a1 \n$\\\xc3";
  std::mt19937 random(13);
  for (int round = 0; round < 4000; ++round) {
    std::string text(kSeed);
    for (unsigned edits = random() % 4 + 1; edits > 0 && !text.empty(); --edits) {
      const std::size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = kAlphabet[random() % kAlphabet.size()];
          break;
        case 1:
          text.erase(at, random() % 20);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 40));
          break;
        default:
          text.resize(at);
          break;
      }
    }
    try_text(text);
  }
}

TEST_CASE("deep and wide texts never crash the reader") {
  for (const char* part : {"[",   "{",    "- ", "? ", "{a: ", "[a, ", "'",   "\"", "a: ", "!",     "&a ",
                           "|\n", "--- ", "\n", "a",  "-\n",  "${",   "$${", "a,", "\\",  "- a\n", "*a "}) {
    INFO(part);
    std::string text;
    while (text.size() < 200000) text += part;
    try_text(text);
    try_text("version: " + text);
    try_text("version: [" + text);
  }
}

TEST_CASE("many wrong keys and types are checked quickly") {
  std::string text = "version: 1\n";
  for (int i = 0; text.size() < 1000000; ++i) text += "sorce" + std::to_string(i) + ": 1\n";
  try_text(text);
}

TEST_CASE("any --set and --param text gives a job or errors") {
  constexpr std::string_view kAlphabet = "outputs.0gf=\"[]{}: limtsemory1\n\x1b";
  std::mt19937 random(17);
  for (int round = 0; round < 3000; ++round) {
    std::string text = random() % 2 ? "outputs.0." : "";
    for (unsigned left = random() % 30; left > 0; --left) text += kAlphabet[random() % kAlphabet.size()];
    try_text(kSeed, {{text}, {text, "OUT=" + text}});
  }
}
