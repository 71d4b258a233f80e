#pragma once

#include <stdint.h>

#define DYLD_CHAINED_PTR_64 2
#define DYLD_CHAINED_PTR_64_OFFSET 6

struct dyld_chained_fixups_header {
  uint32_t fixups_version, starts_offset, imports_offset, symbols_offset, imports_count, imports_format, symbols_format;
};
struct dyld_chained_starts_in_segment {
  uint32_t size;
  uint16_t page_size, pointer_format;
  uint64_t segment_offset;
  uint32_t max_valid_pointer;
  uint16_t page_count, page_start[1];
};
