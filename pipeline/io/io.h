#pragma once
// File input and output for everyone else: sources, atomic output files, background reads and writes, buffers and
// the byte budget. Each idea has its header; this one gives all of them.

#include "pipeline/io/atomic_file.h"
#include "pipeline/io/input_file.h"
#include "pipeline/io/io_service.h"
#include "pipeline/io/memory.h"
#include "pipeline/io/source_path.h"
