#pragma once
// Paths of the running code's installation and program.

#include <string>

namespace ggufmill {

// Returns the folder of the kernel modules and other files installed for this code: "../lib/ggufmill" relative to the
// folder of a program; ggufmill/ or, if it is missing, lib/ggufmill/ next to a library that this code is part of. Empty
// if the system does not report where that is.
std::string own_data_folder();

// Returns true if this program was started by bin/ggufmill of an archive made by `./dev dist`, with the C library and
// the other libraries of that archive.
bool is_in_archive();

// Returns the path of the file that starts this program: the program itself, or bin/ggufmill of its archive.
std::string own_program();

}  // namespace ggufmill
