#include "pipeline/io/io_service.h"

#include <cerrno>
#include <exception>
#include <new>
#include <system_error>

#include "pipeline/io/services.h"

namespace ggufmill {

Error error_of_exception() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return {ExitCode::kTransient, "", "out of memory", "",
              "lower the memory limit, or run where more memory is free"};
    } catch (const std::system_error& error) {  // of std::thread and of Asio, where the system has no more of something
      const int number = error.code().value();
      if (number != EAGAIN && number != ENOMEM) throw;
      return {ExitCode::kTransient, "", error.what(), "", "allow more processes and threads (ulimit -u), or try later"};
    }
  } catch (const std::bad_alloc&) {
    return {ExitCode::kTransient, "", "out of memory", "", ""};  // short enough to need none
  } catch (const std::exception& error) {
    try {
      return {ExitCode::kInternal, "", error.what(), "", "this is a defect of ggufmill: please report it"};
    } catch (...) {
      return {ExitCode::kTransient, "", "out of memory", "", ""};
    }
  } catch (...) {
    return {ExitCode::kInternal, "", "exception", "", ""};
  }
}

Result<std::unique_ptr<IoService>> IoService::start(IoKind kind) {
  if (kind == IoKind::kThreads) return start_thread_service();
  Result<std::unique_ptr<IoService>> uring = start_uring_service();
  if (!uring && kind == IoKind::kAuto) return start_thread_service();
  return uring;
}

}  // namespace ggufmill
