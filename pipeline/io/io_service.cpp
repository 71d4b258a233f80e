#include "pipeline/io/io_service.h"

#include "pipeline/io/services.h"

namespace ggufmill {

Result<std::unique_ptr<IoService>> IoService::start(IoKind kind) {
  if (kind == IoKind::kThreads) return start_thread_service();
  Result<std::unique_ptr<IoService>> uring = start_uring_service();
  if (!uring && kind == IoKind::kAuto) return start_thread_service();
  return uring;
}

}  // namespace ggufmill
