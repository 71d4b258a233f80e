#include "tests/support/synth_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace ggufmill::synth {

OutputFile::OutputFile(const std::string& path)
    : path_(path), file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (file_ < 0) fail("create");
}

OutputFile::~OutputFile() { ::close(file_); }

void OutputFile::resize(std::uint64_t size) {
  if (::ftruncate(file_, static_cast<off_t>(size)) != 0) fail("resize");
}

void OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("write");
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void OutputFile::fail(const char* action) const {
  throw std::system_error(errno, std::generic_category(), std::string("cannot ") + action + " " + path_);
}

}  // namespace ggufmill::synth
