// Windows cannot copy a process, so that work which may crash is that of a program of its own or, where that is not
// possible, of a thread.

#include <windows.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>

#include "pipeline/io/platform/windows/child_program.h"

namespace ggufmill {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kSecond = 10'000'000;  // in units of 100 ns
constexpr DWORD kNoMemory = 75;               // exit code

std::string exception_text(DWORD code) {
  char text[48];
  std::snprintf(text, sizeof text, "ends with the exception 0x%08lx", code);
  return text;
}

// ---- in a program ----

// A job that ends its process when it has used too much time, or when this process ends.
windows::Handle limited_job(unsigned cpu_seconds) {
  windows::Handle job(::CreateJobObjectW(nullptr, nullptr));
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_TIME | JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
  limits.BasicLimitInformation.PerProcessUserTimeLimit.QuadPart = cpu_seconds * kSecond;
  ::SetInformationJobObject(job.get(), JobObjectExtendedLimitInformation, &limits, sizeof limits);
  return job;
}

ChildAnswer ask_program(const std::vector<std::string>& helper, const ChildLimits& limits) {
  int error = 0;
  const char* action = "";
  const windows::Handle job = limited_job(limits.cpu_seconds);
  const auto program = windows::WindowsProgram::start(helper, own_variables(), job.get(), error, action);
  if (!program) return {{}, "cannot be started: " + helper.front() + ": " + std::strerror(error)};
  ChildAnswer answer;
  const Clock::time_point end = Clock::now() + limits.patience;
  const auto printed = [&](ChildProgram::Stream stream, std::string_view text) {
    if (stream == ChildProgram::Stream::kOut) answer.text.append(text);
  };
  while (program->read(100, printed) && Clock::now() < end) {
  }
  if (Clock::now() >= end) {
    program->kill();
    return {{}, kOutOfTime};
  }
  program->wait();
  const DWORD status = program->exit_status();
  if (status == kNoMemory) throw std::bad_alloc();
  if (status == ERROR_NOT_ENOUGH_QUOTA) return {{}, kOutOfTime};
  if (status != 0) return {{}, exception_text(status)};
  return answer;
}

// ---- on a thread ----

std::mutex one_at_a_time;
std::atomic<DWORD> asking{0};  // the thread that waits for work on another; 0: none
std::atomic<DWORD> fault{0};   // the first exception of the processor in that work

bool is_of_processor(DWORD code) {
  switch (code) {
    case EXCEPTION_ACCESS_VIOLATION:
    case EXCEPTION_DATATYPE_MISALIGNMENT:
    case EXCEPTION_ILLEGAL_INSTRUCTION:
    case EXCEPTION_IN_PAGE_ERROR:
    case EXCEPTION_INT_DIVIDE_BY_ZERO:
    case EXCEPTION_INT_OVERFLOW:
    case EXCEPTION_PRIV_INSTRUCTION:
    case EXCEPTION_STACK_OVERFLOW:
      return true;
    default:
      return code >= EXCEPTION_FLT_DENORMAL_OPERAND && code <= EXCEPTION_FLT_UNDERFLOW;
  }
}

[[noreturn]] void end_thread() { ::ExitThread(0); }

// Ends the thread that calls abort(), instead of the program.
void on_abort(int) {
  const DWORD waiting = asking;
  if (waiting == 0 || waiting == ::GetCurrentThreadId()) return;
  DWORD none = 0;
  fault.compare_exchange_strong(none, STATUS_FATAL_APP_EXIT);
  end_thread();
}

// Lets the thread continue in end_thread(), as if it had called it.
LONG CALLBACK on_exception(EXCEPTION_POINTERS* exception) {
  const DWORD code = exception->ExceptionRecord->ExceptionCode;
  const DWORD waiting = asking;
  if (waiting == 0 || waiting == ::GetCurrentThreadId() || !is_of_processor(code)) return EXCEPTION_CONTINUE_SEARCH;
  DWORD none = 0;
  fault.compare_exchange_strong(none, code);
  CONTEXT& context = *exception->ContextRecord;
  context.Rsp = (context.Rsp & ~DWORD64{15}) - 8;
  context.Rip = reinterpret_cast<DWORD64>(&end_thread);
  return EXCEPTION_CONTINUE_EXECUTION;
}

struct Work {
  const std::function<std::string()>* work;
  std::string text;
  std::exception_ptr error;
  bool is_done = false;
};

DWORD WINAPI do_work(void* argument) {
  Work& it = *static_cast<Work*>(argument);
  try {
    it.text = (*it.work)();
  } catch (...) {
    it.error = std::current_exception();
  }
  it.is_done = true;
  return 0;
}

std::int64_t cpu_time(HANDLE thread) {
  FILETIME made, ended, kernel, user;
  if (!::GetThreadTimes(thread, &made, &ended, &kernel, &user)) return 0;
  return static_cast<std::int64_t>(std::uint64_t{user.dwHighDateTime} << 32 | user.dwLowDateTime);
}

ChildAnswer ask_thread(const std::function<std::string()>& work, const ChildLimits& limits) {
  static void* const registered = ::AddVectoredExceptionHandler(0, on_exception);
  const std::lock_guard lock(one_at_a_time);
  Work it{&work, {}, {}, false};
  const windows::Handle thread(::CreateThread(nullptr, 0, do_work, &it, CREATE_SUSPENDED, nullptr));
  if (!registered || !thread.get()) throw std::bad_alloc();
  fault = 0;
  asking = ::GetCurrentThreadId();
  const auto before = std::signal(SIGABRT, on_abort);
  ::ResumeThread(thread.get());
  const Clock::time_point end = Clock::now() + limits.patience;
  bool in_time = true;
  while (in_time && ::WaitForSingleObject(thread.get(), 100) == WAIT_TIMEOUT)
    in_time = Clock::now() < end && cpu_time(thread.get()) < limits.cpu_seconds * kSecond;
  if (!in_time) {
    ::TerminateThread(thread.get(), 0);
    ::WaitForSingleObject(thread.get(), INFINITE);
  }
  std::signal(SIGABRT, before);
  asking = 0;
  if (fault != 0) return {{}, exception_text(fault)};
  if (!in_time) return {{}, kOutOfTime};
  try {
    if (it.error) std::rethrow_exception(it.error);
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    return {{}, "exits early"};
  }
  return it.is_done ? ChildAnswer{std::move(it.text), {}} : ChildAnswer{{}, "exits early"};
}

}  // namespace

ChildAnswer ask_child(const std::function<std::string()>& work, const ChildLimits& limits,
                      const std::vector<std::string>& helper) {
  return helper.empty() ? ask_thread(work, limits) : ask_program(helper, limits);
}

}  // namespace ggufmill
