// Advice to the file system, as all POSIX systems except macOS take it.

#include <fcntl.h>

#include "pipeline/io/platform/files.h"

namespace ggufmill {

int fill_space(int descriptor, std::uint64_t bytes) {
  return ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
}

void drop_from_cache(int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  ::posix_fadvise(descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
}

}  // namespace ggufmill
