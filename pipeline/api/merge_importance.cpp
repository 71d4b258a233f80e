#include "pipeline/api/merge_importance.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>

#include "pipeline/core/text.h"
#include "pipeline/io/atomic_file.h"
#include "pipeline/io/output_target.h"
#include "stages/gguf/gguf.h"

namespace ggufmill {
namespace {

constexpr std::size_t kNumbersAtOnce = 1 << 16;  // numbers read at a time
constexpr std::uint64_t kMaxCounts = 16 << 20;   // limit for all entries together

struct Share {
  const ImportanceEntry* entry;
  const MergePart* part;
};

// All entries with the same name.
struct Sum {
  std::string name;
  std::vector<Share> shares;
  std::uint64_t size = 0;
  std::vector<std::int64_t> counts;

  std::int64_t most() const { return *std::ranges::max_element(counts); }
  std::size_t empty() const { return static_cast<std::size_t>(std::ranges::count(counts, 0)); }
};

Error mismatch(const Share& share, const std::string& what) {
  return input_error(share.part->file.path,
                     fmt::format("the entry of tensor {} has {}", quoted_name(share.entry->name), what),
                     "only files of the same model can be merged");
}

Status add_counts(const Share& share, std::uint32_t chunk_size, Sum& sum) {
  const ImportanceEntry& entry = *share.entry;
  if (sum.size == 0) sum.size = entry.size();
  if (entry.size() != sum.size)
    return mismatch(share, fmt::format("{} sums, but another file has {}", entry.size(), sum.size));
  const bool is_legacy = entry.counts.count == 0;
  std::vector<float> counts(is_legacy ? 1 : entry.counts.count);
  if (!is_legacy) {
    BOOST_OUTCOME_TRY(entry.counts.read(0, counts));
  }
  if (sum.counts.empty()) sum.counts.assign(counts.size(), 0);
  if (sum.counts.size() == 1) sum.counts.resize(counts.size(), sum.counts[0]);
  if (!is_legacy && counts.size() != sum.counts.size())
    return mismatch(share, fmt::format("{} counts, but another file has {}", counts.size(), sum.counts.size()));
  for (std::size_t i = 0; i < sum.counts.size(); ++i) {
    const double seen = is_legacy ? static_cast<double>(entry.calls) * chunk_size : std::round(counts[i]);
    const double weighted = std::round(seen * share.part->weight);
    if (!(weighted >= 0 && weighted < 0x1p53))
      return mismatch(share, fmt::format("a count of {}, which is out of range", seen));
    sum.counts[i] += static_cast<std::int64_t>(weighted);
  }
  return ok();
}

Result<std::vector<Sum>> sums_of(const std::vector<MergePart>& parts, std::uint32_t chunk_size) {
  std::map<std::string, std::vector<Share>> by_name;
  for (const MergePart& part : parts)
    for (const ImportanceEntry& entry : part.file.entries) by_name[entry.name].push_back({&entry, &part});
  std::vector<Sum> sums;
  std::uint64_t counts = 0;
  for (auto& [name, shares] : by_name) {
    Sum& sum = sums.emplace_back();
    sum.name = name;
    sum.shares = std::move(shares);
    for (const Share& share : sum.shares)
      if (counts + share.entry->counts.count > kMaxCounts) return mismatch(share, "too many counts");
    for (const Share& share : sum.shares) {
      BOOST_OUTCOME_TRY(add_counts(share, chunk_size, sum));
    }
    counts += sum.counts.size();
  }
  return sums;
}

// Adds up the weighted sums of all shares, starting at number `first`.
Status add_up(const Sum& sum, std::uint64_t first, std::uint32_t chunk_size, std::span<float> into) {
  std::vector<float> piece(into.size());
  std::ranges::fill(into, 0.0f);
  for (const Share& share : sum.shares) {
    BOOST_OUTCOME_TRY(share.entry->sums.read(first, piece));
    const auto weight = static_cast<float>(share.part->weight);
    const bool is_legacy = share.entry->counts.count == 0;
    for (std::size_t i = 0; i < piece.size(); ++i)
      into[i] += (is_legacy ? piece[i] * static_cast<float>(chunk_size) : piece[i]) * weight;
  }
  return ok();
}

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
  Merge(const std::vector<MergePart>& parts, const MergeOptions& options) : parts_(parts), options_(options) {}

  Result<Merged> run() {
    std::vector<std::string> read;
    for (const MergePart& part : parts_) read.insert(read.end(), part.file.files.begin(), part.file.files.end());
    BOOST_OUTCOME_TRY(check_written({options_.output, "output"}, read, options_.overwrite));
    BOOST_OUTCOME_TRY(sums_, sums_of(parts_, options_.chunk_size));
    for (const Sum& sum : sums_)
      if (const std::size_t empty = sum.empty(); empty != 0)
        merged_.warnings.push_back(fmt::format("{}: {} of {} parts saw no token{}", printable(sum.name), empty,
                                               sum.counts.size(), skipped(sum) ? ": skipped" : ""));
    if (options_.format == ImportanceFormat::kLegacy)
      std::erase_if(sums_, [this](const Sum& sum) { return skipped(sum); });
    if (sums_.empty()) return input_error(options_.output, "there is nothing to write: no entry saw a token");
    for (const Sum& sum : sums_) chunks_ = std::max(chunks_, sum.most() / options_.chunk_size);
    if (chunks_ > INT32_MAX || sums_.size() > INT32_MAX)
      return input_error(options_.output, "too many tokens or entries for the format");
    merged_.entries = sums_.size();
    BOOST_OUTCOME_TRY(options_.format == ImportanceFormat::kGguf ? write_gguf() : write_legacy());
    return std::move(merged_);
  }

 private:
  bool skipped(const Sum& sum) const {
    return options_.format == ImportanceFormat::kLegacy && sum.empty() == sum.counts.size();
  }

  std::vector<std::string> datasets() const {
    std::vector<std::string> all;
    for (const MergePart& part : parts_) all.insert(all.end(), part.file.datasets.begin(), part.file.datasets.end());
    return all;
  }

  Result<Model> described() const {
    Model model;
    model.metadata.set_at_end("general.type", metadata_string("imatrix"));
    std::vector<MetadataValue> names;
    for (const std::string& dataset : datasets()) names.push_back(metadata_string(dataset));
    model.metadata.set_at_end("imatrix.datasets", metadata_array(MetadataType::kString, names));
    model.metadata.set_at_end("imatrix.chunk_count",
                              metadata_unsigned(MetadataType::kUint32, static_cast<std::uint64_t>(chunks_)));
    model.metadata.set_at_end("imatrix.chunk_size", metadata_unsigned(MetadataType::kUint32, options_.chunk_size));
    for (const Sum& sum : sums_) {
      const std::uint64_t parts = sum.counts.size();
      BOOST_OUTCOME_TRY(add_tensor(sum.name + ".in_sum2", sum.size / parts, parts, model));
      BOOST_OUTCOME_TRY(add_tensor(sum.name + ".counts", 1, parts, model));
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
    std::uint64_t data = 0;
    for (const Placement& place : file.tensors) {
      const Sum& sum = sums_[place.tensor / 2];
      Writer writer(*out, place.offset);
      if (place.tensor % 2 == 0) {
        BOOST_OUTCOME_TRY(write_sums(sum, writer));
      } else {
        const std::vector<float> counts(sum.counts.begin(), sum.counts.end());
        BOOST_OUTCOME_TRY(writer.put(std::span<const float>(counts)));
      }
      data += place.bytes;
    }
    return out->seal(std::as_bytes(std::span(file.header)), data);
  }

  Status write_sums(const Sum& sum, Writer& writer) const {
    std::vector<float> piece;
    for (std::uint64_t first = 0; first < sum.size; first += piece.size()) {
      piece.resize(std::min<std::uint64_t>(kNumbersAtOnce, sum.size - first));
      BOOST_OUTCOME_TRY(add_up(sum, first, options_.chunk_size, piece));
      if (options_.format == ImportanceFormat::kLegacy) average(sum, first, piece);
      BOOST_OUTCOME_TRY(writer.put(std::span<const float>(piece)));
    }
    return ok();
  }

  std::int32_t calls(const Sum& sum) const {
    return static_cast<std::int32_t>((sum.most() + options_.chunk_size - 1) / options_.chunk_size);
  }

  void average(const Sum& sum, std::uint64_t first, std::span<float> piece) const {
    const std::uint64_t columns = sum.size / sum.counts.size();
    const auto all = static_cast<float>(calls(sum));
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const auto count = static_cast<float>(sum.counts[(first + i) / columns]);
      piece[i] = (count == 0 ? 1.0f : piece[i] / count) * all;
    }
  }

  Status write_legacy() {
    const std::vector<std::string> names = datasets();
    const std::string dataset = names.empty() ? std::string() : names.back();
    std::uint64_t bytes = 4 + 4 + 4 + dataset.size();
    for (const Sum& sum : sums_) {
      if (sum.size > INT32_MAX) return input_error(options_.output, "an entry is too large for the older format");
      bytes += 12 + sum.name.size() + sum.size * sizeof(float);
    }
    BOOST_OUTCOME_TRY(const auto out, create(bytes));
    Writer writer(*out, 4);
    for (const Sum& sum : sums_) {
      BOOST_OUTCOME_TRY(writer.put_text(sum.name));
      BOOST_OUTCOME_TRY(writer.put(calls(sum)));
      BOOST_OUTCOME_TRY(writer.put(static_cast<std::int32_t>(sum.size)));
      BOOST_OUTCOME_TRY(write_sums(sum, writer));
    }
    BOOST_OUTCOME_TRY(writer.put(static_cast<std::int32_t>(chunks_)));
    BOOST_OUTCOME_TRY(writer.put_text(dataset));
    const auto count = static_cast<std::int32_t>(sums_.size());
    return out->seal(std::as_bytes(std::span(&count, 1)), bytes - 4);
  }

  Result<std::unique_ptr<AtomicFile>> create(std::uint64_t bytes) {
    merged_.bytes = bytes;
    BOOST_OUTCOME_TRY(
        auto file, AtomicFile::create(options_.output, bytes, {.overwrite = options_.overwrite, .identity = "merge"}));
    if (!file->warning().empty()) merged_.warnings.push_back(file->warning());
    return file;
  }

  const std::vector<MergePart>& parts_;
  const MergeOptions& options_;
  std::vector<Sum> sums_;
  std::int64_t chunks_ = 0;
  Merged merged_;
};

}  // namespace

Result<Merged> merge_importance(const std::vector<MergePart>& parts, const MergeOptions& options) {
  static_assert(std::endian::native == std::endian::little);
  return Merge(parts, options).run();
}

namespace {

// Parses "FILE" or "FILE=WEIGHT". If a file with that exact name exists, the word is a file name.
Result<MergePart> part_of(const std::string& word, const ModelOpener& open) {
  const std::size_t at = word.rfind('=');
  double weight = 1;
  std::string path = word;
  if (at != std::string::npos) {
    const auto read = std::from_chars(word.data() + at + 1, word.data() + word.size(), weight);
    if (read.ec != std::errc() || read.ptr != word.data() + word.size() || !std::isfinite(weight) || weight <= 0)
      return usage_error(fmt::format("{} has no weight above 0 after '='", quoted_name(word)), "for example a.gguf=2");
    path = word.substr(0, at);
  }
  BOOST_OUTCOME_TRY(ImportanceFile file, open_importance(path, open));
  return MergePart{std::move(file), weight};
}

}  // namespace

Result<Merged> merge_importance(const std::vector<std::string>& inputs, const std::string& output,
                                std::optional<std::uint32_t> chunk_size, bool overwrite, const ModelOpener& open) {
  std::vector<MergePart> parts;
  for (const std::string& input : inputs) {
    BOOST_OUTCOME_TRY(MergePart part, part_of(input, open));
    parts.push_back(std::move(part));
  }
  MergeOptions options{.output = output, .overwrite = overwrite};
  if (output.ends_with(".dat")) options.format = ImportanceFormat::kLegacy;
  const auto stated = std::ranges::find_if(parts, [](const MergePart& part) { return part.file.chunk_size != 0; });
  if (stated != parts.end()) options.chunk_size = stated->file.chunk_size;
  if (chunk_size) options.chunk_size = *chunk_size;
  return merge_importance(parts, options);
}

}  // namespace ggufmill
