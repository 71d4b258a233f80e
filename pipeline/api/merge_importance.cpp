#include "pipeline/api/merge_importance.h"

#include "pipeline/api/merge_covariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/atomic_file.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/source_path.h"
#include "stages/gguf/gguf.h"
#include "stages/importance/activation_statistics.h"

namespace ggufmill {
namespace {

constexpr std::size_t kNumbersAtOnce = 1 << 16;  // numbers read at a time
std::int64_t most(const MergedEntry& entry) { return *std::ranges::max_element(entry.counts); }

std::size_t empty(const MergedEntry& entry) { return static_cast<std::size_t>(std::ranges::count(entry.counts, 0)); }

// Writes numbers sequentially, starting at an offset.
class Writer {
 public:
  Writer(AtomicFile& file, std::uint64_t offset) : file_(file), offset_(offset) {}
  template <class Number>
  Status put(std::span<const Number> numbers) {
    const auto bytes = std::as_bytes(numbers);
    BOOST_OUTCOME_TRY(file_.write(offset_, bytes));
    offset_ += bytes.size();
    return ok();
  }
  Status put(std::int32_t number) { return put(std::span<const std::int32_t>(&number, 1)); }
  Status put_text(const std::string& text) {
    BOOST_OUTCOME_TRY(put(static_cast<std::int32_t>(text.size())));
    return put(std::span(text.data(), text.size()));
  }

 private:
  AtomicFile& file_;
  std::uint64_t offset_;
};

class Merge {
 public:
  Merge(const std::vector<WeightedFile>& parts, const MergeOptions& options) : parts_(parts), options_(options) {}

  Result<Merged> run() {
    std::vector<std::string> read;
    for (const WeightedFile& part : parts_) read.insert(read.end(), part.file.files.begin(), part.file.files.end());
    BOOST_OUTCOME_TRY(check_written({options_.output, "output"}, read, options_.overwrite));
    BOOST_OUTCOME_TRY(all_, add_up(parts_, options_.chunk_size));
    merged_.warnings = all_.warnings;
    for (const MergedEntry& sum : all_.entries)
      if (const std::size_t unseen = empty(sum); unseen != 0)
        merged_.warnings.push_back(fmt::format("{}: {} of {} parts saw no token{}", printable(sum.name), unseen,
                                               sum.counts.size(), skipped(sum) ? ": skipped" : ""));
    if (options_.format == ImportanceFormat::kLegacy)
      std::erase_if(all_.entries, [this](const MergedEntry& sum) { return skipped(sum); });
    if (all_.entries.empty()) return input_error(options_.output, "there is nothing to write: no entry saw a token");
    if (all_.entries.size() > INT32_MAX) return input_error(options_.output, "too many entries for the format");
    merged_.entries = all_.entries.size();
    BOOST_OUTCOME_TRY(check_weights());
    BOOST_OUTCOME_TRY(options_.format == ImportanceFormat::kGguf ? write_gguf() : write_legacy());
    return std::move(merged_);
  }

 private:
  // A file whose weights are refused must not be merged into one whose weights are not.
  Status check_weights() const {
    std::vector<float> piece;
    for (const MergedEntry& sum : all_.entries)
      for (std::uint64_t first = 0; first < sum.size(); first += piece.size()) {
        piece.resize(std::min<std::uint64_t>(kNumbersAtOnce, sum.size() - first));
        BOOST_OUTCOME_TRY(sum.weights(first, piece));
      }
    return ok();
  }

  bool skipped(const MergedEntry& sum) const {
    return options_.format == ImportanceFormat::kLegacy && empty(sum) == sum.counts.size();
  }

  // A tensor of the file.
  struct Part {
    enum Kind { kSums, kCounts, kActivations, kStatistics };
    const MergedEntry* entry;
    std::size_t number;  // of the entry
    Kind kind;
  };
  static constexpr const char* kEndings[] = {".in_sum2", ".counts", ".in_sum", ".stats"};

  // Returns the tensors in the order of the reference.
  std::vector<Part> parts_of_entries() const {
    std::vector<Part> parts;
    for (std::size_t i = 0; i < all_.entries.size(); ++i)
      for (const Part::Kind kind : {Part::kSums, Part::kCounts, Part::kActivations, Part::kStatistics})
        if (kind != Part::kActivations || all_.entries[i].has_activations())
          parts.push_back({&all_.entries[i], i, kind});
    return parts;
  }

  Result<Model> described() const {
    Model model;
    model.metadata.set_at_end("general.type", metadata_string("imatrix"));
    std::vector<MetadataValue> names;
    for (const std::string& dataset : all_.datasets) names.push_back(metadata_string(dataset));
    model.metadata.set_at_end("imatrix.datasets", metadata_array(MetadataType::kString, names));
    model.metadata.set_at_end("imatrix.chunk_count", metadata_unsigned(MetadataType::kUint32, all_.chunks));
    model.metadata.set_at_end("imatrix.chunk_size", metadata_unsigned(MetadataType::kUint32, options_.chunk_size));
    if (all_.prediction_layers > 0)
      model.metadata.set_at_end("imatrix.n_layer_nextn",
                                metadata_unsigned(MetadataType::kUint32, all_.prediction_layers));
    std::vector<MetadataValue> statistics;
    for (const std::string_view name : kActivationStatistics) statistics.push_back(metadata_string(name));
    model.metadata.set_at_end("imatrix.stats_schema", metadata_array(MetadataType::kString, statistics));
    for (const Part& part : parts_of_entries()) {
      const std::uint64_t rows = part.entry->counts.size();
      const std::string name = part.entry->name + kEndings[static_cast<std::size_t>(part.kind)];
      switch (part.kind) {
        case Part::kSums:
        case Part::kActivations: {
          BOOST_OUTCOME_TRY(add_tensor(name, part.entry->size() / rows, rows, model));
          break;
        }
        case Part::kCounts: {
          BOOST_OUTCOME_TRY(add_tensor(name, 1, rows, model));
          break;
        }
        case Part::kStatistics: {
          BOOST_OUTCOME_TRY(add_tensor(name, std::size(kActivationStatistics), 1, model));
          break;
        }
      }
    }
    return model;
  }

  static Status add_tensor(const std::string& name, std::uint64_t columns, std::uint64_t rows, Model& model) {
    Tensor& tensor = model.tensors.emplace_back();
    tensor.name = name;
    tensor.type = &type_named("F32");
    const Shape shape{rows == 1 ? 1u : 2u, {columns, rows, 1, 1}};
    BOOST_OUTCOME_TRY(tensor.expression,
                      expressions::extent(*tensor.type, shape, Extent{nullptr, 0, columns * rows * sizeof(float)}));
    return ok();
  }

  Status write_gguf() {
    BOOST_OUTCOME_TRY(const Model model, described());
    BOOST_OUTCOME_TRY(const auto sink, make_gguf_sink({.path = options_.output}));
    BOOST_OUTCOME_TRY(const auto files, sink->layout(model));
    const OutputFile& file = files.front();
    BOOST_OUTCOME_TRY(const auto out, create(file.bytes));
    BOOST_OUTCOME_TRY(const auto statistics, activation_statistics(all_));
    const std::vector<Part> parts = parts_of_entries();
    std::uint64_t data = 0;
    for (const Placement& place : file.tensors) {
      const Part& part = parts[place.tensor];
      Writer writer(*out, place.offset);
      BOOST_OUTCOME_TRY(write_part(part, statistics[part.number], writer));
      data += place.bytes;
    }
    return out->seal(std::as_bytes(std::span(file.header)), data);
  }

  Status write_part(const Part& part, const ActivationStatistics& statistics, Writer& writer) const {
    switch (part.kind) {
      case Part::kCounts: {
        const std::vector<float> counts(part.entry->counts.begin(), part.entry->counts.end());
        return writer.put(std::span<const float>(counts));
      }
      case Part::kStatistics:
        return writer.put(std::span<const float>(statistics.stored()));
      case Part::kSums:
        return write_sums(*part.entry, &MergedEntry::sums, writer);
      case Part::kActivations:
        return write_sums(*part.entry, &MergedEntry::activations, writer);
    }
    return ok();
  }

  using ReadSums = Status (MergedEntry::*)(std::uint64_t first, std::span<float> into) const;
  Status write_sums(const MergedEntry& sum, ReadSums read, Writer& writer) const {
    std::vector<float> piece;
    for (std::uint64_t first = 0; first < sum.size(); first += piece.size()) {
      piece.resize(std::min<std::uint64_t>(kNumbersAtOnce, sum.size() - first));
      BOOST_OUTCOME_TRY((sum.*read)(first, piece));
      if (options_.format == ImportanceFormat::kLegacy) average(sum, first, piece);
      BOOST_OUTCOME_TRY(writer.put(std::span<const float>(piece)));
    }
    return ok();
  }

  std::int32_t calls(const MergedEntry& sum) const {
    return static_cast<std::int32_t>((most(sum) + options_.chunk_size - 1) / options_.chunk_size);
  }

  void average(const MergedEntry& sum, std::uint64_t first, std::span<float> piece) const {
    const std::uint64_t columns = sum.size() / sum.counts.size();
    const auto all = static_cast<float>(calls(sum));
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const auto count = static_cast<float>(sum.counts[(first + i) / columns]);
      piece[i] = (count == 0 ? 1.0f : piece[i] / count) * all;
    }
  }

  Status write_legacy() {
    const std::string dataset = all_.datasets.empty() ? std::string() : all_.datasets.back();
    std::uint64_t bytes = 4 + 4 + 4 + dataset.size();
    for (const MergedEntry& sum : all_.entries) {
      if (sum.size() > INT32_MAX) return input_error(options_.output, "an entry is too large for the older format");
      bytes += 12 + sum.name.size() + sum.size() * sizeof(float);
    }
    BOOST_OUTCOME_TRY(const auto out, create(bytes));
    Writer writer(*out, 4);
    for (const MergedEntry& sum : all_.entries) {
      BOOST_OUTCOME_TRY(writer.put_text(sum.name));
      BOOST_OUTCOME_TRY(writer.put(calls(sum)));
      BOOST_OUTCOME_TRY(writer.put(static_cast<std::int32_t>(sum.size())));
      BOOST_OUTCOME_TRY(write_sums(sum, &MergedEntry::sums, writer));
    }
    BOOST_OUTCOME_TRY(writer.put(static_cast<std::int32_t>(all_.chunks)));
    BOOST_OUTCOME_TRY(writer.put_text(dataset));
    const auto count = static_cast<std::int32_t>(all_.entries.size());
    return out->seal(std::as_bytes(std::span(&count, 1)), bytes - 4);
  }

  Result<std::unique_ptr<AtomicFile>> create(std::uint64_t bytes) {
    merged_.bytes = bytes;
    BOOST_OUTCOME_TRY(
        auto file, AtomicFile::create(options_.output, bytes, {.overwrite = options_.overwrite, .identity = "merge"}));
    if (!file->warning().empty()) merged_.warnings.push_back(file->warning());
    return file;
  }

  const std::vector<WeightedFile>& parts_;
  const MergeOptions& options_;
  MergedImportance all_;
  Merged merged_;
};

}  // namespace

Result<Merged> merge_importance(const std::vector<WeightedFile>& parts, const MergeOptions& options) {
  static_assert(std::endian::native == std::endian::little);
  return Merge(parts, options).run();
}

namespace {

struct WeightedPath {
  std::string path;
  double weight = 1;
};

// Parses "FILE" or "FILE=WEIGHT". If a file with that exact name exists, the word is a file name.
Result<WeightedPath> part_of(const std::string& word) {
  const std::size_t at = word.rfind('=');
  double weight = 1;
  std::string path = word;
  if (at != std::string::npos && !is_file(word)) {
    const auto read = std::from_chars(word.data() + at + 1, word.data() + word.size(), weight);
    if (read.ec != std::errc() || read.ptr != word.data() + word.size() || !std::isfinite(weight) || weight <= 0)
      return usage_error(fmt::format("{} has no weight above 0 after '='", quoted_name(word)), "for example a.gguf=2");
    path = word.substr(0, at);
  }
  return WeightedPath{std::move(path), weight};
}

// Returns true if the files have covariances, and false if none of them has. Fails if only some have.
Result<bool> have_covariance(const std::vector<WeightedPath>& parts, const ModelOpener& open) {
  std::string with, without;
  for (const WeightedPath& part : parts) {
    BOOST_OUTCOME_TRY(const bool has_it, is_covariance_file(part.path, open));
    (has_it ? with : without) = part.path;
  }
  if (with.empty() || without.empty()) return without.empty();
  return input_error(without, fmt::format("it has no covariances, but {} has", with),
                     "merge the importance matrices alone: convert the files with covariances first, with "
                     "`ggufmill imatrix convert`");
}

Result<Merged> merge_with_covariance(const std::vector<WeightedPath>& parts, const std::string& output, bool overwrite,
                                     const ModelOpener& open) {
  std::vector<WeightedCovariance> files;
  for (const WeightedPath& part : parts) {
    BOOST_OUTCOME_TRY(CovarianceFile file, open_covariance(part.path, open));
    files.push_back({std::move(file), part.weight});
  }
  return merge_covariance(files, output, overwrite);
}

}  // namespace

Result<Merged> merge_importance(const std::vector<std::string>& inputs, const std::string& output,
                                std::optional<std::uint32_t> chunk_size, bool overwrite, const ModelOpener& open,
                                Covariances covariances) {
  std::vector<WeightedPath> paths;
  for (const std::string& input : inputs) {
    BOOST_OUTCOME_TRY(paths.emplace_back(), part_of(input));
  }
  MergeOptions options{.output = output, .overwrite = overwrite};
  if (output.ends_with(".dat")) options.format = ImportanceFormat::kLegacy;
  if (covariances == Covariances::kMerge && options.format == ImportanceFormat::kGguf) {
    BOOST_OUTCOME_TRY(const bool has_covariance, have_covariance(paths, open));
    if (has_covariance && chunk_size)
      return usage_error(
          fmt::format("{} has no effect on covariance files, which state it", option_reference("chunk_size")),
          "omit it");
    if (has_covariance) return merge_with_covariance(paths, output, overwrite, open);
  }
  std::vector<WeightedFile> parts;
  for (const WeightedPath& path : paths) {
    BOOST_OUTCOME_TRY(ImportanceFile file, open_importance(path.path, open));
    parts.push_back({std::move(file), path.weight});
  }
  options.chunk_size = chunk_size.value_or(chunk_size_of(parts));
  BOOST_OUTCOME_TRY(Merged merged, merge_importance(parts, options));
  for (const WeightedPath& path : paths) {
    if (covariances != Covariances::kMerge || options.format == ImportanceFormat::kGguf) break;
    BOOST_OUTCOME_TRY(const bool has_covariance, is_covariance_file(path.path, open));
    if (has_covariance)
      merged.warnings.push_back(
          fmt::format("{}: the legacy format has no covariances; only the importance is written", path.path));
  }
  const bool is_stated =
      chunk_size || std::ranges::any_of(parts, [](const WeightedFile& part) { return part.file.chunk_size != 0; });
  if (!is_stated && options.format == ImportanceFormat::kGguf)
    merged.warnings.push_back(
        fmt::format("{}: the legacy format does not say how many tokens a chunk has; {} are assumed: if llama-imatrix "
                    "ran with another context, set {}",
                    parts.front().file.path, options.chunk_size, option_reference("chunk_size")));
  return merged;
}

}  // namespace ggufmill
