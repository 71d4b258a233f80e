#pragma once
// What a run or a comparison came to, and its two forms: JSON for programs, a page for people.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/model.h"
#include "pipeline/report/difference.h"

namespace ggufmill {

enum class ErrorState {
  kNotMeasured,  // it was not asked for, or the values cannot be read (only its bytes are known to differ)
  kExact,        // every value is as in the source
  kMeasured,
};

struct ReportTensor {
  std::string name;
  Shape shape;
  const TypeInfo* source_type = nullptr;
  const TypeInfo* type = nullptr;
  const TypeInfo* fallback_from = nullptr;  // as Tensor::fallback_from
  std::uint64_t source_bytes = 0, bytes = 0;
  std::string rule;         // which decided the type
  bool importance = false;  // it has importance weights
  double seconds = 0;       // that threads spent on making it
  ErrorState state = ErrorState::kNotMeasured;
  ErrorSums sums;  // kMeasured
};

struct ReportFile {
  std::string path;
  std::uint64_t bytes = 0;
};

// A tensor of a comparison that has nothing to be compared with.
struct UnmatchedTensor {
  std::string name;
  std::string what;  // "only in A", "shape 4096 x 2 in A, 4096 x 4 in B"
};

struct ReportOutput {
  std::vector<ReportFile> files;  // at least one
  std::string recipe;             // empty: none
  std::vector<ReportTensor> tensors;
  std::vector<UnmatchedTensor> unmatched;
};

struct RunFacts {
  double seconds = 0;
  std::uint64_t bytes_read = 0, bytes_written = 0, peak_memory = 0;
  unsigned threads = 0;
  std::string io, isa;
};

struct Report {
  bool comparison = false;                            // of two files; else of a run
  bool measured = false;                              // errors were asked for
  std::string name;                                   // of the model, as its metadata says; may be empty
  std::string architecture;                           // likewise
  std::vector<ReportFile> files;                      // of the source, or of A
  std::uint64_t tensors = 0, weights = 0, bytes = 0;  // in the source; bytes of tensors
  RunFacts run;
  std::vector<ReportOutput> outputs;
};

// Which part of a model a tensor belongs to: "blk.12" for blk.12.attn_q.weight, "token_embd" for token_embd.weight.
std::string layer_name(const std::string& tensor);

// The sums of those tensors of a layer, or of an output, whose values are not all as in the source.
struct LayerSums {
  std::string layer;
  ErrorSums sums;
};
// Numbered layers by their numbers, then the other parts as they come.
std::vector<LayerSums> layers_of(const ReportOutput& output);
ErrorSums total_of(const ReportOutput& output);

// Takes a text piece by piece: a report of many tensors is never whole in memory.
using TextSink = std::function<void(std::string_view piece)>;

// Version 1 of the form; a line for each tensor:
//   {format, version, ggufmill, kind: run | compare, measured, source: {name, architecture, files: [{path, bytes}],
//    tensors, weights, bytes, bits_per_weight}, run: {seconds, bytes_read, bytes_written, peak_memory, threads, io,
//    isa}, outputs: [{files, recipe, weights, bytes, bits_per_weight, types: [{type, tensors, bytes}], fallbacks,
//    changed_weights, error,
//     layers: [{layer, weights, error}], unmatched: [{name, what}] where there are some,
//     tensors: [{name, layer, shape, weights, source_type, type, fallback_from where there is one, source_bytes, bytes,
//     rule, importance, seconds, error}]}]}
// `fallbacks` counts the tensors whose rows are no whole blocks of the type that the recipe wanted, `fallback_from`.
// `error` is null where nothing was measured, else the numbers of ErrorFigures by name; those that do not exist are
// null. That of an output or layer is of its tensors whose values changed, which hold changed_weights or weights; where
// none did, it is that of equal values. Names that are not UTF-8 are shown with escapes.
void report_json(const Report& report, const TextSink& sink);

// One file that needs no other: a page with the JSON inside, which it shows. Whatever the names hold, they are text.
void report_html(const Report& report, const TextSink& sink);

}  // namespace ggufmill
