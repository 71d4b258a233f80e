#pragma once
// Formats the results of the benchmarks for people and for programs.

#include <string>
#include <vector>

#include "tests/bench/file_bench.h"
#include "tests/bench/kernel_bench.h"

namespace ggufmill::bench {

struct Report {
  std::vector<KernelRow> kernels;
  std::vector<FileTime> files;
};

// Returns tables with one line per row and a group of columns per contender: encoders, then decoders, then the number
// of targets met. Empty if there are no rows.
std::string kernel_tables(const std::vector<KernelRow>& rows);
// Returns a line for each type and ISA with the decoding and encoding speeds in millions of weights per second, or "-"
// if there is no kernel. pipeline/cluster computes the cost of parts from this table.
std::string speed_table(const std::vector<KernelRow>& rows);
std::string file_table(const std::vector<FileTime>& times);

// Returns {"kernels": [{...}], "files": [{...}]}. The members have the names of the struct fields; "target" and "met"
// are omitted if no target is set.
std::string to_json(const Report& report);

}  // namespace ggufmill::bench
