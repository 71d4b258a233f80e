#include "pipeline/io/platform/memory.h"

#include <sys/mman.h>

namespace ggufmill {

std::byte* resize_pages([[maybe_unused]] std::byte* pages, [[maybe_unused]] std::size_t bytes,
                        [[maybe_unused]] std::size_t new_bytes) {
#ifdef __SANITIZE_THREAD__  // TSan does not see this call, and would mistake the new mapping for old data
  return nullptr;
#else
  void* const resized = ::mremap(pages, bytes, new_bytes, MREMAP_MAYMOVE);
  return resized == MAP_FAILED ? nullptr : static_cast<std::byte*>(resized);
#endif
}

}  // namespace ggufmill
