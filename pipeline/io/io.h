#pragma once
// File I/O for the other modules: sources, atomic output files, background reads and writes, buffers and the memory
// budget. Each has its own header; this one includes them all.

#include "pipeline/io/atomic_file.h"
#include "pipeline/io/input_file.h"
#include "pipeline/io/io_service.h"
#include "pipeline/io/memory.h"
#include "pipeline/io/source_path.h"
