#pragma once
// Memory that the processor guards: pages without access beside it, and pages that may only be read. Thread-safe except
// for on_stopped_access().

#include <cstddef>

namespace ggufmill {

// `bytes` is a positive multiple of page_bytes(). Maps them, zeroed, with an inaccessible page on either side. Returns
// null and sets errno on failure.
std::byte* map_guarded_pages(std::size_t bytes);
// Makes pages unwritable. Returns false and sets errno on failure.
bool protect_pages(std::byte* pages, std::size_t bytes);
// `pages` and `bytes` are those of map_guarded_pages().
void unmap_guarded_pages(std::byte* pages, std::size_t bytes);

// Zeroed memory that this process shares with those that ask_child() copies later. Returns null and sets errno on
// failure.
std::byte* map_shared_pages(std::size_t bytes);
void unmap_shared_pages(std::byte* pages, std::size_t bytes);

enum class Access { kUnknown, kRead, kWrite };

// From now on, `handler` is called with an access that the processor stops, on the thread that made it, before the
// process ends or, on Windows, ask_child() ends the thread. It may call async-signal-safe functions only.
void on_stopped_access(void (*handler)(const void* address, Access access));

}  // namespace ggufmill
