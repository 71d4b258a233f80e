#include "pipeline/io/platform/program.h"

#include <windows.h>

#include <new>

#include "pipeline/io/platform/windows/access.h"
#include "pipeline/io/platform/windows/text.h"

namespace ggufmill {
namespace {

HMODULE own_module() {
  HMODULE module = nullptr;
  constexpr DWORD kFlags = GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT;
  ::GetModuleHandleExW(kFlags, reinterpret_cast<const wchar_t*>(&own_module), &module);
  return module;
}

std::string why_unsafe(const std::wstring& path) {
  const windows::Handle file(::CreateFileW(path.c_str(), READ_CONTROL | FILE_READ_ATTRIBUTES,
                                           FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                           OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr));
  if (!file) return "its permissions cannot be read: " + windows::message_of(::GetLastError());
  if (std::string reason = windows::why_writable_by_others(file.get()); !reason.empty()) return reason;
  const std::uint64_t owner = windows::owner_of(file.get());
  if (owner <= windows::kOwnUser) return {};
  return "it belongs to user " + std::to_string(owner) + ", not to an administrator or to you";
}

}  // namespace

const std::string& own_file() {
  static const std::string path = [] {
    std::wstring name(MAX_PATH, L'\0');
    DWORD units = 0;
    while ((units = ::GetModuleFileNameW(own_module(), name.data(), static_cast<DWORD>(name.size()))) == name.size())
      name.resize(2 * name.size());
    name.resize(units);
    return windows::narrow(windows::without_prefix(name));
  }();
  return path;
}

bool is_in_program() { return own_module() == ::GetModuleHandleW(nullptr); }

bool is_started_by_loader() { return false; }

bool is_library_name(std::string_view name) {
  if (name.size() < 5) return false;
  std::string ending(name.substr(name.size() - 4));
  for (char& c : ending) c = static_cast<char>(c | 0x20);  // '.' has this bit
  return ending == ".dll";
}

std::shared_ptr<void> open_library(const std::string& path, std::string& reason) {
  // Only the folder of the library and that of the system are searched for what it needs.
  constexpr DWORD kFlags = LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_SYSTEM32;
  HMODULE const library = ::LoadLibraryExW(windows::native_path(path).c_str(), nullptr, kFlags);
  if (!library) {
    const DWORD error = ::GetLastError();
    reason = "cannot be loaded: " + windows::message_of(error);
    if (windows::errno_of(error) == ENOMEM) throw std::bad_alloc();
  }
  return {library, [](void* handle) {
            if (handle) ::FreeLibrary(static_cast<HMODULE>(handle));
          }};
}

const void* find_symbol(void* library, const char* name) {
  return reinterpret_cast<const void*>(::GetProcAddress(static_cast<HMODULE>(library), name));
}

std::string why_untrusted(const std::string& path) {
  std::wstring name = windows::without_prefix(windows::native_path(path));
  if (::GetFileAttributesW(windows::native_path(path).c_str()) == INVALID_FILE_ATTRIBUTES)
    return "it cannot be read: " + windows::message_of(::GetLastError());
  if (std::string reason = why_unsafe(windows::native_path(path)); !reason.empty()) return reason;
  while (name.size() > 3 && name.back() == L'\\') name.pop_back();
  for (std::size_t end = name.rfind(L'\\'); end != name.npos && end > 2; end = name.rfind(L'\\')) {
    name.resize(end);
    const std::string above = windows::narrow(name);
    if (const std::string reason = why_unsafe(windows::native_path(above)); !reason.empty())
      return "it is in '" + above + "', and " + reason;
  }
  return {};
}

std::string why_unsafe_to_load(const std::string& path, bool is_own) {
  if (::GetFileAttributesW(windows::native_path(path).c_str()) == INVALID_FILE_ATTRIBUTES)
    return "cannot be read: " + windows::message_of(::GetLastError());
  const std::string reason = is_own ? std::string() : why_untrusted(path);
  return reason.empty() ? reason : "is not safe to load code from: " + reason;
}

}  // namespace ggufmill
