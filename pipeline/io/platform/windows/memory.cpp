#include "pipeline/io/platform/memory.h"

#include <windows.h>

namespace ggufmill {

std::size_t page_bytes() {
  static const std::size_t bytes = [] {
    SYSTEM_INFO info;
    ::GetSystemInfo(&info);
    return std::size_t{info.dwPageSize};
  }();
  return bytes;
}

std::byte* map_pages(std::size_t bytes) {
  return static_cast<std::byte*>(::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

void unmap_pages(std::byte* pages, std::size_t) { ::VirtualFree(pages, 0, MEM_RELEASE); }

}  // namespace ggufmill
