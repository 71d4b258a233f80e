// tokenizer_seeds FOLDER: writes the seeds as files for the fuzzers, into FOLDER/json and FOLDER/model.

#include <filesystem>

#include "tests/fuzz/tokenizer_entry.h"
#include "tests/support/files.h"

namespace {

void write_seeds(const std::filesystem::path& folder, const std::vector<std::string>& seeds) {
  std::filesystem::create_directories(folder);
  for (std::size_t i = 0; i < seeds.size(); ++i) ggufmill::write_text(folder / ("seed-" + std::to_string(i)), seeds[i]);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  write_seeds(std::filesystem::path(arguments[1]) / "json", ggufmill::tokenizer_json_seeds());
  write_seeds(std::filesystem::path(arguments[1]) / "model", ggufmill::tokenizer_model_seeds());
}
