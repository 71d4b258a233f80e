#pragma once
// The reference kernels, linked in: scalar, for any machine. They are the specification: what another module computes
// must have their bytes. The same sources make the loadable module reference.so, which exports ggufmill_kernels_v1.

#include "plugins/abi/ggufmill_kernels.h"

extern "C" const ggufmill_module ggufmill_reference_module;
