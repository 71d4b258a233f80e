#pragma once
// Pages of memory. Thread-safe.

#include <cstddef>

namespace ggufmill {

std::size_t page_bytes();

// `bytes` is a positive multiple of page_bytes(). New pages contain zeros. Return null if the system is out of memory.
std::byte* map_pages(std::size_t bytes);
// Changes the size of pages that map_pages() returned, keeps the contents of those common to both sizes, and may move
// them. On failure, the pages stay as they are; a system that cannot do this always fails.
std::byte* resize_pages(std::byte* pages, std::size_t bytes, std::size_t new_bytes);
void unmap_pages(std::byte* pages, std::size_t bytes);

}  // namespace ggufmill
