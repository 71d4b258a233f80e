#pragma once
// The program: looks a verb up and runs it.

#include <string>
#include <vector>

namespace ggufmill {

// Runs `ggufmill ARGUMENTS...` in this process and returns its exit code. Prints errors, those of exceptions included.
int run_program(const std::vector<std::string>& arguments);

// The same for the arguments of main(). Also changes settings of the process: how memory is allocated, and the signals
// SIGPIPE and SIGXFSZ, which are ignored.
int run_program(int argc, char** argv);

// Returns the text of `ggufmill --version --verbose`: the version of the program, those of the libraries that it uses,
// and where it finds its files.
std::string verbose_version();

}  // namespace ggufmill
