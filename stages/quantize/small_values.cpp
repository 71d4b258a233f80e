#include "stages/quantize/small_values.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "pipeline/core/half.h"
#include "pipeline/core/operation.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace {

Error not_small(const std::string& what) { return input_error({}, what + ", so its values are not read"); }

// The bytes that a small tensor is made from.
class SmallMaterial final : public RowMaterial {
 public:
  Status read(const std::vector<ByteRange>& ranges) {
    for (const ByteRange& range : ranges) {
      BOOST_OUTCOME_TRY(const auto file, open_source(range.source->path));
      Piece& piece = pieces_.emplace_back(Piece{range, {}});
      piece.bytes.resize(static_cast<std::size_t>(range.bytes));
      BOOST_OUTCOME_TRY(file->read(range.offset, piece.bytes));
    }
    return ok();
  }

  const std::byte* find(const SourceFile& source, std::uint64_t offset) override {
    for (const Piece& piece : pieces_)
      if (piece.range.source == &source && offset >= piece.range.offset &&
          offset - piece.range.offset < piece.range.bytes)
        return piece.bytes.data() + (offset - piece.range.offset);
    return nullptr;
  }

  Status decode(const TypeInfo& from, const std::byte* row, std::uint64_t columns, float* into) override {
    if (from.name != "F16" && from.name != "BF16") return not_small(fmt::format("it is made from {}", from.name));
    for (std::uint64_t i = 0; i < columns; ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, row + i * sizeof bits, sizeof bits);
      into[i] = from.name == "F16" ? float_of_half(bits) : std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
    }
    return ok();
  }

  Status encode(const TypeInfo& to, const float*, std::uint64_t, std::byte*) override {
    return not_small(fmt::format("it is rounded to {}", to.name));
  }
  const std::string& tensor() const override { return name_; }

 private:
  struct Piece {
    ByteRange range;
    std::vector<std::byte> bytes;
  };
  std::vector<Piece> pieces_;
  std::string name_;
};

}  // namespace

Result<std::vector<float>> read_small_values(const Expression& tensor) {
  const Shape& shape = tensor.shape;
  if (!tensor.type->is_f32()) return not_small(fmt::format("it is {}", tensor.type->name));
  if (shape.elements() > kMaxSmallValues || shape.dims[2] * shape.dims[3] != 1)
    return not_small(fmt::format("it has {} values", describe(shape)));
  const Box all = box_of_rows(shape, 0, shape.dims[1]);
  SmallMaterial material;
  BOOST_OUTCOME_TRY(material.read(ranges_of(tensor, all)));
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  BOOST_OUTCOME_TRY(put_rows(tensor, all, std::as_writable_bytes(std::span(values)).data(),
                             packed_layout(*tensor.type, all), material));
  return values;
}

}  // namespace ggufmill
