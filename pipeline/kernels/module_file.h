#pragma once
// Reads what a kernel module needs from its ELF file, without loading it: loading runs the constructors of a library,
// which may use the very instructions that the machine lacks.

#include <string>

#include "pipeline/kernels/module_check.h"

namespace ggufmill {

// What lies at the symbol GGUFMILL_SYMBOL of the file.
struct ModuleFile {
  ggufmill_module numbers{};  // its pointers are null
  ModuleWords words;          // read when check_abi() finds `numbers` good
};

// Empty, or why `path` cannot be a module of this machine (of a wrong ABI included). `file` has what was read so far.
// Nothing in the file is believed; it may change while it is read. A file is refused, too, where the loader, which does
// believe it, would write outside of the module's own memory: that would do harm without a crash that a trial could
// see.
std::string read_module_file(const std::string& path, ModuleFile& file);

}  // namespace ggufmill
