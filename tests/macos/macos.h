// Declarations that macOS adds to the headers of POSIX, with the names and types of its manual pages, so that
// pipeline/io/platform/macos can be compiled on Linux. Numbers are arbitrary: nothing that is compiled with them runs.
#pragma once

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define MAXPATHLEN 1024
#define F_GETPATH 50
#define F_NOCACHE 48
#define F_FULLFSYNC 51
#define F_PREALLOCATE 42
#define F_ALLOCATECONTIG 2
#define F_ALLOCATEALL 4
#define F_PEOFPOSMODE 3
#define RENAME_SWAP 2
#define RENAME_EXCL 4
#define st_mtimespec st_mtim
#define st_ctimespec st_ctim

struct fstore_t {
  unsigned fst_flags;
  int fst_posmode;
  off_t fst_offset, fst_length, fst_bytesalloc;
};

extern "C" int renameatx_np(int from_folder, const char* from, int to_folder, const char* to, unsigned flags);
