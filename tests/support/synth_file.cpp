#include "tests/support/synth_file.h"

#include <cerrno>
#include <system_error>

namespace ggufmill::synth {

OutputFile::OutputFile(const std::string& path)
    : path_(path),
      file_(kernel_calls().open(kCurrentFolder, path.c_str(), kOpenWrite | kOpenCreate | kOpenEmpty, 0666)) {
  if (!file_) fail("create");
}

void OutputFile::resize(std::uint64_t size) {
  if (kernel_calls().resize(file_.get(), size) != 0) fail("resize");
}

void OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::int64_t written = kernel_calls().write(file_.get(), bytes.data(), bytes.size(), offset);
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
