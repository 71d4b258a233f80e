#include "pipeline/io/platform/memory.h"

namespace ggufmill {

std::byte* resize_pages(std::byte*, std::size_t, std::size_t) { return nullptr; }

}  // namespace ggufmill
