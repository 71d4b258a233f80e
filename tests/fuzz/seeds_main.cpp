// X_seeds FOLDER: writes the seeds of a fuzzer as files. GGUFMILL_SEEDS gives them.

#include <filesystem>

#include "tests/fuzz/fuzz.h"
#include "tests/support/files.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::filesystem::create_directories(arguments[1]);
  std::size_t number = 0;
  for (const std::string& seed : ggufmill::GGUFMILL_SEEDS())
    ggufmill::write_text(std::string(arguments[1]) + "/seed-" + std::to_string(number++), seed);
}
