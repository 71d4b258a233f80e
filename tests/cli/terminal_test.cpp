// Checks the output for terminals and for programs: no input can control the terminal, JSON output is valid, and
// neither takes much memory, regardless of what the files contain.

#include <algorithm>
#include <boost/json/parse.hpp>
#include <sstream>

#include "pipeline/core/text.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

const std::string kProgram = GGUFMILL_BUILD_DIR "/bin/ggufmill";

// Colors, a title, CSI as a single C1 character, right-to-left text, a newline, and an incomplete character.
const std::string kHostile =
    "x\x1b[31m\x1b]0;t\x07\xc2\x9b"
    "1m\xe2\x80\xaeyz\n";
const std::string kHostileBytes = kHostile + "\xff\xe2\x82";

ProcessResult run(std::vector<std::string> words, const TempDir& folder) {
  words.insert(words.begin(), kProgram);
  return run_process(words, folder.path());
}

// Writes a model with such names under such a path, and a pipeline file that reads it and writes to such a path.
void write_inputs(const TempDir& folder) {
  GgufBuilder model;
  model.metadata.push_back({"general.architecture", metadata_string(kHostileBytes)});
  model.metadata.push_back(
      {"key." + kHostile, metadata_array(MetadataType::kString, {metadata_string(kHostileBytes)})});
  model.add_tensor("blk.0." + kHostile, {32, 2}).add_tensor("blk.1.ffn_down.weight", {32, 2});
  model.write(folder.file(kHostileBytes + ".gguf"));
  model.write(folder.file("model.gguf"));
  const std::string path = "out\\x1b[31m\\u202e\\u009b\\n.gguf";
  write_text(folder.file("job.yaml"),
             "version: 1\nsource: {gguf: model.gguf}\nstages: [{metadata: {set: {\"k\\e[1m\": v}}}]\n"
             "outputs:\n  - gguf: \"" +
                 path +
                 "\"\n    quantize: {tensors: [{match: blk.1, type: Q8_0}]}\n"
                 "  - gguf: \"b-" +
                 path + "\"\n");
}

const std::vector<std::vector<std::string>> kCommands = {
    {"inspect", kHostileBytes + ".gguf"},
    {"inspect", kHostileBytes + ".guf"},
    {"inspect", "model.gguf"},
    {"check", "job.yaml"},
    {"plan", "job.yaml"},
    {"run", "job.yaml", "--set", "outputs.0.gguf=" + kHostile},
    {"run", "job.yaml"},
    {"check", "job.yaml"},
    {"compare", "model.gguf", kHostileBytes + ".gguf"},
    {"quantize", kHostileBytes + ".gguf", kHostile, "q8_0"},
    {"kernels", "--kernel-dir", GGUFMILL_TEST_MODULES "/not_elf", "--kernel-dir", kHostileBytes},
    {kHostileBytes},
    {"plan", "--" + kHostileBytes},
};

bool is_json(const std::string& line) {
  boost::json::error_code error;
  boost::json::parse(line, error);
  return !error;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

}  // namespace

TEST_CASE("no name, key or path steers the terminal") {
  const TempDir folder;
  write_inputs(folder);
  for (const auto& command : kCommands) {
    const ProcessResult result = run(command, folder);
    CAPTURE(printable(command[0]), result.exit_code, result.out, result.err);
    CHECK(printable(result.out, "\n") == result.out);
    CHECK(printable(result.err, "\n") == result.err);
    CHECK(!(result.out + result.err).empty());
  }
}

TEST_CASE("what is said as JSON is JSON, and printable") {
  const TempDir folder;
  write_inputs(folder);
  for (std::vector<std::string> command : kCommands) {
    for (const char* verb : {"inspect", "plan", "kernels", "compare"})
      if (command[0] == verb) command.push_back("--json");
    command.insert(command.end(), {"--log", "json"});
    const ProcessResult result = run(command, folder);
    CAPTURE(printable(command[0]), result.exit_code, result.out, result.err);
    CHECK(printable(result.out + result.err, "\n") == result.out + result.err);
    if (result.exit_code == 0) CHECK((result.out.empty() || is_json(result.out)));
    std::istringstream lines(result.err);
    for (std::string line; std::getline(lines, line);) CHECK((is_json(line) || command[0] == kHostileBytes));
  }
}

TEST_CASE("bytes that are not UTF-8 are escaped in JSON, the others stay the text that they are") {
  const TempDir folder;
  GgufBuilder model;
  model.metadata.push_back({"text", metadata_string("\x1b\xc2\x9b\xff\\")});
  model.write(folder.file("model.gguf"));
  const ProcessResult result = run({"inspect", "model.gguf", "--json"}, folder);
  CHECK(result.out.find(R"("value":"\u001b\u009b\\xff\\")") != std::string::npos);
}

// Must run before the next test, whose output takes memory in this process: a program's peak includes the memory that
// its parent had when it was started.
TEST_CASE("YAML that is made to cost memory is refused before it does") {
  if (kSanitized) GGUFMILL_SKIP("a sanitizer takes memory of its own");
  const TempDir folder;
  for (const char* part : {"[", "{", "[a,", "- ", "? ", "&a ", "\"\"", "a: [", "{a: ", "'a',", "[\n", ","}) {
    std::string text = "[";
    while (text.size() + 8 < 1 << 20) text += part;
    write_text(folder.file("job.yaml"), text);
    const ProcessResult result = run({"check", "job.yaml"}, folder);
    CAPTURE(part, result.err.substr(0, 1000));
    CHECK(result.exit_code == 2);
    CHECK(result.peak_memory_kib < 64 << 10);
    CHECK(result.err.size() < 10'000);
  }
}

TEST_CASE("a long array is shown as JSON in little memory") {
  const TempDir folder;
  GgufBuilder model;
  std::string bytes = GgufBytes().u32(0).u64(10'000'000).bytes() + std::string(10'000'000, '\x07');
  model.metadata.push_back({"numbers", {MetadataType::kArray, std::move(bytes)}});
  model.metadata.push_back(
      {"rows",
       metadata_array(MetadataType::kArray, std::vector<MetadataValue>(3, metadata_array(MetadataType::kUint8, {})))});
  model.write(folder.file("model.gguf"));
  const ProcessResult result = run({"inspect", "model.gguf", "--json"}, folder);
  REQUIRE(result.exit_code == 0);
  CHECK(result.out.size() > 20'000'000);
  CHECK(std::count(result.out.begin(), result.out.end(), '7') >= 10'000'000);
  CHECK(result.out.find(R"({"key":"rows","type":"array","value":[[],[],[]]})") != std::string::npos);
  if (kSanitized) GGUFMILL_SKIP("a sanitizer takes memory of its own");
  CHECK(result.peak_memory_kib < 64 << 10);
}

TEST_CASE("colours are for a terminal alone, and not where NO_COLOR is set") {
  const TempDir folder;
  // `script` runs a command on a new terminal.
  const auto on_terminal = [&](const std::string& settings) {
    return run_process(
               {"/usr/bin/env", "script", "-qec", settings + " " + kProgram + " check nothing.yaml", "/dev/null"},
               folder.path(), {"TERM=xterm"})
        .out;
  };
  if (run_process({"/usr/bin/env", "script", "-qec", "true", "/dev/null"}).exit_code != 0)
    GGUFMILL_SKIP("no program `script` (Debian: bsdutils), or no terminals: a container without /dev/pts, say");
  CHECK(on_terminal("").find("\x1b[1;31merror:\x1b[0m cannot") != std::string::npos);
  CHECK(on_terminal("NO_COLOR=1").find('\x1b') == std::string::npos);
  CHECK(on_terminal("TERM=dumb").find('\x1b') == std::string::npos);
  CHECK(run({"check", "nothing.yaml"}, folder).err.find('\x1b') == std::string::npos);
}
