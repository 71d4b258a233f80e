#pragma once
// The code of this program, and shared libraries.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace ggufmill {

// ---- this program ----

// Returns the file that this code is mapped from: libggufmill, or a program or extension module that links it
// statically. Empty if the system does not report it.
const std::string& own_file();
// Returns true if this code is part of the program, not of a library that the program has loaded.
bool is_in_program();
// Returns true if the program was not started by the kernel, but by a loader that was given it as an argument.
bool is_started_by_loader();

// ---- shared libraries ----

// Returns true if the name of a file has the ending of a shared library.
bool is_library_name(std::string_view name);
// Loads a library, which runs its constructors. Returns null on failure, with text for a message in `reason`. Throws
// std::bad_alloc if memory runs out.
std::shared_ptr<void> open_library(const std::string& path, std::string& reason);
// Returns the address of an exported symbol, or null.
const void* find_symbol(void* library, const char* name);

// Returns why somebody else may have put a file or folder there or may change it, as text for a message: "everyone may
// write to it". Empty if only this user, root, and the owner of ggufmill may. Links are followed, and the folders above
// it are checked as well. This is the rule for everything that decides what runs for this user: kernel modules, and the
// folders of cluster jobs.
std::string why_untrusted(const std::string& path);
// Returns why no code may be loaded from a file or folder. Empty if it is safe: why_untrusted() is, except that the
// group of ggufmill's own modules (`is_own`) and the folders above them are not checked, because anyone who may replace
// them may replace ggufmill itself.
std::string why_unsafe_to_load(const std::string& path, bool is_own);

// A shared library, read as a file without loading it. Nothing in the file is trusted, and it may change while it is
// read. Addresses are those of the image that the loader would create.
class LibraryImage {
 public:
  struct Symbol {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;  // at least those of the symbol that are in the file
  };

  // Returns null, with text for a message in `reason`, if it is not a shared library of this machine, or if it would
  // make the loader, which does trust it, write outside of the library's own memory.
  static std::unique_ptr<LibraryImage> open(const std::string& path, std::string& reason);
  virtual ~LibraryImage() = default;

  virtual std::optional<Symbol> find(std::string_view name) const = 0;  // exported ones
  // Reads `bytes` bytes of the image; returns false if the file does not contain them.
  virtual bool read(std::uint64_t address, void* to, std::size_t bytes) const = 0;
  // Returns the pointer at `address` of the image, as an address of the image; 0 for null.
  virtual std::uint64_t read_pointer(std::uint64_t address) const = 0;
};

}  // namespace ggufmill
