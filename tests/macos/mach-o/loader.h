#pragma once

#include <stdint.h>

typedef int cpu_type_t;
#define CPU_TYPE_X86_64 0x01000007
#define CPU_TYPE_ARM64 0x0100000c
#define MH_MAGIC_64 0xfeedfacfu
#define MH_EXECUTE 2
#define MH_DYLIB 6
#define MH_BUNDLE 8
#define LC_SYMTAB 0x2
#define LC_SEGMENT_64 0x19
#define LC_DYLD_CHAINED_FIXUPS 0x80000034u

struct mach_header_64 {
  uint32_t magic;
  cpu_type_t cputype;
  int32_t cpusubtype;
  uint32_t filetype, ncmds, sizeofcmds, flags, reserved;
};
struct load_command {
  uint32_t cmd, cmdsize;
};
struct segment_command_64 {
  uint32_t cmd, cmdsize;
  char segname[16];
  uint64_t vmaddr, vmsize, fileoff, filesize;
  int32_t maxprot, initprot;
  uint32_t nsects, flags;
};
struct symtab_command {
  uint32_t cmd, cmdsize, symoff, nsyms, stroff, strsize;
};
struct linkedit_data_command {
  uint32_t cmd, cmdsize, dataoff, datasize;
};
