#pragma once
// Sources and outputs that cost nothing, for paths that begin with nothing://. Reads leave the memory as it is, and
// writes drop the bytes; both otherwise go the way of cached local files: a read succeeds at once, a write is done by
// the threads of the I/O service.

#include <string>

namespace ggufmill::bench {

// Adds the scheme to those of sources and of outputs. Runs keep their journals in the folder `journals`, on this
// machine. Called once, before either is used.
void add_no_io(const std::string& journals);
// From now on, each output file takes `rate` bytes per second in total, however many write to it; 0: no limit.
void set_file_rate(double rate);

}  // namespace ggufmill::bench
