#pragma once
// The verbs of the command line: one file each, one table here.

#include <string>
#include <string_view>
#include <vector>

namespace ggufmill {

using Arguments = std::vector<std::string>;

struct Verb {
  std::string_view name;
  std::string_view summary;                // one line for `ggufmill --help`
  int (*run)(const Arguments& arguments);  // without the verb itself; returns the exit code
};

int run_verb(const Arguments& arguments);
int check_verb(const Arguments& arguments);
int plan_verb(const Arguments& arguments);
int status_verb(const Arguments& arguments);
int submit_verb(const Arguments& arguments);
int part_verb(const Arguments& arguments);
int seal_verb(const Arguments& arguments);
int resume_verb(const Arguments& arguments);
int cancel_verb(const Arguments& arguments);
int render_verb(const Arguments& arguments);
int measure_verb(const Arguments& arguments);
int probe_verb(const Arguments& arguments);
int inspect_verb(const Arguments& arguments);
int compare_verb(const Arguments& arguments);
int verify_verb(const Arguments& arguments);
int types_verb(const Arguments& arguments);
int kernels_verb(const Arguments& arguments);
int quantize_verb(const Arguments& arguments);
int convert_verb(const Arguments& arguments);
int recipe_verb(const Arguments& arguments);
int architectures_verb(const Arguments& arguments);
int schema_verb(const Arguments& arguments);

}  // namespace ggufmill
