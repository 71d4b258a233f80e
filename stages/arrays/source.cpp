// The source `arrays`: its YAML file and the files it names.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_set>

#include "pipeline/config/written_value.h"
#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/byte_order.h"
#include "pipeline/core/text.h"
#include "stages/arrays/arrays.h"
#include "stages/arrays/npy_header.h"

namespace ggufmill {
namespace arrays {
namespace {

constexpr std::uint64_t kMostFileBytes = 64 << 20;  // size limit of the YAML file

FieldSpec metadata_field() {
  const FieldSpec scalar{.doc =
                             "true, false, a number, or a string. The type is bool, float32, string, or the first of "
                             "uint32, int32, uint64, and int64 that can hold the value."};
  const FieldSpec list{.kind = FieldKind::kList,
                       .doc = "An array; its type follows from its elements.",
                       .item = {{.kind = FieldKind::kAny, .doc = "An element."}}};
  const FieldSpec typed{.kind = FieldKind::kMap, .doc = "A value of a given type.", .fields = typed_value_fields()};
  return {.name = "metadata",
          .kind = FieldKind::kDictionary,
          .doc = "Keys and their values, in output order.",
          .example = "{general.architecture: llama, llama.context_length: {type: uint32, value: 8192}}",
          .item = {{.kind = FieldKind::kOneOf, .doc = "The value.", .alternatives = {scalar, list, typed}}}};
}

FieldSpec tensors_field() {
  const FieldSpec name{.name = "name", .doc = "The tensor name.", .required = true, .example = "token_embd.weight"};
  const FieldSpec npy{.name = "npy",
                      .kind = FieldKind::kPath,
                      .doc = "A file written by numpy.save(); the path is relative to this file.",
                      .example = "embeddings.npy",
                      .group = "file"};
  const FieldSpec raw{.name = "raw",
                      .kind = FieldKind::kPath,
                      .doc = "A file with the tensor's raw bytes; requires type and shape.",
                      .example = "weights.bin",
                      .group = "file"};
  const FieldSpec type{.name = "type",
                       .kind = FieldKind::kTypeName,
                       .doc = "Element type of a raw file, or of a .npy file of plain bytes (V2).",
                       .example = "BF16",
                       .choices = {"BOOL", "U8", "U16", "U32", "U64", "F8_E4M3", "F8_E5M2"}};
  const FieldSpec shape{.name = "shape",
                        .kind = FieldKind::kList,
                        .doc = "Dimensions of a raw tensor in NumPy order, with the row length last.",
                        .example = "[128, 4096]",
                        .item = {{.kind = FieldKind::kInteger, .doc = "A dimension."}}};
  const FieldSpec offset{.name = "offset",
                         .kind = FieldKind::kInteger,
                         .doc = "Offset of the tensor in a raw file, in bytes.",
                         .default_text = "0",
                         .example = "4096"};
  const FieldSpec order{.name = "byte_order",
                        .kind = FieldKind::kEnum,
                        .doc = "Byte order of a raw file.",
                        .default_text = "little",
                        .example = "big",
                        .choices = {"little", "big"}};
  const FieldSpec tensor{
      .kind = FieldKind::kMap, .doc = "A tensor.", .fields = {name, npy, raw, type, shape, offset, order}};
  return {.name = "tensors",
          .kind = FieldKind::kList,
          .doc = "The tensors, in output order.",
          .required = true,
          .example = "[{name: token_embd.weight, npy: embeddings.npy}]",
          .item = {tensor}};
}

Shape shape_of(std::vector<std::uint64_t> dims) {
  if (dims.empty()) dims.push_back(1);
  Shape shape;
  shape.rank = static_cast<std::uint32_t>(dims.size());
  std::ranges::reverse_copy(dims, shape.dims.begin());
  return shape;
}

class ArraysReader {
 public:
  ArraysReader(const std::string& path, const Types& types) : path_(path), types_(types) {}

  Result<Model> read() {
    BOOST_OUTCOME_TRY(const std::string text, read_file());
    Diagnostics errors;
    const auto document = read_document(text, path_, errors);
    if (document) lint(document->root, arrays_fields(), errors, types_);
    if (!errors.empty()) return errors.together();
    if (const ConfigNode* metadata = document->root.find("metadata")) {
      BOOST_OUTCOME_TRY(read_metadata(*metadata));
    }
    for (const ConfigNode& tensor : document->root.find("tensors")->items) {
      BOOST_OUTCOME_TRY(read_tensor(tensor));
    }
    return std::move(model_);
  }

 private:
  Result<std::string> read_file() {
    BOOST_OUTCOME_TRY(const auto file, open_source(path_));
    if (file->bytes() > kMostFileBytes)
      return input_error(path_, fmt::format("the file has {}, more than the limit of {}", human_bytes(file->bytes()),
                                            human_bytes(kMostFileBytes)));
    std::string text(file->bytes(), '\0');
    BOOST_OUTCOME_TRY(file->read(0, std::as_writable_bytes(std::span(text))));
    model_.files.push_back(file->describe());
    return text;
  }

  Status read_metadata(const ConfigNode& map) {
    for (const ConfigNode::Entry& entry : map.entries) {
      BOOST_OUTCOME_TRY(MetadataValue value, entry.value.is_map() ? typed_value_of(entry.value)
                                                                  : value_of(written_value(entry.value), nullptr));
      model_.metadata.set_at_end(entry.key, std::move(value));
    }
    return ok();
  }

  Status read_tensor(const ConfigNode& node) {
    Tensor& tensor = model_.tensors.emplace_back();
    tensor.name = node.find("name")->scalar;
    if (!names_.insert(tensor.name).second)
      return error_at(*node.find("name"), fmt::format("two tensors are named {}", quoted_name(tensor.name)));
    const ConfigNode* type_name = node.find("type");
    const TypeInfo* type = type_name ? types_.find(type_name->scalar) : nullptr;
    if (type_name && !type) type = find_source_type(type_name->scalar);
    if (const ConfigNode* npy = node.find("npy")) {
      for (const char* key : {"shape", "offset", "byte_order"})
        if (const ConfigNode* given = node.find(key))
          return error_at(*given, fmt::format("a .npy file contains its own {}", key), "omit it");
      BOOST_OUTCOME_TRY(tensor.expression, read_npy(*npy, type));
    } else {
      if (!type || !node.find("shape"))
        return error_at(node, "a raw file needs a type and a shape", "write {raw: FILE, type: F32, shape: [128, 64]}");
      BOOST_OUTCOME_TRY(tensor.expression, read_raw(node, *type));
    }
    tensor.type = tensor.expression->type;
    return ok();
  }

  Result<std::shared_ptr<const ByteSource>> open(const ConfigNode& name) {
    BOOST_OUTCOME_TRY(auto file, open_source(std::filesystem::path(path_).parent_path() / name.scalar));
    const auto known = std::ranges::find(model_.files, file->path(), [](const SourceRef& each) { return each->path; });
    if (known == model_.files.end()) model_.files.push_back(file->describe());
    return file;
  }

  Result<ExpressionRef> read_npy(const ConfigNode& name, const TypeInfo* type) {
    BOOST_OUTCOME_TRY(const auto file, open(name));
    BOOST_OUTCOME_TRY(NpyHeader header, read_npy_header(*file, type));
    header.data.source = source_of(*file);
    if (header.fortran_order) std::ranges::reverse(header.dims);
    BOOST_OUTCOME_TRY(ExpressionRef array, expressions::extent(*header.type, shape_of(header.dims), header.data));
    if (!header.fortran_order || header.dims.size() < 2) return array;
    std::vector<std::uint32_t> order;
    for (std::uint32_t d = array->shape.rank; d-- > 0;) order.push_back(d);
    return expressions::transpose(std::move(array), std::move(order));
  }

  Result<ExpressionRef> read_raw(const ConfigNode& node, const TypeInfo& type) {
    const ConfigNode& list = *node.find("shape");
    std::vector<std::uint64_t> dims;
    for (const ConfigNode& item : list.items) {
      BOOST_OUTCOME_TRY(const std::int64_t dim, to_integer(item));
      dims.push_back(static_cast<std::uint64_t>(dim));
    }
    if (dims.size() > 4) return error_at(list, fmt::format("{} dimensions are more than the limit of 4", dims.size()));
    const auto elements = elements_of(dims);
    if (!elements) return error_at(list, "more than 2^63 - 1 elements");
    const Shape shape = shape_of(dims);
    if (shape.columns() % type.block_elements != 0)
      return error_at(list, fmt::format("rows of {} elements are not a multiple of the block size {} of {}",
                                        shape.columns(), type.block_elements, type.name));
    const auto bytes = bytes_of(type, *elements);
    if (!bytes) return error_at(list, bytes.error().what);
    Extent data{nullptr, 0, bytes.value(), false};
    if (const ConfigNode* offset = node.find("offset")) {
      BOOST_OUTCOME_TRY(const std::int64_t begin, to_integer(*offset));
      data.offset = static_cast<std::uint64_t>(begin);
    }
    if (const ConfigNode* order = node.find("byte_order")) data.big_endian = order->scalar == "big";
    if (data.big_endian && !can_swap(type))
      return error_at(*node.find("byte_order"), fmt::format("byte swapping of {} is not supported", type.name));
    BOOST_OUTCOME_TRY(const auto file, open(*node.find("raw")));
    if (data.offset > file->bytes() || data.bytes > file->bytes() - data.offset)
      return error_at(*node.find("raw"),
                      fmt::format("{} of {} takes {} bytes from byte {}, past the end of the file of {}",
                                  describe(shape), type.name, data.bytes, data.offset, file->bytes()));
    data.source = source_of(*file);
    return expressions::extent(type, shape, data);
  }

  // Returns the description of a file, which all of its tensors share.
  SourceRef source_of(const ByteSource& file) const {
    return *std::ranges::find(model_.files, file.path(), [](const SourceRef& each) { return each->path; });
  }

  static std::optional<std::uint64_t> elements_of(const std::vector<std::uint64_t>& dims) {
    std::uint64_t elements = 1;
    for (const std::uint64_t dim : dims)
      if (__builtin_mul_overflow(elements, std::max<std::uint64_t>(dim, 1), &elements) ||
          elements > static_cast<std::uint64_t>(INT64_MAX))
        return {};
    return std::ranges::count(dims, 0u) != 0 ? 0 : elements;
  }

  const std::string& path_;
  const Types& types_;
  Model model_;
  std::unordered_set<std::string> names_;
};

class ArraysSource final : public Source {
 public:
  ArraysSource(std::string path, Types types) : path_(std::move(path)), types_(std::move(types)) {}
  Result<Model> open() const override { return ArraysReader(path_, types_).read(); }

 private:
  std::string path_;
  Types types_;
};

}  // namespace
}  // namespace arrays

FieldSpec arrays_fields() {
  return {.kind = FieldKind::kMap,
          .doc = "A model made of separate arrays.",
          .fields = {arrays::metadata_field(), arrays::tensors_field()}};
}

std::unique_ptr<Source> make_arrays_source(std::string path, Types types) {
  return std::make_unique<arrays::ArraysSource>(std::move(path), std::move(types));
}

SourceSpec arrays_source(Types types) {
  FieldSpec field{
      .name = "arrays",
      .kind = FieldKind::kPath,
      .doc = "A YAML file that describes a model made of separate arrays: metadata, and tensors in .npy and raw files.",
      .example = "models/mine/arrays.yaml"};
  return {std::move(field), [types = std::move(types)](const ConfigNode& value) -> Result<std::unique_ptr<Source>> {
            return make_arrays_source(value.scalar, types);
          }};
}

}  // namespace ggufmill
