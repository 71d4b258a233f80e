// The positional arguments of `ggufmill quantize`.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "pipeline/api/quantize_options.h"
#include "pipeline/core/text.h"
#include "pipeline/io/io.h"
#include "stages/quantize/recipe.h"

namespace ggufmill {
namespace {

constexpr int kMostThreads = 1024;  // limits.threads
constexpr const char* kQuantizeUsage = "usage: ggufmill quantize [options] INPUT [OUTPUT] TYPE [THREADS]";

struct RecipeName {
  std::string recipe;
  std::string shown;  // in default output names
};

std::string upper(std::string word) {
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

// The recipe of a word, or nothing. Numbers show the alias where there is one, as the reference does. Read are only
// those whose text has the word: all of them take longer than a small model.
std::optional<RecipeName> recipe_of(const std::string& word) {
  const RecipeShelf shelf;
  const auto number = whole_number<std::uint32_t>(word);
  const std::string wanted = upper(number ? std::to_string(*number) : word);
  for (const BuiltInRecipe& built_in : built_in_recipes()) {
    const std::string name(built_in.name);
    const bool is_name = upper(name) == upper(word);
    if (!is_name && upper(std::string(built_in.text)).find(wanted) == std::string::npos) continue;
    const auto recipe = shelf.find(name);
    if (!recipe || recipe.value().partial) continue;
    if (is_name) return RecipeName{name, name};
    const auto& aliases = recipe.value().aliases;
    for (const std::string& alias : aliases)
      if (upper(alias) == upper(word)) return RecipeName{name, alias};
    if (number && recipe.value().file_type == number) return RecipeName{name, aliases.empty() ? name : aliases.front()};
  }
  return {};
}

// The number that a word begins with, as the reference reads numbers (std::stoi), and what follows it.
struct LeadingNumber {
  int number = 0;
  std::string rest;
};
std::optional<LeadingNumber> leading_number(const std::string& word) {
  const std::size_t first = word.find_first_not_of(" \t");
  if (first == word.npos) return {};
  const char* begin = word.data() + first;
  const char* end = word.data() + word.size();
  if (*begin == '+') ++begin;
  LeadingNumber found;
  const auto [stop, error] = std::from_chars(begin, end, found.number);
  if (error != std::errc()) return {};
  found.rest.assign(stop, end);
  return found;
}

Status read_threads(const std::string& word, QuantizeOptions& options, std::vector<std::string>& warnings) {
  const auto threads = leading_number(word);
  if (!threads) return usage_error(fmt::format("{} is not a number of threads", quoted_name(word)), kQuantizeUsage);
  if (!threads->rest.empty())
    warnings.push_back(fmt::format("{} is read as {} threads", quoted_name(word), threads->number));
  if (threads->number < 0)
    warnings.push_back(fmt::format("{} threads: as many as the machine has", threads->number));
  else if (threads->number > kMostThreads)
    warnings.push_back(fmt::format("{} threads are too many: {} are used", threads->number, kMostThreads));
  if (threads->number > 0) options.threads = static_cast<unsigned>(std::min(threads->number, kMostThreads));
  return ok();
}

Error no_type(const std::string& word) {
  const RecipeShelf shelf;
  std::vector<std::string> names;
  for (const BuiltInRecipe& built_in : built_in_recipes()) {
    names.emplace_back(built_in.name);
    if (const auto recipe = shelf.find(names.back()))
      names.insert(names.end(), recipe.value().aliases.begin(), recipe.value().aliases.end());
  }
  std::string meant = did_you_mean(word, names);
  if (const auto number = leading_number(word); meant.empty() && number && recipe_of(std::to_string(number->number)))
    meant = std::to_string(number->number);
  return usage_error(fmt::format("unknown quantization type {}", quoted_name(word)),
                     meant.empty() ? "`ggufmill recipe list` lists them"
                                   : fmt::format("did you mean '{}'? `ggufmill recipe list` lists them", meant));
}

std::string default_output(const QuantizeOptions& options, const std::string& shown) {
  const std::size_t slash = options.input.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "" : options.input.substr(0, slash + 1);
  return folder + "ggml-model-" + shown + ".gguf";
}

}  // namespace

Status read_words(const std::vector<std::string>& words, QuantizeOptions& options, std::vector<std::string>& warnings) {
  if (words.size() < 2) return usage_error("an input and a type are needed", kQuantizeUsage);
  options.input = words[0];
  std::size_t at = 1;
  auto recipe = recipe_of(words[at]);
  if (!recipe) {
    options.output = words[at++];
    if (at == words.size()) return no_type(words[at - 1]);
    recipe = recipe_of(words[at]);
    if (!recipe) return no_type(words[at]);
  }
  options.recipe = recipe->recipe;
  if (options.output.empty()) options.output = default_output(options, recipe->shown);
  if (++at == words.size()) return ok();
  BOOST_OUTCOME_TRY(read_threads(words[at], options, warnings));
  while (++at < words.size())
    warnings.push_back(fmt::format("{} is one argument too many and is ignored", quoted_name(words[at])));
  return ok();
}

Result<std::vector<std::string>> read_tensor_type_file(const std::string& path) {
  constexpr std::uint64_t kMostBytes = 16 << 20;
  BOOST_OUTCOME_TRY(const auto file, InputFile::open(path));
  if (file->bytes() > kMostBytes) return input_error(path, "more than 16 MiB of PATTERN=TYPE entries");
  std::string text(static_cast<std::size_t>(file->bytes()), '\0');
  BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(text))));
  std::vector<std::string> words;
  std::istringstream in(text);
  in.exceptions(std::ios::badbit);  // lets std::bad_alloc through
  for (std::string word; in >> word;) words.push_back(std::move(word));
  return words;
}

}  // namespace ggufmill
