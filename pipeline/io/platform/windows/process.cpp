#include "pipeline/io/platform/process.h"

#include <windows.h>
// after the main header
#include <fcntl.h>
#include <io.h>
#include <shellapi.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "pipeline/io/platform/windows/text.h"

namespace ggufmill {
namespace {

UINT console_code_page = 0;  // of the output, before this program changed it

void show_escapes(DWORD stream) {
  const HANDLE handle = ::GetStdHandle(stream);
  if (DWORD mode = 0; ::GetConsoleMode(handle, &mode))
    ::SetConsoleMode(handle, mode | ENABLE_PROCESSED_OUTPUT | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

std::atomic<void (*)(int)> interrupt_handler{nullptr};

// Runs on a thread of its own. A console that is closed ends the program as soon as this returns.
BOOL WINAPI on_console_event(DWORD event) {
  void (*const handler)(int) = interrupt_handler.exchange(nullptr);
  if (!handler) return FALSE;
  handler(event == CTRL_C_EVENT ? SIGINT : SIGTERM);
  if (event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT) ::Sleep(INFINITE);
  return TRUE;
}

}  // namespace

void prepare_program() {
  console_code_page = ::GetConsoleOutputCP();
  if (console_code_page != 0 && console_code_page != CP_UTF8) {
    ::SetConsoleOutputCP(CP_UTF8);
    std::atexit([] { ::SetConsoleOutputCP(console_code_page); });
  }
  show_escapes(STD_OUTPUT_HANDLE);
  show_escapes(STD_ERROR_HANDLE);
  ::_setmode(::_fileno(stdin), _O_BINARY);
  ::_setmode(::_fileno(stdout), _O_BINARY);
  ::_setmode(::_fileno(stderr), _O_BINARY);
  std::setvbuf(stderr, nullptr, _IOFBF, 1 << 14);  // a console shows no letter whose bytes come one by one
  ::SetErrorMode(SEM_FAILCRITICALERRORS | SEM_NOGPFAULTERRORBOX);  // no windows with questions
}

std::vector<std::string> program_arguments(int, char**) {
  int count = 0;
  wchar_t** const words = ::CommandLineToArgvW(::GetCommandLineW(), &count);
  std::vector<std::string> arguments;
  for (int i = 1; i < count; ++i) arguments.push_back(windows::narrow(words[i]));
  ::LocalFree(words);
  return arguments;
}

void use_own_libraries(const char*) {}  // only Linux has such archives

void on_interrupt(void (*handler)(int number)) {
  interrupt_handler = handler;
  ::SetConsoleCtrlHandler(on_console_event, TRUE);
}

// A pipe refuses bytes only if nobody reads them.
bool is_output_unread() { return ::GetFileType(::GetStdHandle(STD_OUTPUT_HANDLE)) == FILE_TYPE_PIPE; }

int end_unread() { return 141; }

std::optional<std::string> environment_variable(const char* name) {
  const std::wstring wide = windows::wide(name);
  std::wstring value(::GetEnvironmentVariableW(wide.c_str(), nullptr, 0), L'\0');
  if (value.empty()) return std::nullopt;
  value.resize(::GetEnvironmentVariableW(wide.c_str(), value.data(), static_cast<DWORD>(value.size())));
  return windows::narrow(value);
}

std::uint64_t process_id() { return ::GetCurrentProcessId(); }

bool is_process(std::uint64_t id) {
  const windows::Handle process(::OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(id)));
  if (!process) return ::GetLastError() != ERROR_INVALID_PARAMETER;
  return ::WaitForSingleObject(process.get(), 0) == WAIT_TIMEOUT;
}

void allow_open_files(std::uint64_t) {}  // the limit is the memory of the kernel

// Threads inherit the priority of their process, not of their creator.
bool lower_priority(unsigned steps) {
  constexpr unsigned kHalf = 10;
  const DWORD priority = steps < kHalf ? BELOW_NORMAL_PRIORITY_CLASS : IDLE_PRIORITY_CLASS;
  return ::SetPriorityClass(::GetCurrentProcess(), priority) != 0;
}

BlockedSignals::BlockedSignals() : before_{} {}
BlockedSignals::~BlockedSignals() = default;

}  // namespace ggufmill
