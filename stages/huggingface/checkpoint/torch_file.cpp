#include "stages/huggingface/checkpoint/torch_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <functional>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>

#include "pipeline/core/text.h"
#include "pipeline/io/checkpoint_files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/checkpoint/pickle.h"
#include "stages/huggingface/checkpoint/zip_archive.h"

namespace ggufmill::huggingface {
namespace {

using Kind = Pickled::Kind;

constexpr std::string_view kZipMark = "PK\3\4";
// Start of a file written before PyTorch 1.6: a pickle that contains a magic number.
constexpr std::string_view kOldMark = "\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";
constexpr std::uint64_t kOldVersion = 1001;
constexpr std::size_t kTarMarkAt = 257;
constexpr std::string_view kTarMark = "ustar";

constexpr std::uint64_t kMaxOrderBytes = 16;  // of the file with the byte order that are read

constexpr const char* kSaveAgain = "load the file with PyTorch and save it again with torch.save or as safetensors";

// Location of a storage in the file.
struct Place {
  std::uint64_t offset = 0, bytes = 0;
};

// A dimension of a view: the number of elements and the distance between them.
struct Stride {
  std::uint64_t count, step;
  std::uint32_t dimension;  // index in the tensor; 0 is the fastest
};

class TorchFile {
 public:
  explicit TorchFile(std::shared_ptr<const ByteSource> file) : file_(std::move(file)) {}

  Result<std::vector<CheckpointTensor>> read() {
    BOOST_OUTCOME_TRY(open());
    BOOST_OUTCOME_TRY(take_dictionary());
    return std::move(tensors_);
  }

  Result<boost::json::value> value(std::string_view name) {
    BOOST_OUTCOME_TRY(open());
    BOOST_OUTCOME_TRY(const auto members, members_of_dictionary());
    for (const auto& [key, member] : members) {
      if (key != name) continue;
      if (member.kind == Kind::kNumber) return boost::json::value(static_cast<std::int64_t>(member.value));
      if (member.kind != Kind::kTensor || reader_->tensor(member).dims.size() != 1)
        return wrong(fmt::format("{} is neither a whole number nor a tensor of one dimension", quoted_name(name)),
                     kSaveAgain);
      BOOST_OUTCOME_TRY(const ExpressionRef tensor, named_expression(name, reader_->tensor(member)));
      const auto values = read_small_values(*tensor);
      if (!values) return wrong(fmt::format("tensor {} {}", quoted_name(name), values.error().what), kSaveAgain);
      return boost::json::value(boost::json::array(values.value().begin(), values.value().end()));
    }
    return boost::json::value();
  }

 private:
  // Finds the dictionary, and where the storages are.
  Status open() {
    std::string start(std::min<std::uint64_t>(kTarMarkAt + kTarMark.size(), file_->bytes()), '\0');
    BOOST_OUTCOME_TRY(file_->read(0, std::as_writable_bytes(std::span(start))));
    if (start.starts_with(kZipMark)) {
      BOOST_OUTCOME_TRY(read_archive());
    } else if (start.starts_with(kOldMark)) {
      BOOST_OUTCOME_TRY(read_old());
    } else if (start.ends_with(kTarMark)) {
      return wrong("tar archives, written by PyTorch before 0.1.10, are not supported", kSaveAgain);
    } else {
      return wrong("this is not a torch.save file", "check that it is complete and not a file in another format");
    }
    return ok();
  }

  Error wrong(std::string what, std::string help = kDamagedFileHelp) const {
    return input_error(file_->path(), std::move(what), std::move(help));
  }

  Status read_archive() {
    BOOST_OUTCOME_TRY(const ZipArchive archive, ZipArchive::open(file_));
    const std::string pickle = archive.folder() + "/data.pkl", order = archive.folder() + "/byteorder";
    if (!archive.has(pickle))
      return wrong(fmt::format("the zip archive has no {}, which torch.save writes", quoted_name(pickle)), kSaveAgain);
    if (archive.has(order)) {
      BOOST_OUTCOME_TRY(read_byte_order(archive, order));
    }
    BOOST_OUTCOME_TRY(const ZipPlace place, archive.find(pickle));
    if (place.bytes <= PickleReader::kMaxBytes) {  // the reader reports longer ones
      BOOST_OUTCOME_TRY(archive.check(pickle));
    }
    reader_.emplace(*file_, place.offset, place.offset + place.bytes);
    BOOST_OUTCOME_TRY(dictionary_, reader_->read());
    for (const PickledStorage& storage : reader_->storages()) {
      BOOST_OUTCOME_TRY(const ZipPlace data, archive.find(fmt::format("{}/data/{}", archive.folder(), storage.key)));
      places_.push_back({data.offset, data.bytes});
    }
    return ok();
  }

  Status read_byte_order(const ZipArchive& archive, const std::string& name) {
    BOOST_OUTCOME_TRY(const ZipPlace place, archive.find(name));
    if (place.bytes <= kMaxOrderBytes) {
      BOOST_OUTCOME_TRY(archive.check(name));
    }
    std::string order(std::min(place.bytes, kMaxOrderBytes), '\0');
    BOOST_OUTCOME_TRY(file_->read(place.offset, std::as_writable_bytes(std::span(order))));
    if (order != "little" && order != "big")
      return wrong(fmt::format("the byte order is {}, expected little or big", quoted_name(order)));
    big_endian_ = order == "big";
    return ok();
  }

  // Reads the old format: the magic number, a version, information about the writer, the dictionary, the keys of the
  // storages; then the length and bytes of each storage.
  Status read_old() {
    reader_.emplace(*file_, 0, file_->bytes());
    BOOST_OUTCOME_TRY(reader_->read());
    BOOST_OUTCOME_TRY(const Pickled version, reader_->read());
    if (version.kind != Kind::kNumber || version.value != kOldVersion)
      return wrong(fmt::format("the file's version is not {}, the only known one", kOldVersion), kSaveAgain);
    BOOST_OUTCOME_TRY(reader_->read());
    BOOST_OUTCOME_TRY(dictionary_, reader_->read());
    BOOST_OUTCOME_TRY(const Pickled keys, reader_->read());
    return read_old_places(keys);
  }

  Status read_old_places(Pickled keys) {
    if (keys.kind != Kind::kList) return wrong("the list of storages is missing");
    std::unordered_map<std::string_view, std::size_t> indices;
    for (const PickledStorage& storage : reader_->storages()) indices.emplace(storage.key, indices.size());
    places_.assign(indices.size(), {});
    std::uint64_t at = reader_->at();
    std::size_t found = 0;
    for (const Pickled key : reader_->items(keys)) {
      const auto index = key.kind == Kind::kText ? indices.find(reader_->text(key)) : indices.end();
      if (index == indices.end() || places_[index->second].offset != 0)
        return wrong("the list of storages does not match the tensors");
      const PickledStorage& storage = reader_->storages()[index->second];
      std::array<std::byte, 8> length{};
      if (file_->bytes() - at < length.size()) return wrong("the file ends before its last storage");
      BOOST_OUTCOME_TRY(file_->read(at, length));
      std::uint64_t elements = 0;
      for (std::size_t i = length.size(); i-- > 0;)
        elements = elements << 8 | std::to_integer<std::uint64_t>(length[i]);
      at += length.size();
      const std::uint64_t size = element_bytes(storage);
      if (elements != storage.elements || elements > (file_->bytes() - at) / size)
        return wrong(fmt::format("storage {} has {} elements at byte {:#x}, expected {}", quoted_name(storage.key),
                                 elements, at, storage.elements));
      places_[index->second] = {at, elements * size};
      at += elements * size;
      ++found;
    }
    if (found != places_.size()) return wrong("a storage of a tensor is missing");
    return ok();
  }

  static std::uint64_t element_bytes(const PickledStorage& storage) {
    return storage.type ? storage.type->block_bytes : 1;
  }

  // Returns the members by name, each name once.
  Result<std::vector<std::pair<std::string_view, Pickled>>> members_of_dictionary() const {
    if (dictionary_.kind != Kind::kDictionary)
      return wrong(fmt::format("the file contains {}, not a dictionary of tensors", describe(dictionary_.kind)),
                   "save model.state_dict() with torch.save");
    const std::vector<Pickled>& members = reader_->items(dictionary_);
    if (members.size() / 2 > kMaxCheckpointTensors) return too_many_tensors(file_->path());
    std::unordered_map<std::string_view, std::size_t> index;
    std::vector<std::pair<std::string_view, Pickled>> named;
    for (std::size_t i = 0; i < members.size(); i += 2) {
      if (members[i].kind != Kind::kText)
        return wrong(fmt::format("the dictionary has {} as a key", describe(members[i].kind)), kSaveAgain);
      const std::string_view name = reader_->text(members[i]);
      if (!is_utf8(name)) return wrong(fmt::format("the name {} is not UTF-8", quoted_name(name)), kSaveAgain);
      const auto [found, is_new] = index.emplace(name, named.size());
      if (is_new)
        named.emplace_back(name, members[i + 1]);
      else
        named[found->second].second = members[i + 1];
    }
    return named;
  }

  Status take_dictionary() {
    BOOST_OUTCOME_TRY(const auto named, members_of_dictionary());
    for (const auto& [name, value] : named) {
      if (value.kind != Kind::kTensor)
        return wrong(fmt::format("{} is {}, not a tensor", quoted_name(name), describe(value.kind)),
                     "save only model.state_dict() with torch.save");
      BOOST_OUTCOME_TRY(ExpressionRef values, named_expression(name, reader_->tensor(value)));
      tensors_.push_back({std::string(name), std::move(values), reader_->tensor(value).dims});
    }
    return ok();
  }

  Result<ExpressionRef> named_expression(std::string_view name, const PickledTensor& tensor) const {
    auto values = expression_of(tensor);
    if (!values) return wrong(fmt::format("tensor {} {}", quoted_name(name), values.error().what), values.error().help);
    return values;
  }

  // Error messages continue a sentence that starts with the tensor's name.
  Result<ExpressionRef> expression_of(const PickledTensor& tensor) const {
    std::uint64_t elements = 1, last = tensor.offset;
    bool fits = true;
    for (std::size_t i = 0; i < tensor.dims.size(); ++i) {
      std::uint64_t span = 0;
      fits = fits && !__builtin_mul_overflow(elements, std::max<std::uint64_t>(1, tensor.dims[i]), &elements) &&
             elements <= static_cast<std::uint64_t>(INT64_MAX) &&
             !__builtin_mul_overflow(std::max<std::uint64_t>(1, tensor.dims[i]) - 1, tensor.steps[i], &span) &&
             !__builtin_add_overflow(last, span, &last);
    }
    if (!fits)
      return input_error({}, fmt::format("has the shape [{}], which is too large", fmt::join(tensor.dims, ", ")),
                         kDamagedFileHelp);
    const std::uint64_t size = tensor.type->block_bytes, held = places_[tensor.storage].bytes / size;
    if (std::ranges::count(tensor.dims, 0u) != 0) return bytes_of(tensor, 0, 0, shape_of_dimensions(tensor.dims));
    const PickledStorage& storage = reader_->storages()[tensor.storage];
    if (storage.elements > places_[tensor.storage].bytes / element_bytes(storage))
      return input_error({},
                         fmt::format("is in storage {}, which has {} bytes, not {} elements", quoted_name(storage.key),
                                     places_[tensor.storage].bytes, storage.elements),
                         kDamagedFileHelp);
    if (last >= held)
      return input_error(
          {}, fmt::format("extends to element {} of storage {}, which has {}", last, quoted_name(storage.key), held),
          kDamagedFileHelp);
    return is_contiguous(tensor) ? bytes_of(tensor, tensor.offset, elements, shape_of_dimensions(tensor.dims))
                                 : view(tensor, held);
  }

  static bool is_contiguous(const PickledTensor& tensor) {
    std::uint64_t step = 1;
    for (std::size_t i = tensor.dims.size(); i-- > 0; step *= tensor.dims[i])
      if (tensor.dims[i] != 1 && tensor.steps[i] != step) return false;
    return true;
  }

  Result<ExpressionRef> bytes_of(const PickledTensor& tensor, std::uint64_t first, std::uint64_t elements,
                                 const Shape& shape) const {
    const std::uint64_t size = tensor.type->block_bytes;
    return expressions::extent(
        *tensor.type, shape,
        {file_->describe(), places_[tensor.storage].offset + first * size, elements * size, big_endian_});
  }

  // Treats the storage as a grid, slices it along each dimension, and puts the dimensions in the tensor's order.
  Result<ExpressionRef> view(const PickledTensor& tensor, std::uint64_t held) const {
    std::vector<Stride> strides;  // largest stride first
    for (std::size_t i = 0; i < tensor.dims.size(); ++i)
      if (tensor.dims[i] != 1)
        strides.push_back({tensor.dims[i], tensor.steps[i], static_cast<std::uint32_t>(tensor.dims.size() - 1 - i)});
    std::ranges::stable_sort(strides, std::ranges::greater{}, &Stride::step);
    const bool has_gaps = strides.back().step != 1;  // between elements of the innermost dimension
    if (has_gaps) strides.push_back({1, 1, 0});
    const Error no_view =
        input_error({},
                    fmt::format("is a view [{}] with strides [{}], which is not supported",
                                fmt::join(tensor.dims, ", "), fmt::join(tensor.steps, ", ")),
                    "load the file with PyTorch, call contiguous() on its tensors, and save it again");
    if (strides.size() > 4 || strides[strides.size() - 2].step == 0) return no_view;
    Shape grid{static_cast<std::uint32_t>(strides.size()), {1, 1, 1, 1}};
    std::array<std::uint64_t, 4> first{};
    std::uint64_t rest = tensor.offset % strides[0].step;
    for (std::size_t i = 0; i < strides.size(); ++i) {
      const std::size_t axis = strides.size() - 1 - i;
      if (i == 0) {
        grid.dims[axis] = strides[0].count;
        continue;
      }
      grid.dims[axis] = strides[i - 1].step / strides[i].step;
      first[axis] = rest / strides[i].step;
      rest %= strides[i].step;
      if (strides[i - 1].step % strides[i].step != 0 || first[axis] + strides[i].count > grid.dims[axis])
        return no_view;
    }
    const std::uint64_t begin = tensor.offset - tensor.offset % strides[0].step;
    if (grid.elements() > held - begin) return no_view;
    BOOST_OUTCOME_TRY(ExpressionRef values, bytes_of(tensor, begin, grid.elements(), grid));
    for (std::size_t i = 1; i < strides.size(); ++i) {
      const auto axis = static_cast<std::uint32_t>(strides.size() - 1 - i);
      BOOST_OUTCOME_TRY(values, expressions::slice(std::move(values), axis, first[axis], strides[i].count));
    }
    if (has_gaps) strides.pop_back();
    return in_order(std::move(values), strides, tensor);
  }

  static Result<ExpressionRef> in_order(ExpressionRef values, const std::vector<Stride>& strides,
                                        const PickledTensor& tensor) {
    Shape packed{static_cast<std::uint32_t>(strides.size()), {1, 1, 1, 1}};
    std::vector<std::uint32_t> dimensions;  // indices in the tensor, in the order of the storage, fastest first
    for (auto each = strides.rbegin(); each != strides.rend(); ++each) {
      packed.dims[dimensions.size()] = each->count;
      dimensions.push_back(each->dimension);
    }
    std::vector<std::uint32_t> order(dimensions.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, [&](std::uint32_t i) { return dimensions[i]; });
    BOOST_OUTCOME_TRY(values, expressions::reshape(std::move(values), packed));
    BOOST_OUTCOME_TRY(values, expressions::transpose(std::move(values), order));
    return expressions::reshape(std::move(values), shape_of_dimensions(tensor.dims));
  }

  std::shared_ptr<const ByteSource> file_;
  std::optional<PickleReader> reader_;
  Pickled dictionary_;
  std::vector<Place> places_;  // locations of the reader's storages
  bool big_endian_ = false;
  std::vector<CheckpointTensor> tensors_;
};

}  // namespace

Result<std::vector<CheckpointTensor>> read_torch_file(const std::shared_ptr<const ByteSource>& file) {
  return TorchFile(file).read();
}

Result<boost::json::value> read_torch_value(const std::shared_ptr<const ByteSource>& file, std::string_view name) {
  return TorchFile(file).value(name);
}

Result<std::optional<Checkpoint>> read_torch_checkpoint(const std::string& folder, const MissingFiles& missing) {
  const auto read = [](const std::shared_ptr<const ByteSource>& file) -> Result<CheckpointPart> {
    BOOST_OUTCOME_TRY(auto tensors, read_torch_file(file));
    return CheckpointPart{std::move(tensors), {}};
  };
  const fs::path at(folder);
  if (const std::string index = at / "pytorch_model.bin.index.json"; is_file(index)) {
    BOOST_OUTCOME_TRY(Checkpoint checkpoint, read_indexed_checkpoint(index, read, missing));
    return checkpoint;
  }
  std::vector<std::string> files;
  BOOST_OUTCOME_TRY(const std::vector<std::string> paths, paths_in(folder));
  for (const std::string& path : paths) {
    const std::string name = fs::path(path).filename();
    if (name.starts_with("pytorch_model") && name.ends_with(".bin")) files.push_back(path);
  }
  if (files.empty()) return std::optional<Checkpoint>();
  std::ranges::sort(files);
  BOOST_OUTCOME_TRY(std::vector<std::string> warnings, check_all_shards(files, missing));
  BOOST_OUTCOME_TRY(Checkpoint checkpoint, read_checkpoint_files(files, read));
  checkpoint.warnings = std::move(warnings);
  return checkpoint;
}

}  // namespace ggufmill::huggingface
