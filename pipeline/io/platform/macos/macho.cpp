// Shared libraries in the Mach-O format. Unproven: compiled with stub headers, never run.

#include <mach-o/fixup-chains.h>
#include <mach-o/loader.h>
#include <mach-o/nlist.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/program.h"

namespace ggufmill {
namespace {

#if defined(__x86_64__)
constexpr cpu_type_t kMachine = CPU_TYPE_X86_64;
#else
constexpr cpu_type_t kMachine = CPU_TYPE_ARM64;
#endif
constexpr std::size_t kMaxTableBytes = 64u << 20;   // limit for a table, which is read completely
constexpr std::uint64_t kMaxImageBytes = 1u << 30;  // limit for the memory that a module occupies when loaded
constexpr const char* kDamaged = "is a damaged Mach-O file";

// An open Mach-O file. Addresses are those for which it is linked. Every read is checked against the size of the file.
class MachFile final : public LibraryImage {
 public:
  // Returns why the file cannot be used; empty if it can.
  std::string read_file(const std::string& path);

  std::optional<Symbol> find(std::string_view name) const override;
  bool read(std::uint64_t address, void* to, std::size_t bytes) const override;
  std::uint64_t read_pointer(std::uint64_t address) const override;

 private:
  bool read_bytes(std::uint64_t offset, void* to, std::size_t bytes) const;
  template <class T>
  bool read_table(std::uint64_t offset, std::uint64_t count, std::vector<T>& to) const;
  bool read_commands(const mach_header_64& header);
  bool read_symbols(const symtab_command& symbols);
  bool read_pointer_format(const linkedit_data_command& fixups);
  bool segments_are_valid() const;

  Descriptor file_;
  std::uint64_t bytes_ = 0;
  std::vector<segment_command_64> segments_;
  std::vector<nlist_64> symbols_;
  std::vector<char> names_;           // of the symbols
  std::uint16_t pointer_format_ = 0;  // of chained fixups; 0: pointers are stored as they are
};

bool MachFile::read_bytes(std::uint64_t offset, void* to, std::size_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset) return false;
  return kernel_calls().read(file_.get(), to, bytes, offset) == static_cast<std::int64_t>(bytes);
}

template <class T>
bool MachFile::read_table(std::uint64_t offset, std::uint64_t count, std::vector<T>& to) const {
  if (count > kMaxTableBytes / sizeof(T)) return false;
  to.resize(count);
  return read_bytes(offset, to.data(), count * sizeof(T));
}

std::string MachFile::read_file(const std::string& path) {
  file_ = Descriptor(kernel_calls().open(kCurrentFolder, path.c_str(), kOpenRead | kOpenNoWaiting, 0));
  if (!file_) return std::string("cannot be read: ") + std::strerror(errno);
  FileStatus info;
  if (kernel_calls().status(file_.get(), &info) != 0) return kDamaged;
  bytes_ = info.bytes;
  mach_header_64 header;
  if (!read_bytes(0, &header, sizeof header) || header.magic != MH_MAGIC_64) return "is not a Mach-O file of 64 bits";
  if (header.cputype != kMachine || (header.filetype != MH_DYLIB && header.filetype != MH_BUNDLE))
    return "is not a shared library for this machine";
  return read_commands(header) && segments_are_valid() ? std::string() : kDamaged;
}

bool MachFile::read_commands(const mach_header_64& header) {
  std::vector<char> commands;
  if (!read_table(sizeof header, header.sizeofcmds, commands)) return false;
  for (std::size_t at = 0, i = 0; i < header.ncmds; ++i) {
    load_command command;
    if (sizeof command > commands.size() - at) return false;
    std::memcpy(&command, commands.data() + at, sizeof command);
    if (command.cmdsize < sizeof command || command.cmdsize > commands.size() - at) return false;
    const auto copy_to = [&](auto& target) {
      if (command.cmdsize < sizeof target) return false;
      std::memcpy(&target, commands.data() + at, sizeof target);
      return true;
    };
    if (command.cmd == LC_SEGMENT_64) {
      if (!copy_to(segments_.emplace_back())) return false;
    } else if (command.cmd == LC_SYMTAB) {
      symtab_command symbols;
      if (!copy_to(symbols) || !read_symbols(symbols)) return false;
    } else if (command.cmd == LC_DYLD_CHAINED_FIXUPS) {
      linkedit_data_command fixups;
      if (!copy_to(fixups) || !read_pointer_format(fixups)) return false;
    }
    at += command.cmdsize;
  }
  return true;
}

bool MachFile::read_symbols(const symtab_command& symbols) {
  if (!read_table(symbols.symoff, symbols.nsyms, symbols_) || !read_table(symbols.stroff, symbols.strsize, names_))
    return false;
  names_.push_back('\0');
  return true;
}

// All segments of a library use the same format.
bool MachFile::read_pointer_format(const linkedit_data_command& fixups) {
  dyld_chained_fixups_header header;
  std::uint32_t count = 0;
  std::vector<std::uint32_t> offsets;
  if (!read_bytes(fixups.dataoff, &header, sizeof header)) return false;
  const std::uint64_t starts = std::uint64_t{fixups.dataoff} + header.starts_offset;
  if (!read_bytes(starts, &count, sizeof count) || !read_table(starts + sizeof count, count, offsets)) return false;
  for (const std::uint32_t offset : offsets) {
    dyld_chained_starts_in_segment segment;
    if (offset == 0) continue;
    if (!read_bytes(starts + offset, &segment, sizeof segment)) return false;
    pointer_format_ = segment.pointer_format;
  }
  return true;
}

bool MachFile::segments_are_valid() const {
  std::uint64_t end = 0;
  for (const segment_command_64& segment : segments_) {
    if (segment.fileoff > bytes_ || segment.filesize > bytes_ - segment.fileoff || segment.filesize > segment.vmsize ||
        segment.vmaddr < end || segment.vmsize > kMaxImageBytes || segment.vmaddr > kMaxImageBytes)
      return false;
    end = segment.vmaddr + segment.vmsize;
  }
  return !segments_.empty();
}

// Symbols of C have a leading underscore.
std::optional<LibraryImage::Symbol> MachFile::find(std::string_view name) const {
  for (const nlist_64& symbol : symbols_) {
    const bool is_exported = (symbol.n_type & N_EXT) != 0 && (symbol.n_type & N_TYPE) == N_SECT;
    if (!is_exported || symbol.n_un.n_strx >= names_.size()) continue;
    const std::string_view own = &names_[symbol.n_un.n_strx];
    if (own.empty() || own[0] != '_' || own.substr(1) != name) continue;
    for (const segment_command_64& segment : segments_)
      if (symbol.n_value >= segment.vmaddr && symbol.n_value - segment.vmaddr < segment.filesize)
        return Symbol{symbol.n_value, segment.filesize - (symbol.n_value - segment.vmaddr)};
  }
  return {};
}

bool MachFile::read(std::uint64_t address, void* to, std::size_t bytes) const {
  for (const segment_command_64& segment : segments_) {
    if (address < segment.vmaddr) continue;
    const std::uint64_t inside = address - segment.vmaddr;
    if (inside <= segment.filesize && bytes <= segment.filesize - inside)
      return read_bytes(segment.fileoff + inside, to, bytes);
  }
  return false;
}

// A chained pointer has its target in the lower 36 bits, and in the highest one whether it is of another library.
std::uint64_t MachFile::read_pointer(std::uint64_t address) const {
  constexpr std::uint64_t kTarget = (std::uint64_t{1} << 36) - 1, kBind = std::uint64_t{1} << 63;
  std::uint64_t pointer = 0;
  if (!read(address, &pointer, sizeof pointer)) return 0;
  if (pointer_format_ == 0) return pointer;
  if (pointer_format_ != DYLD_CHAINED_PTR_64 && pointer_format_ != DYLD_CHAINED_PTR_64_OFFSET) return 0;
  if ((pointer & kBind) != 0) return 0;
  const std::uint64_t base = pointer_format_ == DYLD_CHAINED_PTR_64_OFFSET ? segments_.front().vmaddr : 0;
  return base + (pointer & kTarget);
}

}  // namespace

std::unique_ptr<LibraryImage> LibraryImage::open(const std::string& path, std::string& reason) {
  auto file = std::make_unique<MachFile>();
  reason = file->read_file(path);
  if (!reason.empty()) return nullptr;
  return file;
}

}  // namespace ggufmill
