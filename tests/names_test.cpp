// Checks names in the sources: that no model is named where maps decide, and the words for bounds.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.h"

namespace ggufmill {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream text(file);
  return {std::istreambuf_iterator<char>(text), {}};
}

bool is_word(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9') ||
         letter == '_';
}

// The identifiers and the contents of the string literals of C++. Comments and lines of the preprocessor are skipped.
struct Words {
  std::vector<std::string> identifiers, literals;
};

class Reader {
 public:
  explicit Reader(std::string_view code) : code_(code) {}

  Words read() {
    while (at_ < code_.size()) take();
    return std::move(words_);
  }

 private:
  bool is_at(std::string_view text) const { return code_.substr(at_).starts_with(text); }
  void skip_to(std::string_view end) {
    const std::size_t found = code_.find(end, at_);
    at_ = found == code_.npos ? code_.size() : found + end.size();
  }

  void take() {
    if (is_at("//") || (is_at("#") && (at_ == 0 || code_[at_ - 1] == '\n'))) return skip_to("\n");
    if (is_at("/*")) return skip_to("*/");
    if (is_at("R\"")) return take_raw();
    if (is_at("'")) return take_quoted('\'');
    if (is_at("\"")) return take_quoted('"');
    if (!is_word(code_[at_])) return void(++at_);
    const std::size_t begin = at_;
    while (at_ < code_.size() && (is_word(code_[at_]) || (is_digit(code_[begin]) && code_[at_] == '\''))) ++at_;
    words_.identifiers.emplace_back(code_.substr(begin, at_ - begin));
  }

  static bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

  void take_raw() {
    const std::size_t open = code_.find('(', at_);
    const std::string end = ")" + std::string(code_.substr(at_ + 2, open - at_ - 2)) + "\"";
    at_ = open + 1;
    const std::size_t begin = at_;
    skip_to(end);
    words_.literals.emplace_back(code_.substr(begin, at_ - end.size() - begin));
  }

  void take_quoted(char quote) {
    const std::size_t begin = ++at_;
    while (at_ < code_.size() && code_[at_] != quote) at_ += code_[at_] == '\\' ? 2 : 1;
    if (quote == '"') words_.literals.emplace_back(code_.substr(begin, at_ - begin));
    ++at_;
  }

  std::string_view code_;
  std::size_t at_ = 0;
  Words words_;
};

bool is_test(std::string_view file) {
  return file.find("_test.") != file.npos || file.find("/test_") != file.npos || file.starts_with("tests/");
}

std::vector<fs::path> sources_in(const std::vector<std::string_view>& folders) {
  std::vector<fs::path> files;
  for (const std::string_view top : folders)
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
      const fs::path& path = entry.path();
      if ((path.extension() == ".h" || path.extension() == ".cpp") && !is_test(path.generic_string()))
        files.push_back(path);
    }
  std::ranges::sort(files);
  return files;
}

// ---- models ----

// The names of all maps, and of the classes that they serve: what can decide how a checkpoint is converted.
std::set<std::string, std::less<>> model_names() {
  std::set<std::string, std::less<>> names;
  for (const fs::directory_entry& entry : fs::directory_iterator("configs/architectures")) {
    const std::string map = text_of(entry.path());
    const std::size_t serves = map.find("\nserves:");
    if (entry.path().extension() != ".yaml" || serves == map.npos) continue;
    names.insert(entry.path().stem().string());
    std::string name;
    for (const char letter : map.substr(serves, map.find(']', serves) + 1 - serves)) {
      if (is_word(letter)) {
        name += letter;
      } else {
        if (!name.empty() && name[0] >= 'A' && name[0] <= 'Z') names.insert(name);
        name.clear();
      }
    }
  }
  return names;
}

// The names that the sources contain nevertheless.
struct KnownName {
  std::string_view file, name, why;
};
constexpr KnownName kKnownNames[] = {
    {"stages/huggingface/checkpoint/quantized_checkpoint.cpp", "bitnet", "a value of quant_method in config.json"},
    {"stages/huggingface/chosen_map.cpp", "dspark", "an option of the source"},
    {"stages/huggingface/huggingface_source.cpp", "dspark", "an option of the source"},
    {"stages/huggingface/map/architecture_fields.cpp", "dspark", "a key of maps"},
    {"stages/huggingface/map/architecture.cpp", "clip-gemma3", "an example in the reference"},
    {"stages/huggingface/first_map.cpp", "llama", "the map with which names are read before a map is chosen"},
    {"stages/huggingface/tokenizer/vocabulary.h", "bert", "a value of tokenizer.ggml.model"},
    {"stages/huggingface/tokenizer/vocabulary.h", "gpt2", "a value of tokenizer.ggml.model"},
    {"stages/huggingface/tokenizer/vocabulary.h", "llama", "a value of tokenizer.ggml.model"},
    {"stages/huggingface/tokenizer/vocabulary.h", "plamo2", "a value of tokenizer.ggml.model"},
    {"stages/huggingface/tokenizer/vocabulary.h", "t5", "a value of tokenizer.ggml.model"},
    {"stages/huggingface/tokenizer/tokenizer.cpp", "plamo", "a format of vocabularies, which maps choose"},
};

// ---- bounds ----

// A constant that is a bound begins with kMax or kMin.
bool is_misnamed_bound(std::string_view name) {
  for (const std::string_view word : {"kMost", "kLeast", "kGreatest"})
    if (name.starts_with(word) &&
        (name.size() == word.size() || (name[word.size()] >= 'A' && name[word.size()] <= 'Z')))
      return true;
  return false;
}

constexpr std::string_view kNoBounds[] = {"kMostLikely"};

}  // namespace

TEST_CASE("literals and identifiers are distinguished from comments") {
  const Words words =
      Reader("#include \"a.h\"\nint kOne = 1'000; // \"no\"\nf(\"b\\\"c\", R\"x(d\"e)x\", '\"'); /* g */ h").read();
  CHECK(words.literals == std::vector<std::string>{"b\\\"c", "d\"e"});
  CHECK(words.identifiers == std::vector<std::string>{"int", "kOne", "1'000", "f", "h"});
}

TEST_CASE("no model is named in the sources that convert checkpoints") {
  const auto names = model_names();
  REQUIRE(names.contains("llama"));
  REQUIRE(names.contains("LlamaForCausalLM"));
  std::vector<const KnownName*> seen;
  for (const fs::path& file : sources_in({"stages/huggingface"}))
    for (const std::string& literal : Reader(text_of(file)).read().literals) {
      if (!names.contains(literal)) continue;
      const auto known = std::ranges::find_if(kKnownNames, [&](const KnownName& each) {
        return each.file == file.generic_string() && each.name == literal;
      });
      if (known == std::end(kKnownNames))
        FAIL_CHECK(file.generic_string() + ": names the model '" + literal + "': its map can say what is special");
      else
        seen.push_back(&*known);
    }
  for (const KnownName& each : kKnownNames)
    if (std::ranges::count(seen, &each) == 0)
      FAIL_CHECK("remove the line of '" + std::string(each.name) + "' in " + std::string(each.file));
}

TEST_CASE("bounds are named max and min") {
  CHECK(is_misnamed_bound("kMostBytes"));
  CHECK(is_misnamed_bound("kLeast"));
  CHECK_FALSE(is_misnamed_bound("kMostlyF16"));
  for (const fs::path& file : sources_in({"pipeline", "stages", "plugins"}))
    for (const std::string& name : Reader(text_of(file)).read().identifiers)
      if (is_misnamed_bound(name) && std::ranges::count(kNoBounds, name) == 0)
        FAIL_CHECK(file.generic_string() + ": " + name + " is a bound: begin its name with kMax or kMin");
}

}  // namespace ggufmill
