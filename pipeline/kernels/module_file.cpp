#include "pipeline/kernels/module_file.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>

#include "pipeline/io/platform/program.h"

namespace ggufmill {
namespace {

bool read_string(const LibraryImage& image, std::uint64_t address, std::string& to) {
  to.clear();
  for (char c = 0; to.size() <= kMaxWordLength; to.push_back(c)) {
    if (!image.read(address + to.size(), &c, 1)) return false;
    if (c == '\0') return true;
  }
  return false;
}

// Reads the strings of the module at address `at` of the image.
bool read_words(const LibraryImage& image, std::uint64_t at, ModuleWords& words) {
  auto word = [&](std::size_t field, std::string& to) {
    const std::uint64_t address = image.read_pointer(at + field);
    return address != 0 && read_string(image, address, to);
  };
  return word(offsetof(ggufmill_module, name), words.name) && word(offsetof(ggufmill_module, version), words.version) &&
         word(offsetof(ggufmill_module, isa), words.isa) &&
         word(offsetof(ggufmill_module, cpu_features), words.cpu_features);
}

}  // namespace

std::string read_module_file(const std::string& path, ModuleFile& file) {
  std::string reason;
  const std::unique_ptr<LibraryImage> image = LibraryImage::open(path, reason);
  if (!image) return reason;
  const std::optional<LibraryImage::Symbol> symbol = image->find(GGUFMILL_SYMBOL);
  if (!symbol) return kExportsNothing;
  if (!image->read(symbol->address, &file.numbers, std::min<std::uint64_t>(symbol->bytes, sizeof file.numbers)))
    return "is not a kernel module: " GGUFMILL_SYMBOL " is not constant data";
  file.numbers.name = file.numbers.version = file.numbers.isa = file.numbers.cpu_features = nullptr;
  file.numbers.kernels = nullptr;
  if (reason = check_abi(file.numbers); !reason.empty()) return reason;

  return read_words(*image, symbol->address, file.words) ? std::string()
                                                         : "has no readable name, version, ISA, or CPU features";
}

}  // namespace ggufmill
