#include "pipeline/io/platform/guard_pages.h"

#include <windows.h>

#include <cerrno>

#include "pipeline/io/platform/memory.h"

namespace ggufmill {
namespace {

void (*stopped)(const void* address, Access access) = nullptr;

// A vectored exception handler.
LONG CALLBACK report_access(EXCEPTION_POINTERS* exception) {
  const EXCEPTION_RECORD& record = *exception->ExceptionRecord;
  if (record.ExceptionCode == EXCEPTION_ACCESS_VIOLATION && record.NumberParameters >= 2)
    stopped(reinterpret_cast<const void*>(record.ExceptionInformation[1]),
            record.ExceptionInformation[0] == 1 ? Access::kWrite : Access::kRead);
  return EXCEPTION_CONTINUE_SEARCH;
}

}  // namespace

std::byte* map_guarded_pages(std::size_t bytes) {
  errno = ENOMEM;
  const std::size_t page = page_bytes();
  void* const all = ::VirtualAlloc(nullptr, bytes + 2 * page, MEM_RESERVE, PAGE_NOACCESS);
  if (!all) return nullptr;
  void* const pages = ::VirtualAlloc(static_cast<std::byte*>(all) + page, bytes, MEM_COMMIT, PAGE_READWRITE);
  if (!pages) ::VirtualFree(all, 0, MEM_RELEASE);
  return static_cast<std::byte*>(pages);
}

bool protect_pages(std::byte* pages, std::size_t bytes) {
  DWORD before = 0;
  errno = EINVAL;
  return ::VirtualProtect(pages, bytes, PAGE_READONLY, &before) != 0;
}

void unmap_guarded_pages(std::byte* pages, std::size_t) { ::VirtualFree(pages - page_bytes(), 0, MEM_RELEASE); }

std::byte* map_shared_pages(std::size_t bytes) {
  errno = ENOMEM;
  return map_pages(bytes);
}
void unmap_shared_pages(std::byte* pages, std::size_t bytes) { unmap_pages(pages, bytes); }

void on_stopped_access(void (*handler)(const void* address, Access access)) {
  static void* const registered = ::AddVectoredExceptionHandler(1, report_access);
  stopped = registered ? handler : nullptr;
}

}  // namespace ggufmill
