#pragma once
// Reads the description of a kernel module from its ELF file, without loading it: loading runs the constructors of a
// library, which may use the very instructions that the machine does not support.

#include <string>

#include "pipeline/kernels/module_check.h"

namespace ggufmill {

// Reason to refuse a library that is not a kernel module, or that hides its description.
inline constexpr const char* kExportsNothing = "is not a kernel module: it exports no symbol " GGUFMILL_SYMBOL
                                               " (with -fvisibility=hidden, its declaration needs GGUFMILL_EXPORT)";

// Contents of the symbol GGUFMILL_SYMBOL of the file.
struct ModuleFile {
  ggufmill_module numbers{};  // its pointers are null
  ModuleWords words;          // read if check_abi() accepts `numbers`
};

// Returns the reason why `path` cannot be a module of this machine (including a wrong ABI), or an empty string. `file`
// contains the parts read so far. The file's contents are not trusted, and may change while they are read. A file is
// also refused if it would make the loader, which does trust it, write outside of the module's own memory: that would
// do damage without a crash that a trial could detect.
std::string read_module_file(const std::string& path, ModuleFile& file);

}  // namespace ggufmill
