#include "stages/importance/float_run.h"

#include "pipeline/core/byte_order.h"

namespace ggufmill {

Status FloatRun::read(std::uint64_t first, std::span<float> into) const {
  const std::span<std::byte> bytes = std::as_writable_bytes(into);
  BOOST_OUTCOME_TRY(file->read(offset + first * sizeof(float), bytes));
  if (big_endian) swap_words(sizeof(float), bytes);
  return ok();
}

}  // namespace ggufmill
