#include "pipeline/io/platform/uring.h"

#include <fmt/format.h>
#include <liburing.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "pipeline/io/platform/files.h"

namespace ggufmill {
namespace {

struct Ring {
  io_uring ring{};
  const int error;
  Ring() : error(-::io_uring_queue_init(4, &ring, 0)) {}
  ~Ring() {
    if (error == 0) ::io_uring_queue_exit(&ring);
  }
};

// Submits the prepared operation; returns its result, or minus errno. Waits for at most one second.
int run_prepared(io_uring& ring) {
  if (const int submitted = ::io_uring_submit(&ring); submitted != 1) return submitted < 0 ? submitted : -EIO;
  __kernel_timespec limit{1, 0};
  io_uring_cqe* completion = nullptr;
  if (const int waited = ::io_uring_wait_cqe_timeout(&ring, &completion, &limit); waited < 0) return waited;
  const int result = completion->res;
  ::io_uring_cqe_seen(&ring, completion);
  return result;
}

std::string failure(const char* call, int result) {
  return fmt::format("{}: {}", call, result < 0 ? std::strerror(-result) : "short transfer");
}

// Tries the operations that Boost.Asio uses: a vectored write, and a read of the same bytes.
std::string try_transfers(io_uring& ring, int descriptor) {
  char out[] = "ggufmill", in[sizeof out] = {};
  const iovec from{out, sizeof out}, into{in, sizeof in};
  ::io_uring_prep_writev(::io_uring_get_sqe(&ring), descriptor, &from, 1, 0);
  int result = run_prepared(ring);
  if (result != sizeof out) return failure("io_uring write", result);
  ::io_uring_prep_readv(::io_uring_get_sqe(&ring), descriptor, &into, 1, 0);
  result = run_prepared(ring);
  if (result != sizeof in) return failure("io_uring read", result);
  return std::memcmp(in, out, sizeof in) == 0 ? "" : "io_uring read: the data differs from what was written";
}

}  // namespace

// Checking the system's version is not enough: containers forbid io_uring with seccomp (EPERM, ENOSYS), limits on
// locked memory prevent it (ENOMEM), and filters may allow the setup but not the operations.
std::string why_no_uring() {
  Ring ring;
  if (ring.error != 0) return failure("io_uring_queue_init", -ring.error);
  const Descriptor memory(::memfd_create("ggufmill-probe", MFD_CLOEXEC));
  if (!memory) return failure("memfd_create", -errno);
  return try_transfers(ring.ring, memory.get());
}

}  // namespace ggufmill
