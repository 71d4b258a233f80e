// Shared libraries in the ELF format.

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/memory.h"
#include "pipeline/io/platform/program.h"

namespace ggufmill {
namespace {

constexpr unsigned char kByteOrder = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB;
#if defined(__x86_64__)
constexpr Elf64_Half kMachine = EM_X86_64;
#elif defined(__aarch64__)
constexpr Elf64_Half kMachine = EM_AARCH64;
#else
constexpr Elf64_Half kMachine = EM_NONE;  // not known here: left to the loader
#endif
constexpr std::size_t kMaxTableBytes = 64u << 20;   // limit for the tables of one kind, which are read completely
constexpr std::uint64_t kMaxImageBytes = 1u << 30;  // limit for the memory that a module occupies when loaded
#if defined(__aarch64__)
constexpr std::uint64_t kCopy = R_AARCH64_COPY, kTwoWords = R_AARCH64_TLSDESC;
#else
constexpr std::uint64_t kCopy = R_X86_64_COPY, kTwoWords = R_X86_64_TLSDESC;
#endif

// An open ELF file with its segments, symbols and relocations. Every read is checked against the size of the file.
class ElfFile final : public LibraryImage {
 public:
  // Returns why the file cannot be used; empty if it can.
  std::string read_file(const std::string& path);
  // Returns true if everything that the loader would write on behalf of the file is in the file's own memory.
  bool keeps_to_itself() const;

  std::optional<Symbol> find(std::string_view name) const override;
  bool read(std::uint64_t address, void* to, std::size_t bytes) const override;
  std::uint64_t read_pointer(std::uint64_t address) const override;

 private:
  bool read_bytes(std::uint64_t offset, void* to, std::size_t bytes) const;
  template <class T>
  bool read_table(std::uint64_t offset, std::uint64_t bytes, std::vector<T>& to) const;
  bool read_section(const Elf64_Shdr& section);
  bool read_dynamic();
  bool read_packed_relocations(std::uint64_t address, std::uint64_t bytes);
  template <class T>
  bool read_image_table(std::uint64_t address, std::uint64_t bytes, std::vector<T>& to) const;
  bool segments_are_valid() const;
  bool is_within(const Elf64_Phdr& part) const;
  bool is_writable(std::uint64_t address, std::uint64_t bytes) const;

  Descriptor file_;
  std::uint64_t bytes_ = 0;
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Sym> symbols_;       // dynamic
  std::vector<char> names_;              // of the symbols
  std::vector<Elf64_Rela> relocations_;  // of the dynamic loader
  std::vector<Elf64_Addr> packed_;       // addresses of the packed relocations (DT_RELR), which add the base
};

bool ElfFile::read_bytes(std::uint64_t offset, void* to, std::size_t bytes) const {
  if (offset > static_cast<std::uint64_t>(INT64_MAX) - bytes) return false;
  return kernel_calls().read(file_.get(), to, bytes, offset) == static_cast<std::int64_t>(bytes);
}

template <class T>
bool ElfFile::read_table(std::uint64_t offset, std::uint64_t bytes, std::vector<T>& to) const {
  const std::size_t old = to.size(), count = bytes / sizeof(T);
  if (bytes > kMaxTableBytes - old * sizeof(T)) return false;
  to.resize(old + count);
  return read_bytes(offset, to.data() + old, count * sizeof(T));
}

bool ElfFile::read_section(const Elf64_Shdr& section) {
  if (section.sh_type != SHT_DYNSYM || !symbols_.empty()) return true;
  if (section.sh_link >= sections_.size()) return false;
  const Elf64_Shdr& names = sections_[section.sh_link];
  return read_table(section.sh_offset, section.sh_size, symbols_) && read_table(names.sh_offset, names.sh_size, names_);
}

std::string ElfFile::read_file(const std::string& path) {
  file_ = Descriptor(kernel_calls().open(kCurrentFolder, path.c_str(), kOpenRead | kOpenNoWaiting, 0));
  if (!file_) return fmt::format("cannot be read: {}", std::strerror(errno));
  Elf64_Ehdr header;
  if (!read_bytes(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return "is not an ELF file";
  const bool own_machine = kMachine == EM_NONE || header.e_machine == kMachine;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kByteOrder || !own_machine ||
      header.e_type != ET_DYN)
    return "is not a shared library for this machine";
  FileStatus info;
  if (kernel_calls().status(file_.get(), &info) != 0) return "is a damaged ELF file";
  bytes_ = info.bytes;
  if (!read_table(header.e_phoff, std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr), segments_) ||
      !read_table(header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr), sections_))
    return "is a damaged ELF file";
  for (const Elf64_Shdr& section : sections_)
    if (!read_section(section)) return "is a damaged ELF file";
  if (!read_dynamic()) return "is a damaged ELF file";
  names_.push_back('\0');
  return {};
}

template <class T>
bool ElfFile::read_image_table(std::uint64_t address, std::uint64_t bytes, std::vector<T>& to) const {
  const std::size_t old = to.size(), count = bytes / sizeof(T);
  if (bytes > kMaxTableBytes - old * sizeof(T)) return false;
  to.resize(old + count);
  return count == 0 || read(address, to.data() + old, count * sizeof(T));
}

// Reads the relocations that the loader will process: it uses the dynamic segment, not the sections.
bool ElfFile::read_dynamic() {
  std::vector<Elf64_Dyn> entries;
  for (const Elf64_Phdr& segment : segments_)
    if (segment.p_type == PT_DYNAMIC && !read_image_table(segment.p_vaddr, segment.p_filesz, entries)) return false;
  const auto value = [&](Elf64_Sxword tag) {
    std::uint64_t found = 0;
    for (const Elf64_Dyn& entry : entries) {
      if (entry.d_tag == DT_NULL) break;
      if (entry.d_tag == tag) found = entry.d_un.d_val;  // if there are several, the loader uses the last
    }
    return found;
  };
  return read_image_table(value(DT_RELA), value(DT_RELASZ), relocations_) &&
         read_image_table(value(DT_JMPREL), value(DT_PLTRELSZ), relocations_) &&
         read_packed_relocations(value(DT_RELR), value(DT_RELRSZ));
}

// An even entry is an address; an odd one is a bitmap of which of the next 63 words are relocated as well.
bool ElfFile::read_packed_relocations(std::uint64_t address, std::uint64_t bytes) {
  constexpr std::uint64_t kWord = sizeof(Elf64_Addr), kMapped = 8 * kWord - 1;
  std::vector<Elf64_Addr> entries;
  if (!read_image_table(address, bytes, entries)) return false;
  std::uint64_t next = 0;
  for (const Elf64_Addr entry : entries) {
    if ((entry & 1) == 0) {
      packed_.push_back(entry);
      next = entry + kWord;
      continue;
    }
    for (std::uint64_t bit = 0; bit < kMapped; ++bit)
      if (entry >> (bit + 1) & 1) packed_.push_back(next + bit * kWord);
    next += kMapped * kWord;
  }
  return true;
}

// Returns true if the loadable segments are inside the file, sorted, disjoint and of reasonable size: the loader maps
// each over whatever is at its address.
bool ElfFile::segments_are_valid() const {
  const std::uint64_t page = std::uint64_t{page_bytes()};
  std::uint64_t end = 0, pages_end = 0;
  bool first = true;
  std::uint64_t begin = 0;
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_LOAD) continue;
    if (segment.p_filesz > segment.p_memsz || segment.p_filesz > bytes_ ||
        segment.p_offset > bytes_ - segment.p_filesz || segment.p_memsz > kMaxImageBytes)
      return false;
    if (first) begin = segment.p_vaddr;
    if (!first && segment.p_vaddr / page * page < pages_end) return false;
    first = false;
    if (__builtin_add_overflow(segment.p_vaddr, segment.p_memsz, &end) || end - begin > kMaxImageBytes) return false;
    pages_end = (end + page - 1) / page * page;
  }
  return !first;
}

// Returns true if a segment that must be part of a loadable one (dynamic, read-only after relocation) is.
bool ElfFile::is_within(const Elf64_Phdr& part) const {
  const std::uint64_t page = std::uint64_t{page_bytes()};
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_LOAD || part.p_vaddr < segment.p_vaddr) continue;
    const std::uint64_t inside = part.p_vaddr - segment.p_vaddr;
    // linkers round up the end of the read-only part
    const std::uint64_t room = (segment.p_memsz + page - 1) / page * page;
    if (inside <= room && part.p_memsz <= room - inside && part.p_filesz <= part.p_memsz) return true;
  }
  return false;
}

bool ElfFile::is_writable(std::uint64_t address, std::uint64_t bytes) const {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_LOAD || !(segment.p_flags & PF_W) || address < segment.p_vaddr) continue;
    const std::uint64_t inside = address - segment.p_vaddr;
    if (inside <= segment.p_memsz && bytes <= segment.p_memsz - inside) return true;
  }
  return false;
}

bool ElfFile::keeps_to_itself() const {
  if (!segments_are_valid()) return false;
  for (const Elf64_Phdr& segment : segments_)
    if ((segment.p_type == PT_DYNAMIC || segment.p_type == PT_GNU_RELRO) && !is_within(segment)) return false;
  for (const Elf64_Rela& relocation : relocations_) {
    const std::uint64_t type = ELF64_R_TYPE(relocation.r_info);  // a copy has the length of a symbol of another library
    if (type == kCopy || !is_writable(relocation.r_offset, type == kTwoWords ? 16 : 8)) return false;
  }
  return std::all_of(packed_.begin(), packed_.end(), [&](Elf64_Addr address) { return is_writable(address, 8); });
}

std::optional<LibraryImage::Symbol> ElfFile::find(std::string_view name) const {
  for (const Elf64_Sym& symbol : symbols_)
    if (symbol.st_shndx != SHN_UNDEF && symbol.st_name < names_.size() && name == &names_[symbol.st_name])
      return Symbol{symbol.st_value, symbol.st_size};
  return {};
}

bool ElfFile::read(std::uint64_t address, void* to, std::size_t bytes) const {
  for (const Elf64_Phdr& segment : segments_) {
    if (segment.p_type != PT_LOAD || address < segment.p_vaddr) continue;
    const std::uint64_t inside = address - segment.p_vaddr;
    if (inside <= segment.p_filesz && bytes <= segment.p_filesz - inside)
      return segment.p_offset <= UINT64_MAX - inside && read_bytes(segment.p_offset + inside, to, bytes);
  }
  return false;
}

// A library is linked without knowing its load address: the loader adds the base to the addend of a relocation or, if
// the relocations are packed (DT_RELR), to the value in the image.
std::uint64_t ElfFile::read_pointer(std::uint64_t address) const {
  for (const Elf64_Rela& relocation : relocations_) {
    if (relocation.r_offset != address) continue;
    const std::size_t index = ELF64_R_SYM(relocation.r_info);
    const std::uint64_t addend = static_cast<std::uint64_t>(relocation.r_addend);
    if (index == 0) return addend;
    return index < symbols_.size() && symbols_[index].st_shndx != SHN_UNDEF ? symbols_[index].st_value + addend : 0;
  }
  std::uintptr_t in_place = 0;
  return read(address, &in_place, sizeof in_place) ? in_place : 0;
}

}  // namespace

std::unique_ptr<LibraryImage> LibraryImage::open(const std::string& path, std::string& reason) {
  auto file = std::make_unique<ElfFile>();
  reason = file->read_file(path);
  if (reason.empty() && !file->keeps_to_itself()) reason = "is a damaged ELF file";
  if (!reason.empty()) return nullptr;
  return file;
}

}  // namespace ggufmill
