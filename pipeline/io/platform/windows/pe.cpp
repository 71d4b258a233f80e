// Shared libraries in the PE format of Windows.

#include <windows.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "pipeline/io/platform/files.h"
#include "pipeline/io/platform/program.h"

namespace ggufmill {
namespace {

#if defined(__x86_64__)
constexpr WORD kMachine = IMAGE_FILE_MACHINE_AMD64;
#else
constexpr WORD kMachine = IMAGE_FILE_MACHINE_ARM64;
#endif
constexpr std::uint64_t kMaxImageBytes = 1u << 30;  // limit for the memory that a module occupies when loaded
constexpr std::size_t kMaxTableBytes = 64u << 20;   // limit for a table, which is read completely
constexpr const char* kDamaged = "is a damaged DLL";

// An open PE file. Addresses are relative to the beginning of the image (RVA). Every read is checked against the size
// of the file.
class PeFile final : public LibraryImage {
 public:
  // Returns why the file cannot be used; empty if it can.
  std::string read_file(const std::string& path);

  std::optional<Symbol> find(std::string_view name) const override;
  bool read(std::uint64_t address, void* to, std::size_t bytes) const override;
  std::uint64_t read_pointer(std::uint64_t address) const override;

 private:
  bool read_bytes(std::uint64_t offset, void* to, std::size_t bytes) const;
  template <class T>
  bool read_table(std::uint64_t address, std::uint64_t count, std::vector<T>& to) const;
  bool sections_are_valid() const;
  bool relocations_are_valid() const;
  bool imports_are_valid() const;
  std::uint64_t bytes_after(std::uint64_t address) const;
  IMAGE_DATA_DIRECTORY directory(unsigned number) const {
    return number < headers_.OptionalHeader.NumberOfRvaAndSizes ? headers_.OptionalHeader.DataDirectory[number]
                                                                : IMAGE_DATA_DIRECTORY{};
  }

  Descriptor file_;
  std::uint64_t bytes_ = 0;
  IMAGE_NT_HEADERS64 headers_{};
  std::vector<IMAGE_SECTION_HEADER> sections_;
};

bool PeFile::read_bytes(std::uint64_t offset, void* to, std::size_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset) return false;
  return kernel_calls().read(file_.get(), to, bytes, offset) == static_cast<std::int64_t>(bytes);
}

std::string PeFile::read_file(const std::string& path) {
  file_ = Descriptor(kernel_calls().open(kCurrentFolder, path.c_str(), kOpenRead, 0));
  if (!file_) return std::string("cannot be read: ") + std::strerror(errno);
  FileStatus info;
  if (kernel_calls().status(file_.get(), &info) != 0) return kDamaged;
  bytes_ = info.bytes;
  IMAGE_DOS_HEADER dos;
  if (!read_bytes(0, &dos, sizeof dos) || dos.e_magic != IMAGE_DOS_SIGNATURE) return "is not a DLL";
  const auto at = static_cast<std::uint32_t>(dos.e_lfanew);
  if (!read_bytes(at, &headers_, sizeof headers_) || headers_.Signature != IMAGE_NT_SIGNATURE) return "is not a DLL";
  if (headers_.FileHeader.Machine != kMachine || headers_.OptionalHeader.Magic != IMAGE_NT_OPTIONAL_HDR64_MAGIC ||
      (headers_.FileHeader.Characteristics & IMAGE_FILE_DLL) == 0)
    return "is not a DLL for this machine";
  if (headers_.OptionalHeader.NumberOfRvaAndSizes > IMAGE_NUMBEROF_DIRECTORY_ENTRIES ||
      headers_.FileHeader.SizeOfOptionalHeader < sizeof(IMAGE_OPTIONAL_HEADER64))
    return kDamaged;
  sections_.resize(headers_.FileHeader.NumberOfSections);
  const std::uint64_t table =
      at + offsetof(IMAGE_NT_HEADERS64, OptionalHeader) + headers_.FileHeader.SizeOfOptionalHeader;
  if (!read_bytes(table, sections_.data(), sections_.size() * sizeof sections_[0])) return kDamaged;
  return sections_are_valid() && relocations_are_valid() && imports_are_valid() ? std::string() : kDamaged;
}

// The sections are inside the file and the image, sorted, disjoint, and of reasonable size.
bool PeFile::sections_are_valid() const {
  const std::uint64_t image = headers_.OptionalHeader.SizeOfImage;
  std::uint64_t end = headers_.OptionalHeader.SizeOfHeaders;
  if (image > kMaxImageBytes || end > image || sections_.empty()) return false;
  for (const IMAGE_SECTION_HEADER& section : sections_) {
    const std::uint64_t begin = section.VirtualAddress;
    const std::uint64_t bytes = std::max(section.Misc.VirtualSize, section.SizeOfRawData);
    if (begin < end || begin > image || section.Misc.VirtualSize > image - begin || section.PointerToRawData > bytes_ ||
        section.SizeOfRawData > bytes_ - section.PointerToRawData)
      return false;
    end = begin + std::min<std::uint64_t>(bytes, image - begin);
  }
  return true;
}

// Returns the number of bytes of the file from an address to the end of its section; 0 if there are none.
std::uint64_t PeFile::bytes_after(std::uint64_t address) const {
  for (const IMAGE_SECTION_HEADER& section : sections_) {
    const std::uint64_t bytes = std::min(section.Misc.VirtualSize, section.SizeOfRawData);
    if (address >= section.VirtualAddress && address - section.VirtualAddress < bytes)
      return bytes - (address - section.VirtualAddress);
  }
  return 0;
}

bool PeFile::read(std::uint64_t address, void* to, std::size_t bytes) const {
  for (const IMAGE_SECTION_HEADER& section : sections_) {
    if (address < section.VirtualAddress) continue;
    const std::uint64_t inside = address - section.VirtualAddress;
    const std::uint64_t there = std::min(section.Misc.VirtualSize, section.SizeOfRawData);
    if (inside <= there && bytes <= there - inside) return read_bytes(section.PointerToRawData + inside, to, bytes);
  }
  return false;
}

template <class T>
bool PeFile::read_table(std::uint64_t address, std::uint64_t count, std::vector<T>& to) const {
  if (count > kMaxTableBytes / sizeof(T)) return false;
  to.resize(count);
  return count == 0 || read(address, to.data(), count * sizeof(T));
}

// The loader adds the distance from the preferred address to each pointer that a block of 4096 bytes lists, wherever it
// is; these must be in the sections.
bool PeFile::relocations_are_valid() const {
  const IMAGE_DATA_DIRECTORY where = directory(IMAGE_DIRECTORY_ENTRY_BASERELOC);
  std::vector<WORD> entries;
  for (std::uint64_t at = 0; at < where.Size;) {
    IMAGE_BASE_RELOCATION block;
    if (!read(where.VirtualAddress + at, &block, sizeof block)) return false;
    if (block.SizeOfBlock < sizeof block || block.SizeOfBlock > where.Size - at) return false;
    if (!read_table(where.VirtualAddress + at + sizeof block, (block.SizeOfBlock - sizeof block) / 2, entries))
      return false;
    for (const WORD entry : entries) {
      const unsigned kind = entry >> 12;
      if (kind == IMAGE_REL_BASED_ABSOLUTE) continue;  // padding
      std::uint64_t pointer = 0;
      if (kind != IMAGE_REL_BASED_DIR64 || !read(std::uint64_t{block.VirtualAddress} + (entry & 0xfff), &pointer, 8))
        return false;
    }
    at += block.SizeOfBlock;
  }
  return true;
}

// The loader writes the addresses of imported functions into tables that end with null; these must be in the sections.
bool PeFile::imports_are_valid() const {
  const IMAGE_DATA_DIRECTORY where = directory(IMAGE_DIRECTORY_ENTRY_IMPORT);
  if (where.VirtualAddress == 0) return true;
  for (std::uint64_t at = where.VirtualAddress;; at += sizeof(IMAGE_IMPORT_DESCRIPTOR)) {
    IMAGE_IMPORT_DESCRIPTOR library;
    if (!read(at, &library, sizeof library)) return false;
    if (library.Name == 0) return true;
    const std::uint64_t names = library.OriginalFirstThunk != 0 ? library.OriginalFirstThunk : library.FirstThunk;
    for (std::uint64_t i = 0;; ++i) {
      std::uint64_t name = 0, address = 0;
      if (!read(names + 8 * i, &name, 8) || !read(library.FirstThunk + 8 * i, &address, 8)) return false;
      if (name == 0) break;
    }
  }
}

std::optional<LibraryImage::Symbol> PeFile::find(std::string_view name) const {
  const IMAGE_DATA_DIRECTORY where = directory(IMAGE_DIRECTORY_ENTRY_EXPORT);
  IMAGE_EXPORT_DIRECTORY exports;
  std::vector<DWORD> names, addresses;
  std::vector<WORD> numbers;
  if (where.Size < sizeof exports || !read(where.VirtualAddress, &exports, sizeof exports) ||
      !read_table(exports.AddressOfNames, exports.NumberOfNames, names) ||
      !read_table(exports.AddressOfNameOrdinals, exports.NumberOfNames, numbers) ||
      !read_table(exports.AddressOfFunctions, exports.NumberOfFunctions, addresses))
    return {};
  std::string text(name.size() + 1, '\0');
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!read(names[i], text.data(), text.size()) || text.back() != '\0' || name != text.c_str()) continue;
    if (numbers[i] >= addresses.size()) return {};
    const std::uint64_t address = addresses[numbers[i]];
    const bool is_forwarded = address >= where.VirtualAddress && address - where.VirtualAddress < where.Size;
    if (is_forwarded) return {};
    return Symbol{address, bytes_after(address)};
  }
  return {};
}

std::uint64_t PeFile::read_pointer(std::uint64_t address) const {
  std::uint64_t pointer = 0;
  if (!read(address, &pointer, sizeof pointer) || pointer < headers_.OptionalHeader.ImageBase) return 0;
  pointer -= headers_.OptionalHeader.ImageBase;
  return pointer < headers_.OptionalHeader.SizeOfImage ? pointer : 0;
}

}  // namespace

std::unique_ptr<LibraryImage> LibraryImage::open(const std::string& path, std::string& reason) {
  auto file = std::make_unique<PeFile>();
  reason = file->read_file(path);
  if (!reason.empty()) return nullptr;
  return file;
}

}  // namespace ggufmill
