// X_seeds FOLDER DICTIONARY: writes the seeds of a fuzzer as files, and their words as a dictionary for the fuzzer.
// GGUFMILL_SEEDS names the function that returns the seeds.

#include <cctype>
#include <set>

#include "pipeline/io/platform/filesystem.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/files.h"

namespace {

// Adds names, keys and numbers: the text between spaces and most punctuation.
void add_words(const std::string& seed, std::set<std::string>& words) {
  std::string word;
  for (const char c : seed + ' ') {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-') {
      word += c;
    } else {
      if (word.size() > 1 && word.size() < 40) words.insert(word);
      word.clear();
    }
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  ggufmill::fs::create_directories(arguments[1]);
  std::size_t number = 0;
  std::set<std::string> words;
  for (const std::string& seed : ggufmill::GGUFMILL_SEEDS()) {
    ggufmill::write_text(std::string(arguments[1]) + "/seed-" + std::to_string(number++), seed);
    add_words(seed, words);
  }
  std::string dictionary;
  for (const std::string& word : words) dictionary += "\"" + word + "\"\n";
  ggufmill::write_text(arguments[2], dictionary);
}
