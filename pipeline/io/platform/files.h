#pragma once
// Files of the operating system. Calls that can fail for external reasons are in a table, so that a test can make the
// k-th call fail for every k (as SQLite's tests do). Paths are UTF-8. Thread-safe.

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

namespace ggufmill {

// Attributes of a file.
struct FileStatus {
  enum class Kind : std::uint8_t { kFile, kFolder, kLink, kPipe, kSocket, kDevice };

  Kind kind = Kind::kDevice;
  unsigned mode = 0;                    // permissions, the lower 12 bits of a POSIX mode
  std::uint64_t device = 0, inode = 0;  // identify the file, independent of its name
  std::uint64_t bytes = 0;
  std::uint64_t blocks = 0;                // allocated, of 512 bytes
  std::uint64_t links = 0;                 // number of names
  std::uint64_t owner = 0, group = 0;      // as own_user() counts users
  std::int64_t modified = 0, changed = 0;  // mtime and ctime, in nanoseconds since 1970

  bool is_file() const { return kind == Kind::kFile; }
  bool is_folder() const { return kind == Kind::kFolder; }
  bool is_link() const { return kind == Kind::kLink; }
  bool is_same_file(const FileStatus& other) const { return device == other.device && inode == other.inode; }
};

// Bits of a FileStatus::mode.
inline constexpr unsigned kPermissions = 0777, kGroupMayWrite = 0020, kOthersMayWrite = 0002;

// Ways to open a file. Programs that this process starts never inherit it.
enum OpenFlags : unsigned {
  kOpenRead = 1,
  kOpenWrite = 2,
  kOpenReadWrite = kOpenRead | kOpenWrite,
  kOpenCreate = 4,     // if it is missing
  kOpenNew = 8,        // with kOpenCreate: fail with EEXIST if it exists
  kOpenEmpty = 16,     // truncate it
  kOpenNoFollow = 32,  // fail with ELOOP if it is a symbolic link
  kOpenFolder = 64,    // fail with ENOTDIR if it is not a folder
  // Neither wait for the other end of a pipe nor take a terminal over; see SystemCalls::set_waiting.
  kOpenNoWaiting = 128
};

enum class Links { kFollow, kNoFollow };

// Treatment of an existing file of the new name.
enum class Rename {
  kReplace,
  kNew,       // fail with EEXIST; EINVAL or ENOSYS if the file system cannot do that
  kExchange,  // swap the two names; same errors
};

// Stands for the current folder in place of an open one.
inline constexpr int kCurrentFolder = -100;

// Each call returns a negative number and sets errno on failure. `folder` is an open folder or kCurrentFolder, to which
// a relative `path` refers.
struct SystemCalls {
  int (*open)(int folder, const char* path, unsigned flags, unsigned mode);
  // Opens the file of a descriptor again, regardless of its current name, to read or write it past the page cache.
  // EINVAL if the file system does not support that.
  int (*reopen_direct)(int descriptor, unsigned flags);
  int (*status)(int descriptor, FileStatus* out);
  int (*status_at)(int folder, const char* path, Links links, FileStatus* out);
  int (*set_waiting)(int descriptor);  // ends the effect of kOpenNoWaiting, which io_uring does not tolerate
  std::int64_t (*read)(int descriptor, void* into, std::size_t bytes, std::uint64_t offset);
  std::int64_t (*write)(int descriptor, const void* from, std::size_t bytes, std::uint64_t offset);
  // Allocates `bytes` bytes at `offset` on the disk and extends the file to them; some systems allocate all before them
  // as well. EOPNOTSUPP or ENOSYS if the file system cannot do that.
  int (*reserve)(int descriptor, std::uint64_t offset, std::uint64_t bytes);
  int (*resize)(int descriptor, std::uint64_t bytes);
  int (*free_space)(int descriptor, std::uint64_t* bytes);  // that this user may occupy
  // Returns once the file, or the entries of a folder, will survive a power cut. EINVAL if the file system cannot do
  // that.
  int (*sync)(int descriptor);
  int (*set_mode)(int descriptor, unsigned mode);
  int (*make_folder)(int folder, const char* path, unsigned mode);
  int (*rename)(int from_folder, const char* from, int to_folder, const char* to, Rename how);
  int (*link)(int from_folder, const char* from, int to_folder, const char* to);
  int (*remove)(int folder, const char* path);
  int (*remove_folder)(int folder, const char* path);
};

// Returns the kernel's own calls.
const SystemCalls& kernel_calls();
// Returns the calls in use: the kernel's, unless a test has replaced them.
const SystemCalls& system_calls();
// For tests; null restores the kernel's calls. `calls` must outlive its use.
void set_system_calls(const SystemCalls* calls);

// Repeats a call that was interrupted by a signal.
template <class Call>
auto retry(Call&& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

void close_file(int descriptor);

// Owner of one file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  // The result of closing does not matter here: data that must reach the disk has already been synced.
  ~Descriptor() {
    if (value_ >= 0) close_file(value_);
  }

  int get() const { return value_; }
  int release() { return std::exchange(value_, -1); }
  explicit operator bool() const { return value_ >= 0; }

 private:
  int value_;
};

// The calls in use, repeated after interruptions. Return an empty descriptor or false, and set errno, on failure.
Descriptor open_file(int folder, const std::string& path, unsigned flags, unsigned mode = 0);
bool get_status(int descriptor, FileStatus& out);
bool get_status(int folder, const std::string& path, Links links, FileStatus& out);
bool remove_file(int folder, const std::string& path);

// ---- what tests do not replace ----

// Number of this user in FileStatus::owner.
std::uint64_t own_user();
// Returns 0 if this user may create files in the folder, else errno.
int why_not_writable(const std::string& folder);
// Permissions of a file that a program creates in the open folder without restricting them.
unsigned new_file_mode(int folder);
// Largest size of a file that this process may write.
std::uint64_t most_file_bytes();
// Creates a file without a name in the folder, which disappears when it is closed. Empty, with errno, on failure.
Descriptor create_nameless(const std::string& folder);
// Returns true if reserving space takes most of the time of writing, since each page is allocated (tmpfs).
bool reserves_slowly(int descriptor);
// Allocates the first `bytes` bytes on the disk, by writing them if there is no faster way. Returns 0 or errno.
int fill_space(int descriptor, std::uint64_t bytes);

enum class Lock { kShared, kExclusive };
// Returns false if another open file of this or another process has a conflicting lock. Returns true if the lock is
// held until the descriptor is closed, or if the file system does not support locks.
bool try_lock(int descriptor, Lock lock);

// Reads bytes that are in the page cache. Returns 0 or less if the first of them is not, or if the system cannot tell.
std::int64_t read_cached(int descriptor, void* into, std::size_t bytes, std::uint64_t offset);
// Hints, which a system may ignore: start writing a range of dirty pages to the disk; wait until they are written; drop
// clean pages from the cache.
void start_writing_back(int descriptor, std::uint64_t offset, std::uint64_t bytes);
void finish_writing_back(int descriptor, std::uint64_t offset, std::uint64_t bytes);
void drop_from_cache(int descriptor, std::uint64_t offset, std::uint64_t bytes);
// Copies bytes between files within the kernel. Returns how many; 0 or less if they have to be copied otherwise.
std::int64_t copy_in_kernel(int from, std::uint64_t from_offset, int to, std::uint64_t to_offset, std::size_t bytes);

// Range of a file without allocated space, which reads as zeros.
struct Hole {
  std::uint64_t begin = 0, end = 0;
};
// Finds the first hole that begins at or after `from` in a file of `bytes` bytes. Returns false if there is none, or if
// the file system does not report holes.
bool find_hole(int descriptor, std::uint64_t from, std::uint64_t bytes, Hole& hole);

}  // namespace ggufmill
