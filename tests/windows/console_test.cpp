// Tests the output on a console: this test takes the place of a terminal.

#include <windows.h>

#include <string>
#include <thread>

#include "pipeline/io/platform/windows/text.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using windows::Handle;

namespace {

// A program gets the streams of this process, even on another console, unless this process has none.
class WithoutStreams {
 public:
  WithoutStreams() {
    for (std::size_t i = 0; i < std::size(kStreams); ++i) {
      before_[i] = ::GetStdHandle(kStreams[i]);
      ::SetStdHandle(kStreams[i], nullptr);
    }
  }
  ~WithoutStreams() {
    for (std::size_t i = 0; i < std::size(kStreams); ++i) ::SetStdHandle(kStreams[i], before_[i]);
  }
  WithoutStreams(const WithoutStreams&) = delete;
  WithoutStreams& operator=(const WithoutStreams&) = delete;

 private:
  static constexpr DWORD kStreams[] = {STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE};
  HANDLE before_[3];
};

// Runs a command line on a console of 120 columns; returns the sequences of characters that a terminal would receive.
std::string shown_by(const std::string& command) {
  HANDLE read_end = nullptr, write_end = nullptr, in_read = nullptr, in_write = nullptr;
  REQUIRE(::CreatePipe(&read_end, &write_end, nullptr, 0));
  REQUIRE(::CreatePipe(&in_read, &in_write, nullptr, 0));
  Handle shown(read_end), to_terminal(write_end), keys(in_read), typed(in_write);
  HPCON console = nullptr;
  REQUIRE(::CreatePseudoConsole({120, 40}, keys.get(), to_terminal.get(), 0, &console) == S_OK);
  to_terminal = Handle();
  SIZE_T bytes = 0;
  ::InitializeProcThreadAttributeList(nullptr, 1, 0, &bytes);
  std::vector<std::byte> memory(bytes);
  STARTUPINFOEXW how{};
  how.StartupInfo.cb = sizeof how;
  how.lpAttributeList = reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(memory.data());
  REQUIRE(::InitializeProcThreadAttributeList(how.lpAttributeList, 1, 0, &bytes));
  REQUIRE(::UpdateProcThreadAttribute(how.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE, console,
                                      sizeof console, nullptr, nullptr));
  std::string text;
  std::thread reader([&] {
    char part[4096];
    DWORD got = 0;
    while (::ReadFile(shown.get(), part, sizeof part, &got, nullptr) && got > 0) text.append(part, got);
  });
  std::wstring line = windows::wide(command);
  PROCESS_INFORMATION started{};
  const WithoutStreams inherits_none;
  const BOOL is_started = ::CreateProcessW(nullptr, line.data(), nullptr, nullptr, FALSE, EXTENDED_STARTUPINFO_PRESENT,
                                           nullptr, nullptr, &how.StartupInfo, &started);
  if (is_started) {
    const Handle process(started.hProcess), thread(started.hThread);
    ::WaitForSingleObject(process.get(), 60000);
  }
  ::ClosePseudoConsole(console);
  reader.join();
  ::DeleteProcThreadAttributeList(how.lpAttributeList);
  REQUIRE(is_started);
  return text;
}

}  // namespace

TEST_CASE("a console shows letters of all scripts") {
  const std::string text =
      shown_by(std::string("\"") + GGUFMILL_PROGRAM + "\" inspect gr\u00fcn-\u043c\u0438\u0440.gguf");
  if (text.empty()) GGUFMILL_SKIP("this version of Wine shows nothing on pseudo consoles");
  INFO(text);
  CHECK(text.find("gr\u00fcn-\u043c\u0438\u0440.gguf") != std::string::npos);
}

TEST_CASE("a console shows errors in color") {
  const std::string text = shown_by(std::string("\"") + GGUFMILL_PROGRAM + "\" inspect missing.gguf");
  if (text.empty()) GGUFMILL_SKIP("this version of Wine shows nothing on pseudo consoles");
  INFO(text);
  CHECK(text.find("\x1b[") != std::string::npos);
  CHECK(text.find("error:") != std::string::npos);
}
