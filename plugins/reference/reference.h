#pragma once
// The reference kernels, linked into the program: scalar code for any machine. They are the specification: every other
// module must produce the same bytes. The loadable module reference.so, which exports ggufmill_kernels_v1, is built
// from the same sources.

#include "plugins/abi/ggufmill_kernels.h"
#include "plugins/abi/ggufmill_lattice.h"

// Every type that has a search has one here.
extern "C" const ggufmill_module ggufmill_reference_module;
extern "C" const ggufmill_lattice_table ggufmill_reference_lattices;
