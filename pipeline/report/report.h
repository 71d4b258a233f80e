#pragma once
// Results of a run or a comparison, in two forms: JSON for programs, a page for people.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/model.h"
#include "pipeline/report/difference.h"

namespace ggufmill {

enum class ErrorState {
  kNotMeasured,  // not requested, or the values cannot be decoded (the bytes are only known to differ)
  kExact,        // every value is as in the source
  kMeasured,
};

struct ReportTensor {
  std::string name;
  Shape shape;
  const TypeInfo* source_type = nullptr;
  const TypeInfo* type = nullptr;
  const TypeInfo* fallback_from = nullptr;  // same as Tensor::fallback_from
  std::uint64_t source_bytes = 0, bytes = 0;
  std::string rule;         // the rule that decided the type
  bool importance = false;  // it has importance weights
  double seconds = 0;       // spent by threads on making it
  ErrorState state = ErrorState::kNotMeasured;
  ErrorSums sums;  // for kMeasured
  std::optional<HeldOutLoss> held_out{};
};

// Returns true if the tensor was measured and its quantization has lost nothing.
bool is_exactly_quantized(const ReportTensor& tensor);

struct ReportFile {
  std::string path;
  std::uint64_t bytes = 0;
};

// A tensor of a comparison that has no counterpart to compare with.
struct UnmatchedTensor {
  enum class Where : std::uint8_t { kOnlyInA, kOnlyInB, kInBoth };  // kInBoth: with incomparable shapes or types
  std::string name;
  std::string what;  // "only in A", "its shape is 4096 x 2 in A and 4096 x 4 in B"
  Where where = Where::kInBoth;
};

struct ReportOutput {
  std::vector<ReportFile> files;  // at least one
  std::string recipe;             // empty if there is none
  std::vector<ReportTensor> tensors;
  std::vector<UnmatchedTensor> unmatched;
  std::string choice{};  // what the choice of types minimized and gained; empty if there was none
};

struct RunFacts {
  double seconds = 0;
  std::uint64_t bytes_read = 0, bytes_written = 0, peak_memory = 0;
  unsigned threads = 0;
  std::string io, isa;
};

struct Report {
  bool comparison = false;                            // of two files; else of a run
  bool measured = false;                              // errors were requested
  std::string name;                                   // of the model, from its metadata; may be empty
  std::string architecture;                           // same
  std::vector<ReportFile> files;                      // of the source, or of A
  std::uint64_t tensors = 0, weights = 0, bytes = 0;  // in the source; bytes of tensors
  RunFacts run;
  std::vector<ReportOutput> outputs;
};

// Returns the part of a model that a tensor belongs to: "blk.12" for blk.12.attn_q.weight, "token_embd" for
// token_embd.weight.
std::string layer_name(const std::string& tensor);

// Sums over the tensors of a layer, or of an output, whose values are not all as in the source.
struct LayerSums {
  std::string layer;
  ErrorSums sums;
  std::size_t not_measured = 0;  // tensors that the sums do not cover
};
// Returns numbered layers in order of their numbers, then the other parts in order of appearance.
std::vector<LayerSums> layers_of(const ReportOutput& output);
ErrorSums total_of(const ReportOutput& output);
// Returns how many tensors the sums do not cover.
std::size_t not_measured(const ReportOutput& output);

// Receives a text piece by piece: a report of many tensors is never entirely in memory.
using TextSink = std::function<void(std::string_view piece)>;

inline constexpr int kReportVersion = 1;  // of the format
// Writes this version of the format, with one line per tensor:
//   {format, version, ggufmill, kind: run | compare, measured, source: {name, architecture, files: [{path, bytes}],
//    tensors, weights, bytes, bits_per_weight}, run: {seconds, bytes_read, bytes_written, peak_memory, threads, io,
//    isa}, outputs: [{files, recipe, choice if types were chosen, weights, bytes, bits_per_weight, types: [{type,
//    tensors, bytes}], fallbacks, changed_weights, error, not_measured if any,
//     layers: [{layer, weights, error, not_measured if any}], unmatched: [{name, what}] if there are any,
//     tensors: [{name, layer, shape, weights, source_type, type, fallback_from if there is one, source_bytes, bytes,
//     rule, importance, seconds, error, exact if it was quantized without any error,
//     held_out: {loss, shrink: [least, greatest], rows, searched} if a covariance with held-out vectors was used}]}]}
// A job with the step `quality` adds the member `quality` to outputs: {perplexity, base_perplexity, divergence,
// divergence_error, divergence_99, divergence_max, same_top}.
// `held_out.loss` is the loss on held-out vectors as a share of that of the search; `shrink` the shrinkage that was
// chosen for its matrices; `searched` the number of its rows for which the covariance was no better and not used.
// `fallbacks` counts the tensors whose rows are not a whole number of blocks of the type that the recipe requested,
// `fallback_from`. `error` is null if nothing was measured, else the values of ErrorFigures by name; undefined ones are
// null. The error of an output or layer covers its tensors whose values changed, with changed_weights or weights
// elements in total; if there are none, it is the error of equal values. `not_measured` counts the tensors of an output
// or layer whose error is not known although errors were requested: an earlier run made them, they were taken from an
// earlier output, or they cannot be decoded. The error and the number of weights of such an output or layer are null.
// Names that are not UTF-8 are written with escapes.
void report_json(const Report& report, const TextSink& sink);

// Writes one self-contained page that contains the JSON and displays it. Names are escaped, whatever they contain.
void report_html(const Report& report, const TextSink& sink);

}  // namespace ggufmill
