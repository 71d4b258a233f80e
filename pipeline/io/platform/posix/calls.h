#pragma once
// Calls that differ between the POSIX systems, as in section 2 of the manual. Linux and macOS have their own
// definitions; posix/fallback_files.cpp has those for any other.

#include <sys/types.h>

#include "pipeline/io/platform/files.h"

namespace ggufmill::posix {

int reopen_direct(int descriptor, unsigned flags);
int reserve(int descriptor, std::uint64_t offset, std::uint64_t bytes);
int sync(int descriptor);
int rename(int from_folder, const char* from, int to_folder, const char* to, Rename how);

// Creates a pipe that programs which this process starts do not inherit; returns -1 and sets errno on failure.
int make_pipe(int ends[2]);

// Called in a child after fork(): lets it be killed when its parent ends, if the system can do that. Returns false,
// with errno, if the parent has ended already.
bool end_with(pid_t parent);

// Returns the descriptor of an open folder, or AT_FDCWD.
int at(int folder);

}  // namespace ggufmill::posix
