// For systems that return the umask only to processes that change it.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/posix/calls.h"

namespace ggufmill {

// Creates a file to see its permissions: reading the umask would change it for other threads.
unsigned new_file_mode(int folder) {
  static std::atomic<unsigned> count{0};
  constexpr unsigned kPrivate = 0644;
  const std::string name = ".ggufmill-mode-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
  const Descriptor file(::openat(posix::at(folder), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return kPrivate;
  ::unlinkat(posix::at(folder), name.c_str(), 0);
  struct stat info;
  return ::fstat(file.get(), &info) == 0 ? info.st_mode & kPermissions : kPrivate;
}

}  // namespace ggufmill
