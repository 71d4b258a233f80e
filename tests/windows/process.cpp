// Defines tests/support/process.h.

#include <windows.h>
// after the main header
#include <psapi.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/platform/windows/text.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {
namespace {

using windows::Handle;
using windows::wide;

[[noreturn]] void fail(const std::string& action) {
  throw std::runtime_error(action + ": " + windows::message_of(::GetLastError()));
}

// Captures the output of a program in a file, so that it never blocks on a full pipe while the other one is read.
class Capture {
 public:
  Capture() : path_((fs::temp_directory_path() / ("ggufmill-output-" + std::to_string(random_()))).string()) {
    SECURITY_ATTRIBUTES inherited{sizeof inherited, nullptr, TRUE};
    file_ = Handle(::CreateFileW(wide(path_).c_str(), GENERIC_WRITE, FILE_SHARE_READ, &inherited, CREATE_NEW,
                                 FILE_ATTRIBUTE_TEMPORARY, nullptr));
    if (!file_) fail("create " + path_);
  }
  ~Capture() {
    file_ = Handle();
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  HANDLE file() const { return file_.get(); }
  std::string text() const { return read_text(path_); }

 private:
  std::random_device random_;
  std::string path_;
  Handle file_;
};

std::wstring quoted(const std::string& word) {
  std::wstring out = L"\"";
  std::size_t backslashes = 0;
  for (const wchar_t c : wide(word)) {
    if (c == L'"') out.append(backslashes + 1, L'\\');
    backslashes = c == L'\\' ? backslashes + 1 : 0;
    out += c;
  }
  return out.append(backslashes, L'\\') + L'"';
}

// The settings come first, so that the system finds them before the variables of this process.
std::wstring environment(const std::vector<std::string>& settings) {
  std::wstring block;
  for (const std::string& setting : settings) block += wide(setting) + L'\0';
  wchar_t* const own = ::GetEnvironmentStringsW();
  for (const wchar_t* entry = own; *entry; entry += std::wcslen(entry) + 1) {
    const std::wstring text = entry;
    bool is_replaced = false;
    for (const std::string& setting : settings)
      is_replaced = is_replaced || text.starts_with(wide(setting.substr(0, setting.find('=') + 1)));
    if (!is_replaced) block += text + L'\0';
  }
  ::FreeEnvironmentStringsW(own);
  return block + L'\0';
}

double seconds_of(FILETIME time) {
  return 1e-7 * static_cast<double>(std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime);
}

}  // namespace

ProcessResult run_process(const std::vector<std::string>& words, const std::string& folder,
                          const std::vector<std::string>& settings) {
  const Capture out, err;
  SECURITY_ATTRIBUTES inherited{sizeof inherited, nullptr, TRUE};
  const Handle nothing(::CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ, &inherited, OPEN_EXISTING, 0, nullptr));
  STARTUPINFOW how{};
  how.cb = sizeof how;
  how.dwFlags = STARTF_USESTDHANDLES;
  how.hStdInput = nothing.get();
  how.hStdOutput = out.file();
  how.hStdError = err.file();
  std::wstring line, block = environment(settings);
  for (const std::string& word : words) line += (line.empty() ? L"" : L" ") + quoted(word);
  PROCESS_INFORMATION started{};
  const auto begin = std::chrono::steady_clock::now();
  if (!::CreateProcessW(nullptr, line.data(), nullptr, nullptr, TRUE, CREATE_UNICODE_ENVIRONMENT, block.data(),
                        folder.empty() ? nullptr : wide(folder).c_str(), &how, &started))
    fail("start " + words.front());
  const Handle process(started.hProcess), thread(started.hThread);
  ::WaitForSingleObject(process.get(), INFINITE);
  ProcessResult result;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  DWORD code = 0;
  ::GetExitCodeProcess(process.get(), &code);
  result.exit_code = (code >> 30) == 3 ? 128 + 11 : static_cast<int>(code);
  FILETIME created, ended, kernel, user;
  if (::GetProcessTimes(process.get(), &created, &ended, &kernel, &user))
    result.cpu_seconds = seconds_of(kernel) + seconds_of(user);
  PROCESS_MEMORY_COUNTERS memory{};
  if (::GetProcessMemoryInfo(process.get(), &memory, sizeof memory))
    result.peak_memory_kib = static_cast<long>(memory.PeakWorkingSetSize >> 10);
  result.out = out.text();
  result.err = err.text();
  return result;
}

// Wine starts programs of its host, but does not wait for them.
std::string decompressed(const std::string& path) {
  const TempDir folder("/tmp");
  const std::string part = folder.file("part"), whole = folder.file("whole");
  run_process({"/bin/sh", "-c", "xz -dc '" + path + "' >'" + part + "' && mv '" + part + "' '" + whole + "'"});
  for (int i = 0; i < 1200 && !fs::exists(whole); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  return read_text(whole);
}

void Environment::put(const std::string& name, const char* value) { ::_putenv_s(name.c_str(), value ? value : ""); }

}  // namespace ggufmill
