#pragma once
// Between the texts of this project, in UTF-8, and those of Windows, and between its numbers of errors and errno.

#include <windows.h>

#include <string>
#include <string_view>
#include <utility>

namespace ggufmill::windows {

std::wstring wide(std::string_view text);
std::string narrow(std::wstring_view text);

// Returns a path for calls of Windows. A long one becomes absolute with the prefix \\?\, because Windows limits others
// to 260 characters.
std::wstring native_path(const std::string& path);
// Removes this prefix.
std::wstring without_prefix(std::wstring path);

// Returns the errno for an error of Windows.
int errno_of(DWORD error);
// Sets errno to that of the last error, and returns -1.
int fail();

// Returns the message of Windows for an error, without the period and the line break at its end.
std::string message_of(DWORD error);

// An open object of the kernel.
class Handle {
 public:
  explicit Handle(HANDLE value = nullptr) : value_(value == INVALID_HANDLE_VALUE ? nullptr : value) {}
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Handle() {
    if (value_) ::CloseHandle(value_);
  }

  HANDLE get() const { return value_; }
  HANDLE release() { return std::exchange(value_, nullptr); }
  explicit operator bool() const { return value_ != nullptr; }

 private:
  HANDLE value_;
};

}  // namespace ggufmill::windows
