// Reads the words of `ggufmill quantize`.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

#include "pipeline/config/matrix.h"
#include "pipeline/core/text.h"
#include "pipeline/core/type_family.h"
#include "pipeline/io/io.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "pipeline/llama_cpp/quantize_options.h"
#include "stages/quantize/recipe.h"
#include "stages/quantize/recipe_list.h"

namespace ggufmill {
namespace {

constexpr int kMaxThreads = 1024;  // limits.threads
constexpr const char* kQuantizeUsage = "usage: ggufmill quantize [options] INPUT [OUTPUT] TYPE[,TYPE...] [THREADS]";

struct RecipeName {
  std::string recipe;
  std::string shown;  // as shown in default output names
};

std::string upper(std::string word) {
  for (char& c : word) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return word;
}

// Returns the built-in recipe that a word names, or none. As in the reference, a number is shown as the alias if there
// is one. Only recipes whose text contains the word are parsed, because parsing all of them takes longer than
// quantizing a small model.
std::optional<RecipeName> recipe_of(const std::string& word) {
  const auto number = whole_number<std::uint32_t>(word);
  const std::string wanted = upper(number ? std::to_string(*number) : word);
  for (const BuiltInRecipe& built_in : built_in_recipes()) {
    const std::string name(built_in.name);
    const bool is_name = upper(name) == upper(word);
    if (!is_name && upper(std::string(built_in.text)).find(wanted) == std::string::npos) continue;
    const Recipe& heading = heading_of(built_in);
    if (heading.partial) continue;
    if (is_name) return RecipeName{name, name};
    for (const std::string& alias : heading.aliases)
      if (upper(alias) == upper(word)) return RecipeName{name, alias};
    if (number && heading.file_type == number)
      return RecipeName{name, heading.aliases.empty() ? name : heading.aliases.front()};
  }
  return {};
}

bool names_recipe_file(const std::string& word) { return word.ends_with(".yaml") || names_recipe_list(word); }

// Returns the recipe whose file a word names, or none. Other paths are outputs.
std::optional<RecipeName> recipe_file(const std::string& word) {
  if (!names_recipe_file(word) || !is_file(word)) return {};
  return RecipeName{word, fs::path(word).stem()};
}

// The number at the start of a word, parsed like std::stoi as in the reference, and the text after it.
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
  if (!threads)
    return usage_error(fmt::format("{} is not a number of threads", quoted_name(word)),
                       fmt::format("several types are one argument, as in Q4_K_M,Q8_0. {}", kQuantizeUsage));
  if (!threads->rest.empty())
    warnings.push_back(fmt::format("{} is read as {} threads", quoted_name(word), threads->number));
  if (threads->number < 0)
    warnings.push_back(fmt::format("{} threads: using as many as the machine has", threads->number));
  else if (threads->number > kMaxThreads)
    warnings.push_back(fmt::format("{} threads are too many: using {}", threads->number, kMaxThreads));
  if (threads->number > 0) options.threads = static_cast<unsigned>(std::min(threads->number, kMaxThreads));
  return ok();
}

Error no_type(const std::string& word) {
  if (names_recipe_file(word)) return usage_error(fmt::format("the recipe file {} does not exist", quoted_name(word)));
  const Types types;
  if (const TypeInfo* type = types.find(word))
    return usage_error(fmt::format("{} is a type, but TYPE names a recipe", type->name),
                       fmt::format("write a pipeline file with `quantize: {}`", type->name));
  if (const auto member = family_member(word); member && !member->why.empty()) return unknown_type(word, types);
  std::string help = RecipeCatalog().hint(word);
  if (const auto number = leading_number(word); number && !number->rest.empty())
    if (const std::string digits = std::to_string(number->number); recipe_of(digits))
      help = fmt::format("did you mean '{}'? `ggufmill recipe list` lists them", digits);
  return usage_error(fmt::format("unknown quantization type {}", quoted_name(word)), help);
}

using RecipeNames = std::vector<RecipeName>;

std::vector<std::string> parts_of(const std::string& word) {
  std::vector<std::string> parts;
  std::istringstream in(word);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  if (word.empty() || word.ends_with(',')) parts.emplace_back();
  return parts;
}

bool names_recipes(const std::string& word) {
  return std::ranges::all_of(parts_of(word),
                             [](const std::string& part) { return recipe_of(part) || recipe_file(part); });
}

// Parses Q4_K_M, or Q4_K_M,Q6_K: returns all recipes of the list, or the error of the first unknown name.
Result<RecipeNames> recipes_of(const std::string& word) {
  RecipeNames recipes;
  for (const std::string& part : parts_of(word)) {
    auto recipe = recipe_of(part);
    if (!recipe) recipe = recipe_file(part);
    if (!recipe) return no_type(part);
    for (const RecipeName& before : recipes)
      if (before.recipe == recipe->recipe)
        return usage_error(fmt::format("{} names the type {} twice", quoted_name(word), recipe->recipe),
                           "name each type once");
    recipes.push_back(*recipe);
  }
  return recipes;
}

// True if an unknown word was probably meant as a type or a list of types, rather than as the name of an output.
bool is_near_a_type(const std::string& word) {
  if (word.find_first_of("./") != std::string::npos) return false;
  const auto parts = parts_of(word);
  if (parts.size() > 1) return std::ranges::any_of(parts, [](const auto& part) { return recipe_of(part).has_value(); });
  std::string letters;
  for (const char c : upper(word))
    if (c != '_' && c != '-') letters += c;
  return std::ranges::any_of(built_in_recipes(), [&](const BuiltInRecipe& recipe) {
    std::string name(recipe.name);
    std::erase(name, '_');
    return upper(name) == letters;
  });
}

bool names_folder(const std::string& path) {
  std::error_code none;
  return (!path.empty() && is_separator(path.back())) || fs::is_directory(path, none);
}

// Returns the folder of the input file or the checkpoint's folder; the current folder if the input is on a server.
fs::path folder_for_outputs(const std::string& input) {
  if (is_address(input)) return {};
  return names_folder(input) ? fs::path(input) : fs::path(input).parent_path();
}

Result<std::vector<QuantizedOutput>> outputs_of(const std::string& input, const std::string& output,
                                                const RecipeNames& recipes) {
  constexpr std::string_view kRecipe = "{recipe}";
  const bool is_folder = names_folder(output);
  if (!output.empty() && !is_folder) {
    if (recipes.size() > 1 && output.find(kRecipe) == std::string::npos)
      return usage_error(
          fmt::format("{} is a single name for {} outputs", quoted_name(output), recipes.size()),
          fmt::format("end it with / if it is a folder ({}/), put {{recipe}} in the name, or omit OUTPUT to "
                      "name the outputs MODEL-TYPE.gguf",
                      output));
    std::vector<QuantizedOutput> outputs;
    for (const RecipeName& recipe : recipes) outputs.push_back({output, recipe.recipe});
    return outputs;
  }
  const bool as_reference =
      output.empty() && recipes.size() == 1 && !is_address(input) && !names_folder(input) && !is_diffusion_file(input);
  const std::string name = as_reference ? "ggml-model" : source_name(input);
  const fs::path folder = is_folder ? fs::path(output) : folder_for_outputs(input);
  std::vector<QuantizedOutput> outputs;
  for (const RecipeName& recipe : recipes)
    outputs.push_back({folder / fmt::format("{}-{}.gguf", name, recipe.shown), recipe.recipe});
  return outputs;
}

}  // namespace

bool is_diffusion_file(const std::string& input) { return input.ends_with(".safetensors") && !is_folder(input); }

std::string recipe_of_word(const std::string& word) {
  const auto recipe = whole_number<std::uint32_t>(word) ? std::nullopt : recipe_of(word);
  return recipe ? recipe->recipe : std::string();
}

Result<QuantizeWords> arrange_words(const std::vector<std::string>& words) {
  if (words.size() < 2) return usage_error("an input and a type are required", kQuantizeUsage);
  QuantizeWords arranged{words[0]};
  std::size_t at = 1;
  if (words.size() > 2 && !names_recipes(words[at]) && !is_near_a_type(words[at])) arranged.output = words[at++];
  arranged.type = words[at++];
  if (at < words.size()) arranged.threads = words[at++];
  if (at == words.size()) return arranged;
  return usage_error(fmt::format("unexpected argument {}", quoted_name(words[at])), kQuantizeUsage);
}

Status read_words(const QuantizeWords& words, QuantizeOptions& options, std::vector<std::string>& warnings) {
  options.input = words.input;
  BOOST_OUTCOME_TRY(const RecipeNames recipes, recipes_of(words.type));
  BOOST_OUTCOME_TRY(options.outputs, outputs_of(options.input, words.output, recipes));
  if (words.threads.empty()) return ok();
  const Status threads = read_threads(words.threads, options, warnings);
  if (threads) return threads;
  Error error = threads.error();
  if (words.output.empty() && words.threads.find('.') != std::string::npos)
    error.help =
        fmt::format("OUTPUT comes before TYPE: `ggufmill quantize {} {} {}`", words.input, words.threads, words.type);
  return error;
}

Result<std::vector<std::string>> read_tensor_type_file(const std::string& path) {
  constexpr std::uint64_t kMaxBytes = 16 << 20;
  BOOST_OUTCOME_TRY(const auto file, InputFile::open(path));
  if (file->bytes() > kMaxBytes) return input_error(path, "has more than 16 MiB of PATTERN=TYPE entries");
  std::string text(static_cast<std::size_t>(file->bytes()), '\0');
  BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(text))));
  std::vector<std::string> words;
  std::istringstream in(text);
  in.exceptions(std::ios::badbit);  // rethrows std::bad_alloc
  for (std::string word; in >> word;) words.push_back(std::move(word));
  return words;
}

}  // namespace ggufmill
