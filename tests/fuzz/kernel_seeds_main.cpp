// kernel_seeds FOLDER: writes the seeds as files for the fuzzer.

#include <filesystem>
#include <string_view>

#include "tests/fuzz/kernel_entry.h"
#include "tests/support/files.h"

int main(int count, char** arguments) {
  if (count != 2) return 2;
  std::filesystem::create_directories(arguments[1]);
  std::size_t number = 0;
  for (const auto& seed : ggufmill::KernelFuzz().seeds(1))
    ggufmill::write_text(std::string(arguments[1]) + "/seed-" + std::to_string(number++),
                         std::string_view(reinterpret_cast<const char*>(seed.data()), seed.size()));
}
