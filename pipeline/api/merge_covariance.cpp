#include "pipeline/api/merge_covariance.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "pipeline/core/text.h"
#include "pipeline/io/atomic_file.h"
#include "pipeline/io/output_target.h"
#include "stages/gguf/gguf.h"

namespace ggufmill {
namespace {

class CovarianceMerge {
 public:
  CovarianceMerge(const std::vector<WeightedCovariance>& parts, const std::string& output, bool overwrite)
      : parts_(parts), first_(parts.front().file), output_(output), overwrite_(overwrite) {}

  Result<Merged> run() {
    std::vector<std::string> read;
    for (const WeightedCovariance& part : parts_)
      read.insert(read.end(), part.file.importance.files.begin(), part.file.importance.files.end());
    BOOST_OUTCOME_TRY(check_written({output_, "output"}, read, overwrite_));
    BOOST_OUTCOME_TRY(match());
    BOOST_OUTCOME_TRY(const Model model, described());
    BOOST_OUTCOME_TRY(const auto sink, make_gguf_sink({.path = output_}));
    BOOST_OUTCOME_TRY(const auto files, sink->layout(model));
    const OutputFile& file = files.front();
    BOOST_OUTCOME_TRY(out_, AtomicFile::create(output_, file.bytes, {.overwrite = overwrite_, .identity = "merge"}));
    if (!out_->warning().empty()) merged_.warnings.push_back(out_->warning());
    std::uint64_t data = 0;
    for (const Placement& place : file.tensors) {
      BOOST_OUTCOME_TRY(write(tensors_[place.tensor], place.offset));
      data += place.bytes;
    }
    merged_.bytes = file.bytes;
    merged_.entries = first_.importance.entries.size();
    BOOST_OUTCOME_TRY(out_->seal(std::as_bytes(std::span(file.header)), data));
    return std::move(merged_);
  }

 private:
  struct Written {
    std::size_t input;  // index into first_.inputs
    enum Kind : std::uint8_t { kSums, kCounts, kCorrelations, kVectors } kind;
  };

  static Error differ(const WeightedCovariance& part, const std::string& what) {
    return input_error(part.file.importance.path, what,
                       "only files of the same model, in the same form, can be merged");
  }

  // Finds the inputs of the first file in each of the others.
  Status match() {
    for (const WeightedCovariance& part : parts_) {
      const CovarianceFile& file = part.file;
      for (const ImportanceEntry& entry : file.importance.entries)
        if (file.input_of(entry.name) == nullptr || entry.activations.file)
          return input_error(
              file.importance.path,
              fmt::format("tensor {} has {}, which would be lost", quoted_name(entry.name),
                          entry.activations.file ? "sums of activations" : "importance, but no covariance"),
              "write the importance of each file with `ggufmill imatrix convert FILE --output OTHER`, and merge those");
      BOOST_OUTCOME_TRY(check_shared_sums(file));
      if (file.block != first_.block)
        return differ(part, fmt::format("it has {}, but {} has {}", describe_form(file), first_.importance.path,
                                        describe_form(first_)));
      if (file.importance.chunk_size != first_.importance.chunk_size)
        return differ(part, fmt::format("it has chunks of {} tokens, but {} of {}", file.importance.chunk_size,
                                        first_.importance.path, first_.importance.chunk_size));
      std::vector<const CovarianceInput*>& inputs = inputs_.emplace_back();
      for (const CovarianceInput& input : first_.inputs) {
        const CovarianceInput* const same = file.input_of(input.owner);
        if (!same || same->owner != input.owner || sorted(same->tensors) != sorted(input.tensors))
          return differ(part, fmt::format("it does not have the input of {} of {}", quoted_name(input.owner),
                                          first_.importance.path));
        if (same->columns() != input.columns() || same->experts() != input.experts() || same->sets() != input.sets())
          return differ(part, fmt::format("the input of {} has another shape than in {}", quoted_name(input.owner),
                                          first_.importance.path));
        inputs.push_back(same);
      }
      if (file.inputs.size() != first_.inputs.size())
        return differ(part, fmt::format("it has {}, but {} has {}", counted(file.inputs.size(), "input"),
                                        first_.importance.path, first_.inputs.size()));
    }
    return ok();
  }

  static std::string describe_form(const CovarianceFile& file) {
    return file.block == 0 ? "the covariances of all columns"
                           : fmt::format("covariances in blocks of {} columns", file.block);
  }

  static std::vector<std::string> sorted(std::vector<std::string> names) {
    std::ranges::sort(names);
    return names;
  }

  Result<Model> described() {
    Model model;
    const auto set = [&](const char* key, MetadataValue value) { model.metadata.set_at_end(key, std::move(value)); };
    const auto number = [](std::uint64_t value) { return metadata_unsigned(MetadataType::kUint32, value); };
    const auto texts = [](const std::vector<std::string>& all) {
      std::vector<MetadataValue> values;
      for (const std::string& text : all) values.push_back(metadata_string(text));
      return metadata_array(MetadataType::kString, values);
    };
    std::vector<std::string> datasets, tensors, inputs;
    double chunks = 0;
    for (const WeightedCovariance& part : parts_) {
      chunks += std::round(part.file.importance.chunks * part.weight);
      for (const std::string& dataset : part.file.importance.datasets)
        if (std::ranges::count(datasets, dataset) == 0) datasets.push_back(dataset);
    }
    if (chunks > INT32_MAX) return input_error(output_, "too many chunks for the format");
    for (std::size_t i = 0; i < first_.inputs.size(); ++i) {
      const CovarianceInput& input = first_.inputs[i];
      for (const std::string& name : sorted(input.tensors)) {
        tensors.push_back(name);
        inputs.push_back(input.owner);
        BOOST_OUTCOME_TRY(
            add(name + ".in_sum2", "F32", matrix(input.columns(), input.experts()), {i, Written::kSums}, model));
        BOOST_OUTCOME_TRY(add(name + ".counts", "F32", matrix(1, input.experts()), {i, Written::kCounts}, model));
      }
      BOOST_OUTCOME_TRY(add(input.owner + ".in_corr", "F16", matrix(*input.covariance.packing().length(), input.sets()),
                            {i, Written::kCorrelations}, model));
      if (const std::uint64_t count = std::min(held_out(i), kMaxHeldOut); count != 0) {
        BOOST_OUTCOME_TRY(add(input.owner + ".in_rows", "BF16", {3, {input.columns(), count, input.experts(), 1}},
                              {i, Written::kVectors}, model));
      }
    }
    set("general.type", metadata_string("imatrix"));
    set("imatrix.datasets", texts(datasets));
    set("imatrix.chunk_count", number(static_cast<std::uint64_t>(chunks)));
    set("imatrix.chunk_size", number(first_.importance.chunk_size));
    warn_of_lost_vectors();
    const auto layers = std::ranges::find_if(
        parts_, [](const WeightedCovariance& part) { return part.file.importance.prediction_layers != 0; });
    if (layers != parts_.end()) set("imatrix.n_layer_nextn", number(layers->file.importance.prediction_layers));
    set("covariance.version", number(1));
    set("covariance.block", number(first_.block));
    set("covariance.tensors", texts(tensors));
    set("covariance.inputs", texts(inputs));
    return model;
  }

  static Shape matrix(std::uint64_t columns, std::uint64_t rows) { return {2, {columns, rows, 1, 1}}; }

  // Returns the number of held-out vectors of an input in all files; 0 if a file has none.
  std::uint64_t held_out(std::size_t input) const {
    std::uint64_t all = 0;
    for (const auto& inputs : inputs_) {
      if (inputs[input]->covariance.held_out == 0) return 0;
      all += inputs[input]->covariance.held_out;
    }
    return all;
  }

  Status add(const std::string& name, const char* type, const Shape& shape, Written written, Model& model) {
    Tensor& tensor = model.tensors.emplace_back();
    tensor.name = name;
    tensor.type = &type_named(type);
    BOOST_OUTCOME_TRY(const std::uint64_t bytes, bytes_of(*tensor.type, shape));
    BOOST_OUTCOME_TRY(tensor.expression, expressions::extent(*tensor.type, shape, Extent{nullptr, 0, bytes}));
    tensors_.push_back(written);
    return ok();
  }

  void warn_of_lost_vectors() {
    const auto has_vectors = [](const WeightedCovariance& part) {
      return std::ranges::any_of(part.file.inputs, [](const auto& input) { return input.covariance.held_out != 0; });
    };
    const auto without = std::ranges::find_if_not(parts_, has_vectors);
    if (without != parts_.end() && std::ranges::any_of(parts_, has_vectors))
      merged_.warnings.push_back(
          fmt::format("{} has no held-out vectors, so the sum has none", without->file.importance.path));
  }

  Status write(const Written& written, std::uint64_t offset) {
    switch (written.kind) {
      case Written::kSums:
        return write_sums(written.input, offset);
      case Written::kCounts:
        return write_counts(written.input, offset);
      case Written::kCorrelations:
        return write_correlations(written.input, offset);
      case Written::kVectors:
        return write_vectors(written.input, offset);
    }
    return ok();
  }

  template <class Number>
  Status put(std::span<const Number> numbers, std::uint64_t& offset) const {
    BOOST_OUTCOME_TRY(out_->write(offset, std::as_bytes(numbers)));
    offset += numbers.size_bytes();
    return ok();
  }

  // Adds up the sums of squares of an expert, rounded to F32.
  Result<std::vector<float>> added_sums(std::size_t input, std::uint64_t expert) const {
    std::vector<double> all(first_.inputs[input].columns());
    std::vector<float> sums(all.size());
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      BOOST_OUTCOME_TRY(inputs_[part][input]->read_sums(expert, 0, sums));
      for (std::size_t i = 0; i < all.size(); ++i) all[i] += double{sums[i]} * parts_[part].weight;
    }
    std::ranges::transform(all, sums.begin(), [](double sum) { return static_cast<float>(sum); });
    const auto bad = std::ranges::find_if(sums, [](float sum) { return !std::isfinite(sum); });
    if (bad != sums.end())
      return input_error(output_, "a sum of squares is too large for the format", "use smaller weights");
    return sums;
  }

  Status write_sums(std::size_t input, std::uint64_t offset) const {
    for (std::uint64_t expert = 0; expert < first_.inputs[input].experts(); ++expert) {
      BOOST_OUTCOME_TRY(const std::vector<float> sums, added_sums(input, expert));
      BOOST_OUTCOME_TRY(put<float>(sums, offset));
    }
    return ok();
  }

  Status write_counts(std::size_t input, std::uint64_t offset) {
    const std::uint64_t experts = first_.inputs[input].experts();
    std::uint64_t unseen = 0;
    for (std::uint64_t expert = 0; expert < experts; ++expert) {
      double all = 0;
      for (std::size_t part = 0; part < parts_.size(); ++part) {
        const CovarianceInput& from = *inputs_[part][input];
        float count = 0;
        BOOST_OUTCOME_TRY(from.entry.counts.read(expert, {&count, 1}));
        const ImportanceRun run{parts_[part].file.importance.path, {.weight = parts_[part].weight}, experts};
        BOOST_OUTCOME_TRY(const std::int64_t tokens, counted(run, from.owner, count));
        all += static_cast<double>(tokens);
      }
      const auto count = static_cast<float>(all);
      if (count == 0) ++unseen;
      BOOST_OUTCOME_TRY(put<float>({&count, 1}, offset));
    }
    if (unseen != 0 && warned_.insert(input).second)
      merged_.warnings.push_back(fmt::format("the input of {}: {} of {} parts saw no token",
                                             quoted_name(first_.inputs[input].owner), unseen, experts));
    return ok();
  }

  // Returns the roots of the sums to which a set of correlations belongs: those of an expert, or of all if they are
  // pooled. `read` reads the sums of an expert.
  template <class Read>
  Result<std::vector<double>> roots_of(const CovarianceInput& input, std::uint64_t set, const Read& read) const {
    std::vector<double> roots(input.columns());
    const bool is_pooled = input.covariance.is_pooled;
    for (std::uint64_t expert = is_pooled ? 0 : set; expert < (is_pooled ? input.experts() : set + 1); ++expert) {
      BOOST_OUTCOME_TRY(const std::vector<double> sums, read(expert));
      for (std::size_t i = 0; i < roots.size(); ++i) roots[i] += sums[i];
    }
    for (double& root : roots) root = std::sqrt(root);
    return roots;
  }

  Status write_vectors(std::size_t input, std::uint64_t offset) const {
    const std::uint64_t all = held_out(input), count = std::min(all, kMaxHeldOut);
    const std::uint64_t columns = first_.inputs[input].columns();
    std::vector<float> vector(columns);
    std::vector<std::uint16_t> numbers(columns);
    for (std::uint64_t expert = 0; expert < first_.inputs[input].experts(); ++expert)
      for (std::uint64_t i = 0; i < count; ++i) {
        std::uint64_t place = i * all / count;
        std::size_t part = 0;
        while (place >= inputs_[part][input]->covariance.held_out) place -= inputs_[part++][input]->covariance.held_out;
        BOOST_OUTCOME_TRY(inputs_[part][input]->read_vectors(expert, place * columns, vector));
        std::ranges::transform(vector, numbers.begin(), [](float number) {
          return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16);
        });
        BOOST_OUTCOME_TRY(put<std::uint16_t>(numbers, offset));
      }
    return ok();
  }

  Status write_correlations(std::size_t input, std::uint64_t offset) const {
    for (std::uint64_t set = 0; set < first_.inputs[input].sets(); ++set) {
      BOOST_OUTCOME_TRY(write_set(input, set, offset));
    }
    return ok();
  }

  Status write_set(std::size_t number, std::uint64_t set, std::uint64_t& offset) const {
    const CovarianceInput& input = first_.inputs[number];
    std::vector<std::vector<double>> roots(parts_.size());
    for (std::size_t part = 0; part < parts_.size(); ++part) {
      const CovarianceInput& from = *inputs_[part][number];
      BOOST_OUTCOME_TRY(roots[part], roots_of(from, set, [&](std::uint64_t expert) -> Result<std::vector<double>> {
                          std::vector<float> sums(from.columns());
                          BOOST_OUTCOME_TRY(from.read_sums(expert, 0, sums));
                          std::vector<double> weighted(sums.begin(), sums.end());
                          for (double& sum : weighted) sum *= parts_[part].weight;
                          return weighted;
                        }));
    }
    BOOST_OUTCOME_TRY(std::vector<double> inverse,
                      roots_of(input, set, [&](std::uint64_t expert) -> Result<std::vector<double>> {
                        BOOST_OUTCOME_TRY(const std::vector<float> sums, added_sums(number, expert));
                        return std::vector<double>(sums.begin(), sums.end());
                      }));
    for (double& root : inverse) root = root > 0 ? 1 / root : 0;
    const CorrelationPacking packing = input.covariance.packing();
    for (std::uint64_t block = 0; block < packing.blocks(); ++block) {
      BOOST_OUTCOME_TRY(write_block(number, set, packing.columns_of(block), roots, inverse, offset));
    }
    return ok();
  }

  Status write_block(std::size_t number, std::uint64_t set, const CorrelatedColumns& columns,
                     const std::vector<std::vector<double>>& roots, const std::vector<double>& inverse,
                     std::uint64_t& offset) const {
    std::vector<float> row;
    std::vector<double> products;
    std::vector<std::uint16_t> halves;
    for (std::uint64_t i = 0; i + 1 < columns.count; ++i) {
      const std::uint64_t others = columns.count - 1 - i, column = columns.first + i;
      const std::uint64_t place = columns.packed + CorrelationPacking::row_start(columns.count, i);
      row.resize(others);
      products.assign(others, 0);
      for (std::size_t part = 0; part < parts_.size(); ++part) {
        BOOST_OUTCOME_TRY(inputs_[part][number]->read(set, place, row));
        for (std::uint64_t k = 0; k < others; ++k)
          products[k] += double{row[k]} * roots[part][column] * roots[part][column + 1 + k];
      }
      halves.resize(others);
      for (std::uint64_t k = 0; k < others; ++k)
        halves[k] = half_of_correlation(std::clamp(products[k] * inverse[column] * inverse[column + 1 + k], -1.0, 1.0));
      BOOST_OUTCOME_TRY(put<std::uint16_t>(halves, offset));
    }
    return ok();
  }

  const std::vector<WeightedCovariance>& parts_;
  const CovarianceFile& first_;
  const std::string& output_;
  const bool overwrite_;
  std::vector<std::vector<const CovarianceInput*>> inputs_;  // by part, then by the inputs of the first file
  std::vector<Written> tensors_;
  std::unique_ptr<AtomicFile> out_;
  Merged merged_;
  std::set<std::size_t> warned_;  // inputs whose tokens were warned of
};

}  // namespace

Result<Merged> merge_covariance(const std::vector<WeightedCovariance>& parts, const std::string& output,
                                bool overwrite) {
  static_assert(std::endian::native == std::endian::little);
  return CovarianceMerge(parts, output, overwrite).run();
}

}  // namespace ggufmill
