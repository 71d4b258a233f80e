#include "pipeline/io/platform/windows/child_program.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cwctype>
#include <map>

namespace ggufmill {
namespace windows {
namespace {

// Quotes a word as programs of Windows split their command line: a backslash is special only before a quote.
std::wstring quoted(const std::wstring& word) {
  if (!word.empty() && word.find_first_of(L" \t\n\v\"") == word.npos) return word;
  std::wstring out = L"\"";
  std::size_t backslashes = 0;
  for (const wchar_t c : word) {
    if (c == L'"') out.append(backslashes + 1, L'\\');
    backslashes = c == L'\\' ? backslashes + 1 : 0;
    out += c;
  }
  return out.append(backslashes, L'\\') + L'"';
}

struct NoCase {
  bool operator()(const std::wstring& a, const std::wstring& b) const {
    return std::ranges::lexicographical_compare(
        a, b, {}, [](wchar_t c) { return std::towupper(c); }, [](wchar_t c) { return std::towupper(c); });
  }
};

// The environment of a program, in the form that the system takes. Of variables with the same name, the last counts.
std::wstring block_of(const Variables& variables) {
  std::map<std::wstring, std::wstring, NoCase> all;
  for (const auto& [name, value] : variables) all[wide(name)] = wide(value);
  std::wstring block;
  for (const auto& [name, value] : all) block += name + L"=" + value + L'\0';
  return block + L'\0';
}

// The attributes of a new process, of which only the list of inherited handles is used: other threads may start
// programs at the same time.
class InheritedHandles {
 public:
  explicit InheritedHandles(std::array<HANDLE, 3>& handles) {
    SIZE_T bytes = 0;
    ::InitializeProcThreadAttributeList(nullptr, 1, 0, &bytes);
    memory_.resize(bytes);
    if (!::InitializeProcThreadAttributeList(list(), 1, 0, &bytes)) return;
    is_made_ = true;
    ::UpdateProcThreadAttribute(list(), 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles.data(),
                                handles.size() * sizeof(HANDLE), nullptr, nullptr);
  }
  InheritedHandles(const InheritedHandles&) = delete;
  InheritedHandles& operator=(const InheritedHandles&) = delete;
  ~InheritedHandles() {
    if (is_made_) ::DeleteProcThreadAttributeList(list());
  }
  LPPROC_THREAD_ATTRIBUTE_LIST list() { return reinterpret_cast<LPPROC_THREAD_ATTRIBUTE_LIST>(memory_.data()); }

 private:
  std::vector<std::byte> memory_;
  bool is_made_ = false;
};

// Returns an exit code as shells of POSIX systems report it, for a process that an exception has ended.
int exit_code_of(DWORD status) {
  switch (status) {
    case STATUS_ACCESS_VIOLATION:
    case STATUS_STACK_OVERFLOW:
      return 128 + 11;
    case STATUS_ILLEGAL_INSTRUCTION:
    case STATUS_PRIVILEGED_INSTRUCTION:
      return 128 + 4;
    case STATUS_INTEGER_DIVIDE_BY_ZERO:
      return 128 + 8;
    case STATUS_CONTROL_C_EXIT:
      return 128 + 2;
    default:
      return (status >> 30) == 3 ? 128 + 6 : static_cast<int>(status & 0xff);
  }
}

}  // namespace

std::unique_ptr<WindowsProgram> WindowsProgram::start(const std::vector<std::string>& words, const Variables& variables,
                                                      HANDLE job, int& error, const char*& action) {
  SECURITY_ATTRIBUTES inherited{sizeof inherited, nullptr, TRUE};
  std::array<Handle, 2> ours, theirs;
  action = "create a pipe to the program";
  for (std::size_t i = 0; i < ours.size(); ++i) {
    HANDLE reading = nullptr, writing = nullptr;
    if (!::CreatePipe(&reading, &writing, &inherited, 0)) return error = errno_of(::GetLastError()), nullptr;
    ours[i] = Handle(reading);
    theirs[i] = Handle(writing);
    ::SetHandleInformation(reading, HANDLE_FLAG_INHERIT, 0);
  }
  const Handle nothing(
      ::CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited, OPEN_EXISTING, 0, nullptr));
  action = "run the program";
  const auto program = find_program(words[0]);
  if (!program) return error = ENOENT, nullptr;
  std::wstring line;
  for (const std::string& word : words) line += (line.empty() ? L"" : L" ") + quoted(wide(word));
  std::array<HANDLE, 3> handles{nothing.get(), theirs[0].get(), theirs[1].get()};
  InheritedHandles attributes(handles);
  STARTUPINFOEXW how{};
  how.StartupInfo.cb = sizeof how;
  how.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
  how.StartupInfo.hStdInput = handles[0];
  how.StartupInfo.hStdOutput = handles[1];
  how.StartupInfo.hStdError = handles[2];
  how.lpAttributeList = attributes.list();
  std::wstring environment = block_of(variables);
  constexpr DWORD kFlags =
      EXTENDED_STARTUPINFO_PRESENT | CREATE_UNICODE_ENVIRONMENT | CREATE_NEW_PROCESS_GROUP | CREATE_SUSPENDED;
  std::wstring path = wide(*program);
  std::ranges::replace(path, L'/', L'\\');
  PROCESS_INFORMATION started{};
  if (!::CreateProcessW(path.c_str(), line.data(), nullptr, nullptr, TRUE, kFlags, environment.data(), nullptr,
                        &how.StartupInfo, &started))
    return error = errno_of(::GetLastError()), nullptr;
  Handle process(started.hProcess);
  const Handle thread(started.hThread);
  if (job) ::AssignProcessToJobObject(job, process.get());
  ::ResumeThread(thread.get());
  return std::unique_ptr<WindowsProgram>(new WindowsProgram(std::move(process), started.dwProcessId, std::move(ours)));
}

// Pipes of Windows cannot be waited for, so they are looked at again and again.
bool WindowsProgram::read(int milliseconds, const Printed& printed) {
  using Clock = std::chrono::steady_clock;
  constexpr DWORD kLongestPause = 10;
  const auto end = Clock::now() + std::chrono::milliseconds(milliseconds);
  for (DWORD pause = 0;; pause = std::min(pause + 1, kLongestPause)) {
    bool is_anything = false;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      std::array<char, 4096> buffer;
      DWORD there = 0, got = 0;
      if (!ends_[i]) continue;
      if (!::PeekNamedPipe(ends_[i].get(), nullptr, 0, nullptr, &there, nullptr)) {
        ends_[i] = Handle();
        is_anything = true;
      } else if (there > 0) {
        is_anything = true;
        if (::ReadFile(ends_[i].get(), buffer.data(), std::min<DWORD>(there, buffer.size()), &got, nullptr))
          printed(i == 0 ? Stream::kOut : Stream::kErr, {buffer.data(), got});
      }
    }
    if (!ends_[0] && !ends_[1]) return false;
    if (is_anything || (milliseconds >= 0 && Clock::now() >= end)) return true;
    ::Sleep(pause);
  }
}

void WindowsProgram::ask_to_end() { ::GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, id_); }

std::optional<int> WindowsProgram::ended() {
  if (::WaitForSingleObject(process_.get(), 0) != WAIT_OBJECT_0) return std::nullopt;
  return exit_code_of(exit_status());
}

int WindowsProgram::wait() {
  if (::WaitForSingleObject(process_.get(), INFINITE) != WAIT_OBJECT_0) return fail();
  return exit_code_of(exit_status());
}

DWORD WindowsProgram::exit_status() const {
  DWORD status = 0;
  ::GetExitCodeProcess(process_.get(), &status);
  return status;
}

}  // namespace windows

// Looks in the folders of PATH, but not in the current one. Batch files are not programs: their interpreter reads the
// arguments by rules of its own, so that no quoting is safe.
std::optional<std::string> find_program(const std::string& word) {
  const auto is_program = [](const std::string& path) {
    const DWORD attributes = ::GetFileAttributesW(windows::native_path(path).c_str());
    return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) == 0 &&
           (path.ends_with(".exe") || path.ends_with(".EXE") || path.ends_with(".com"));
  };
  const auto find_in = [&](const std::string& folder) -> std::optional<std::string> {
    for (const char* const ending : {"", ".exe", ".com"})
      if (std::string path = folder + word + ending; is_program(path)) return path;
    return std::nullopt;
  };
  if (word.find_first_of("/\\:") != word.npos) return find_in("");
  const std::string path = environment_variable("PATH").value_or("");
  for (std::string_view left = path; !left.empty(); left.remove_prefix(std::min(left.size(), left.find(';') + 1))) {
    const std::string_view folder = left.substr(0, left.find(';'));
    if (auto found = folder.empty() ? std::nullopt : find_in(std::string(folder) + "\\")) return found;
    if (folder.size() == left.size()) break;
  }
  return std::nullopt;
}

Variables own_variables() {
  Variables variables;
  wchar_t* const own = ::GetEnvironmentStringsW();
  for (const wchar_t* entry = own; entry && *entry; entry += std::wcslen(entry) + 1) {
    const std::wstring text = entry;
    const std::size_t end = text.find(L'=', 1);  // names of hidden variables begin with =
    if (end != text.npos)
      variables.emplace_back(windows::narrow(text.substr(0, end)), windows::narrow(text.substr(end + 1)));
  }
  ::FreeEnvironmentStringsW(own);
  return variables;
}

std::unique_ptr<ChildProgram> ChildProgram::start(const std::vector<std::string>& words, const Variables& variables,
                                                  int& error, const char*& action) {
  return windows::WindowsProgram::start(words, variables, nullptr, error, action);
}

}  // namespace ggufmill
