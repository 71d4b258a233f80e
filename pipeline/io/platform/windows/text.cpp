#include "pipeline/io/platform/windows/text.h"

#include <algorithm>
#include <cerrno>
#include <iterator>

namespace ggufmill::windows {
namespace {

constexpr std::wstring_view kPrefix = L"\\\\?\\", kServerPrefix = L"\\\\?\\UNC\\";
// Folders may have 12 characters fewer than files, for a file in them.
constexpr std::size_t kMaxLength = MAX_PATH - 12 - 1;

struct Pair {
  DWORD error;
  int number;
};

constexpr Pair kNumbers[] = {
    {ERROR_SUCCESS, 0},
    {ERROR_FILE_NOT_FOUND, ENOENT},
    {ERROR_PATH_NOT_FOUND, ENOENT},
    {ERROR_INVALID_NAME, ENOENT},
    {ERROR_BAD_PATHNAME, ENOENT},
    {ERROR_INVALID_DRIVE, ENOENT},
    {ERROR_BAD_NETPATH, ENOENT},
    {ERROR_BAD_NET_NAME, ENOENT},
    {ERROR_ACCESS_DENIED, EACCES},
    {ERROR_SHARING_VIOLATION, EACCES},
    {ERROR_LOCK_VIOLATION, EACCES},
    {ERROR_USER_MAPPED_FILE, EACCES},
    {ERROR_PRIVILEGE_NOT_HELD, EPERM},
    {ERROR_FILE_EXISTS, EEXIST},
    {ERROR_ALREADY_EXISTS, EEXIST},
    {ERROR_DISK_FULL, ENOSPC},
    {ERROR_HANDLE_DISK_FULL, ENOSPC},
    {ERROR_NOT_ENOUGH_MEMORY, ENOMEM},
    {ERROR_OUTOFMEMORY, ENOMEM},
    {ERROR_COMMITMENT_LIMIT, ENOMEM},
    {ERROR_NO_SYSTEM_RESOURCES, ENOMEM},
    {ERROR_TOO_MANY_OPEN_FILES, EMFILE},
    {ERROR_WRITE_PROTECT, EROFS},
    {ERROR_DIR_NOT_EMPTY, ENOTEMPTY},
    {ERROR_DIRECTORY, ENOTDIR},
    {ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG},
    {ERROR_NOT_SAME_DEVICE, EXDEV},
    {ERROR_BROKEN_PIPE, EPIPE},
    {ERROR_NO_DATA, EPIPE},
    {ERROR_INVALID_PARAMETER, EINVAL},
    {ERROR_INVALID_FUNCTION, ENOSYS},
    {ERROR_NOT_SUPPORTED, ENOSYS},
    {ERROR_CALL_NOT_IMPLEMENTED, ENOSYS},
    {ERROR_BUSY, EBUSY},
};

}  // namespace

std::wstring wide(std::string_view text) {
  const int bytes = static_cast<int>(text.size());
  std::wstring out(static_cast<std::size_t>(::MultiByteToWideChar(CP_UTF8, 0, text.data(), bytes, nullptr, 0)), L'\0');
  ::MultiByteToWideChar(CP_UTF8, 0, text.data(), bytes, out.data(), static_cast<int>(out.size()));
  return out;
}

std::string narrow(std::wstring_view text) {
  const int units = static_cast<int>(text.size());
  const int bytes = ::WideCharToMultiByte(CP_UTF8, 0, text.data(), units, nullptr, 0, nullptr, nullptr);
  std::string out(static_cast<std::size_t>(bytes), '\0');
  ::WideCharToMultiByte(CP_UTF8, 0, text.data(), units, out.data(), bytes, nullptr, nullptr);
  return out;
}

std::wstring native_path(const std::string& path) {
  std::wstring given = wide(path);
  if (given.starts_with(kPrefix)) return given;
  std::wstring full(::GetFullPathNameW(given.c_str(), 0, nullptr, nullptr), L'\0');
  if (full.empty()) return given;
  full.resize(::GetFullPathNameW(given.c_str(), static_cast<DWORD>(full.size()), full.data(), nullptr));
  if (full.size() <= kMaxLength || full.starts_with(L"\\\\.\\")) return full;
  return full.starts_with(L"\\\\") ? std::wstring(kServerPrefix) + full.substr(2) : std::wstring(kPrefix) + full;
}

std::wstring without_prefix(std::wstring path) {
  if (path.starts_with(kServerPrefix)) return L"\\\\" + path.substr(kServerPrefix.size());
  return path.starts_with(kPrefix) ? path.substr(kPrefix.size()) : path;
}

int errno_of(DWORD error) {
  const auto* const found = std::ranges::find(kNumbers, error, &Pair::error);
  return found == std::end(kNumbers) ? EIO : found->number;
}

int fail() {
  errno = errno_of(::GetLastError());
  return -1;
}

std::string message_of(DWORD error) {
  wchar_t* text = nullptr;
  constexpr DWORD kFlags = FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS;
  const DWORD units = ::FormatMessageW(kFlags, nullptr, error, MAKELANGID(LANG_ENGLISH, SUBLANG_ENGLISH_US),
                                       reinterpret_cast<wchar_t*>(&text), 0, nullptr);
  std::string message = units == 0 ? "error " + std::to_string(error) : narrow({text, units});
  ::LocalFree(text);
  while (!message.empty() &&
         (message.back() == '\n' || message.back() == '\r' || message.back() == '.' || message.back() == ' '))
    message.pop_back();
  return message;
}

}  // namespace ggufmill::windows
