#include "pipeline/io/platform/files.h"

#include <windows.h>
// after the main header
#include <winternl.h>

#include <algorithm>
#include <array>
#include <limits>
#include <random>

#include "pipeline/io/platform/windows/access.h"
#include "pipeline/io/platform/windows/text.h"

namespace ggufmill {
namespace {

using windows::fail;
using windows::Handle;

constexpr DWORD kShared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
constexpr unsigned kFileMode = 0644, kFolderMode = 0755;

// The numbers of handles have 32 bits that matter, so that 32-bit programs can use them.
HANDLE handle_of(int descriptor) { return reinterpret_cast<HANDLE>(static_cast<std::intptr_t>(descriptor)); }

int descriptor_of(HANDLE handle) {
  return handle == INVALID_HANDLE_VALUE ? fail() : static_cast<int>(reinterpret_cast<std::intptr_t>(handle));
}

// Returns the name of an open file or folder in the kernel, if it begins with a drive; else an empty text.
std::wstring drive_path_of(HANDLE handle) {
  constexpr std::wstring_view kDrives = L"\\??\\";
  alignas(UNICODE_STRING) std::array<std::byte, sizeof(UNICODE_STRING) + (2 << 15)> buffer;
  constexpr auto kObjectName = static_cast<OBJECT_INFORMATION_CLASS>(1);
  if (::NtQueryObject(handle, kObjectName, buffer.data(), buffer.size(), nullptr) != 0) return {};
  const auto& name = *reinterpret_cast<const UNICODE_STRING*>(buffer.data());
  std::wstring path(name.Buffer, name.Length / sizeof(wchar_t));
  return path.starts_with(kDrives) ? L"\\\\?\\" + path.substr(kDrives.size()) : std::wstring();
}

// Returns the path of an open file or folder, with the prefix for long paths; empty on failure.
std::wstring path_of(HANDLE handle) {
  std::wstring path(::GetFinalPathNameByHandleW(handle, nullptr, 0, FILE_NAME_NORMALIZED), L'\0');
  if (path.empty()) return drive_path_of(handle);  // Wine 8 fails for long paths
  path.resize(::GetFinalPathNameByHandleW(handle, path.data(), static_cast<DWORD>(path.size()), FILE_NAME_NORMALIZED));
  return path;
}

bool is_absolute(std::string_view path) {
  const auto is_separator = [](char c) { return c == '/' || c == '\\'; };
  return (path.size() > 2 && path[1] == ':' && is_separator(path[2])) || (!path.empty() && is_separator(path[0]));
}

std::wstring path_at(int folder, const char* path) {
  if (folder == kCurrentFolder || is_absolute(path)) return windows::native_path(path);
  std::wstring name = windows::wide(path);
  std::ranges::replace(name, L'/', L'\\');
  const std::wstring above = path_of(handle_of(folder));
  if (above.empty() || name == L".") return above;  // an empty path is refused by every call
  return above + L"\\" + name;
}

// A time of Windows counts 100 ns since 1601.
std::int64_t nanoseconds(std::int64_t time) { return (time - 116444736000000000) * 100; }
std::int64_t nanoseconds(FILETIME time) {
  return nanoseconds(static_cast<std::int64_t>(std::uint64_t{time.dwHighDateTime} << 32 | time.dwLowDateTime));
}

bool is_link(HANDLE handle) {
  FILE_ATTRIBUTE_TAG_INFO tag;
  return ::GetFileInformationByHandleEx(handle, FileAttributeTagInfo, &tag, sizeof tag) &&
         (tag.FileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0 &&
         (tag.ReparseTag == IO_REPARSE_TAG_SYMLINK || tag.ReparseTag == IO_REPARSE_TAG_MOUNT_POINT);
}

int status_of(HANDLE handle, FileStatus* out) {
  *out = {};
  ::SetLastError(ERROR_SUCCESS);
  const DWORD type = ::GetFileType(handle);
  if (type == FILE_TYPE_UNKNOWN && ::GetLastError() != ERROR_SUCCESS) return fail();
  if (type != FILE_TYPE_DISK) {
    out->kind = type == FILE_TYPE_PIPE ? FileStatus::Kind::kPipe : FileStatus::Kind::kDevice;
    return 0;
  }
  BY_HANDLE_FILE_INFORMATION info;
  if (!::GetFileInformationByHandle(handle, &info)) return fail();
  const bool is_folder = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
  out->kind = is_link(handle) ? FileStatus::Kind::kLink
              : is_folder     ? FileStatus::Kind::kFolder
                              : FileStatus::Kind::kFile;
  out->mode = is_folder ? kFolderMode : kFileMode;
  out->device = info.dwVolumeSerialNumber;
  out->inode = std::uint64_t{info.nFileIndexHigh} << 32 | info.nFileIndexLow;
  out->bytes = std::uint64_t{info.nFileSizeHigh} << 32 | info.nFileSizeLow;
  out->links = info.nNumberOfLinks;
  out->modified = out->changed = nanoseconds(info.ftLastWriteTime);
  if (FILE_BASIC_INFO times; ::GetFileInformationByHandleEx(handle, FileBasicInfo, &times, sizeof times))
    out->changed = nanoseconds(times.ChangeTime.QuadPart);
  if (FILE_STANDARD_INFO sizes; ::GetFileInformationByHandleEx(handle, FileStandardInfo, &sizes, sizeof sizes))
    out->blocks = static_cast<std::uint64_t>(sizes.AllocationSize.QuadPart) / 512;
  out->owner = windows::owner_of(handle);
  return 0;
}

int open(int folder, const char* path, unsigned flags, unsigned) {
  const DWORD access = (flags & kOpenRead ? GENERIC_READ : 0u) | (flags & kOpenWrite ? GENERIC_WRITE : 0u);
  const DWORD how = flags & kOpenCreate ? (flags & kOpenNew ? CREATE_NEW : OPEN_ALWAYS) : OPEN_EXISTING;
  // Overlapped, so that several threads can read and write at the same time.
  const DWORD attributes = FILE_FLAG_OVERLAPPED | (flags & kOpenFolder ? FILE_FLAG_BACKUP_SEMANTICS : 0u) |
                           (flags & kOpenNoFollow ? FILE_FLAG_OPEN_REPARSE_POINT : 0u);
  Handle file(::CreateFileW(path_at(folder, path).c_str(), access, kShared, nullptr, how, attributes, nullptr));
  if (!file) return fail();
  if ((flags & kOpenNoFollow) != 0 && is_link(file.get())) {
    errno = ELOOP;
    return -1;
  }
  if ((flags & kOpenFolder) != 0) {
    FileStatus status;
    if (status_of(file.get(), &status) != 0) return -1;
    if (!status.is_folder()) {
      errno = ENOTDIR;
      return -1;
    }
  }
  FILE_END_OF_FILE_INFO end{};
  if ((flags & kOpenEmpty) != 0 && !::SetFileInformationByHandle(file.get(), FileEndOfFileInfo, &end, sizeof end))
    return fail();
  return descriptor_of(file.release());
}

int reopen_direct(int descriptor, unsigned flags) {
  const DWORD access = flags & kOpenWrite ? GENERIC_WRITE : GENERIC_READ;
  return descriptor_of(
      ::ReOpenFile(handle_of(descriptor), access, kShared, FILE_FLAG_NO_BUFFERING | FILE_FLAG_OVERLAPPED));
}

int status(int descriptor, FileStatus* out) { return status_of(handle_of(descriptor), out); }

int status_at(int folder, const char* path, Links links, FileStatus* out) {
  const std::wstring name = path_at(folder, path);
  const DWORD attributes = FILE_FLAG_BACKUP_SEMANTICS | (links == Links::kNoFollow ? FILE_FLAG_OPEN_REPARSE_POINT : 0u);
  const auto open = [&](DWORD access) {
    return Handle(::CreateFileW(name.c_str(), access, kShared, nullptr, OPEN_EXISTING, attributes, nullptr));
  };
  Handle file = open(FILE_READ_ATTRIBUTES | READ_CONTROL);
  if (!file) file = open(FILE_READ_ATTRIBUTES);
  return file ? status_of(file.get(), out) : fail();
}

// Waits for a read or write that may have been started; returns how many bytes it has transferred.
std::int64_t finish(HANDLE file, OVERLAPPED& operation, BOOL started) {
  if (!started && ::GetLastError() != ERROR_IO_PENDING) return ::GetLastError() == ERROR_HANDLE_EOF ? 0 : fail();
  DWORD bytes = 0;
  if (::GetOverlappedResult(file, &operation, &bytes, TRUE)) return bytes;
  return ::GetLastError() == ERROR_HANDLE_EOF ? 0 : fail();
}

OVERLAPPED operation_at(std::uint64_t offset, const Handle& event) {
  OVERLAPPED operation{};
  operation.Offset = static_cast<DWORD>(offset);
  operation.OffsetHigh = static_cast<DWORD>(offset >> 32);
  operation.hEvent = event.get();
  return operation;
}

constexpr std::size_t kMaxTransfer = 1 << 30;

std::int64_t read(int descriptor, void* into, std::size_t bytes, std::uint64_t offset) {
  const Handle event(::CreateEventW(nullptr, TRUE, FALSE, nullptr));
  OVERLAPPED operation = operation_at(offset, event);
  const HANDLE file = handle_of(descriptor);
  return finish(file, operation,
                ::ReadFile(file, into, static_cast<DWORD>(std::min(bytes, kMaxTransfer)), nullptr, &operation));
}

std::int64_t write(int descriptor, const void* from, std::size_t bytes, std::uint64_t offset) {
  const Handle event(::CreateEventW(nullptr, TRUE, FALSE, nullptr));
  OVERLAPPED operation = operation_at(offset, event);
  const HANDLE file = handle_of(descriptor);
  return finish(file, operation,
                ::WriteFile(file, from, static_cast<DWORD>(std::min(bytes, kMaxTransfer)), nullptr, &operation));
}

int resize(int descriptor, std::uint64_t bytes) {
  FILE_END_OF_FILE_INFO end;
  end.EndOfFile.QuadPart = static_cast<std::int64_t>(bytes);
  return ::SetFileInformationByHandle(handle_of(descriptor), FileEndOfFileInfo, &end, sizeof end) ? 0 : fail();
}

int reserve(int descriptor, std::uint64_t offset, std::uint64_t more) {
  const std::uint64_t bytes = offset + more;
  FILE_ALLOCATION_INFO space;
  space.AllocationSize.QuadPart = static_cast<std::int64_t>(bytes);
  if (!::SetFileInformationByHandle(handle_of(descriptor), FileAllocationInfo, &space, sizeof space)) {
    fail();
    if (errno == EINVAL) errno = ENOSYS;
    return -1;
  }
  return resize(descriptor, bytes);
}

int free_space(int descriptor, std::uint64_t* bytes) {
  std::wstring path = path_of(handle_of(descriptor));
  path.resize(path.rfind(L'\\') + 1);
  ULARGE_INTEGER free;
  if (!::GetDiskFreeSpaceExW(path.c_str(), &free, nullptr, nullptr)) return fail();
  *bytes = free.QuadPart;
  return 0;
}

// Windows does not sync folders; renaming waits until the new name is on the disk.
int sync(int descriptor) {
  if (::FlushFileBuffers(handle_of(descriptor))) return 0;
  FileStatus info;
  const int result = fail();
  const int error = errno;
  if (status(descriptor, &info) == 0 && info.is_folder())
    errno = EINVAL;
  else
    errno = error;
  return result;
}

// Programs that scan every new file, such as those against viruses, may have it open for a moment.
int rename(int from_folder, const char* from, int to_folder, const char* to, Rename how) {
  constexpr DWORD kPauses[] = {10, 30, 100, 300, 0};  // milliseconds
  if (how == Rename::kExchange) {
    errno = EINVAL;
    return -1;
  }
  const std::wstring old_name = path_at(from_folder, from), new_name = path_at(to_folder, to);
  const DWORD flags = MOVEFILE_WRITE_THROUGH | (how == Rename::kReplace ? MOVEFILE_REPLACE_EXISTING : 0u);
  for (const DWORD pause : kPauses) {
    if (::MoveFileExW(old_name.c_str(), new_name.c_str(), flags)) return 0;
    const bool may_be_open = ::GetLastError() == ERROR_SHARING_VIOLATION || ::GetLastError() == ERROR_ACCESS_DENIED;
    if (!may_be_open || pause == 0) break;
    ::Sleep(pause);
  }
  return fail();
}

int link(int from_folder, const char* from, int to_folder, const char* to) {
  return ::CreateHardLinkW(path_at(to_folder, to).c_str(), path_at(from_folder, from).c_str(), nullptr) ? 0 : fail();
}

// Numbers of Windows 10 1607, which the headers of MinGW-w64 10 do not have.
constexpr auto kFileDispositionInfoEx = static_cast<FILE_INFO_BY_HANDLE_CLASS>(21);
constexpr DWORD kDelete = 0x1, kPosixSemantics = 0x2, kIgnoreReadOnly = 0x10;

// The name disappears at once, even while the file is open, if the system is not older.
int remove(int folder, const char* path) {
  const std::wstring name = path_at(folder, path);
  const Handle file(
      ::CreateFileW(name.c_str(), DELETE, kShared, nullptr, OPEN_EXISTING, FILE_FLAG_OPEN_REPARSE_POINT, nullptr));
  DWORD how = kDelete | kPosixSemantics | kIgnoreReadOnly;
  if (file && ::SetFileInformationByHandle(file.get(), kFileDispositionInfoEx, &how, sizeof how)) return 0;
  return ::DeleteFileW(name.c_str()) ? 0 : fail();
}

constexpr SystemCalls kKernelCalls = {
    .open = open,
    .reopen_direct = reopen_direct,
    .status = status,
    .status_at = status_at,
    .set_waiting = [](int) { return 0; },
    .read = read,
    .write = write,
    .reserve = reserve,
    .resize = resize,
    .free_space = free_space,
    .sync = sync,
    .set_mode = [](int, unsigned) { return 0; },  // a file has the permissions that its folder passes on
    .make_folder = [](int folder, const char* path,
                      unsigned) { return ::CreateDirectoryW(path_at(folder, path).c_str(), nullptr) ? 0 : fail(); },
    .rename = rename,
    .link = link,
    .remove = remove,
    .remove_folder = [](int folder,
                        const char* path) { return ::RemoveDirectoryW(path_at(folder, path).c_str()) ? 0 : fail(); },
};

}  // namespace

const SystemCalls& kernel_calls() { return kKernelCalls; }

void close_file(int descriptor) { ::CloseHandle(handle_of(descriptor)); }

std::uint64_t own_user() { return windows::kOwnUser; }

int why_not_writable(const std::string& folder) {
  const Handle opened(::CreateFileW(windows::native_path(folder).c_str(), FILE_ADD_FILE, kShared, nullptr,
                                    OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr));
  return opened ? 0 : windows::errno_of(::GetLastError());
}

unsigned new_file_mode(int) { return kFileMode; }

std::uint64_t most_file_bytes() { return std::numeric_limits<std::int64_t>::max(); }

Descriptor create_nameless(const std::string& folder) {
  std::random_device random;
  const std::string name = folder + "/.ggufmill-spool-" + std::to_string(random());
  return Descriptor(descriptor_of(
      ::CreateFileW(windows::native_path(name).c_str(), GENERIC_READ | GENERIC_WRITE | DELETE, kShared, nullptr,
                    CREATE_NEW, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE | FILE_FLAG_OVERLAPPED, nullptr)));
}

int fill_space(int descriptor, std::uint64_t bytes) {
  if (reserve(descriptor, 0, bytes) == 0) return 0;
  return errno == ENOSYS && resize(descriptor, bytes) == 0 ? 0 : errno;
}

// Locks of Windows forbid others to read and write the locked bytes, so the locked byte is one that no file has.
bool try_lock(int descriptor, Lock lock) {
  const Handle event(::CreateEventW(nullptr, TRUE, FALSE, nullptr));
  OVERLAPPED place = operation_at(std::uint64_t{1} << 62, event);
  const DWORD how = LOCKFILE_FAIL_IMMEDIATELY | (lock == Lock::kExclusive ? LOCKFILE_EXCLUSIVE_LOCK : 0u);
  return ::LockFileEx(handle_of(descriptor), how, 0, 1, 0, &place) || ::GetLastError() != ERROR_LOCK_VIOLATION;
}

bool reserves_slowly(int) { return false; }
std::int64_t read_cached(int, void*, std::size_t, std::uint64_t) { return -1; }
void start_writing_back(int, std::uint64_t, std::uint64_t) {}
void finish_writing_back(int, std::uint64_t, std::uint64_t) {}
void drop_from_cache(int, std::uint64_t, std::uint64_t) {}
std::int64_t copy_in_kernel(int, std::uint64_t, int, std::uint64_t, std::size_t) { return -1; }
bool find_hole(int, std::uint64_t, std::uint64_t, Hole&) { return false; }

}  // namespace ggufmill
