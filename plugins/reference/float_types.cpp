#include "plugins/reference/number_types.h"

#include <cstring>

#include "plugins/reference/floats.h"

namespace ggufmill::reference {
namespace {

// Row boundaries do not matter for these types, so one loop covers all elements.
template <class From, class To, To (*kConvert)(From)>
int32_t convert(const ggufmill_call* call) {
  const auto* from = static_cast<const From*>(call->src);
  auto* to = static_cast<To*>(call->dst);
  const std::uint64_t count = call->rows * call->cols;
  for (std::uint64_t i = 0; i < count; ++i) to[i] = kConvert(from[i]);
  return GGUFMILL_OK;
}

float narrow(double value) { return static_cast<float>(value); }
double widen(float value) { return value; }

}  // namespace

int32_t copy_f32(const ggufmill_call* call) {
  std::memcpy(call->dst, call->src, call->rows * call->cols * sizeof(float));
  return GGUFMILL_OK;
}

int32_t decode_f16(const ggufmill_call* call) { return convert<std::uint16_t, float, half_to_float>(call); }
int32_t encode_f16(const ggufmill_call* call) { return convert<float, std::uint16_t, float_to_half>(call); }
int32_t decode_bf16(const ggufmill_call* call) { return convert<std::uint16_t, float, bfloat_to_float>(call); }
int32_t encode_bf16(const ggufmill_call* call) { return convert<float, std::uint16_t, float_to_bfloat>(call); }
int32_t decode_f64(const ggufmill_call* call) { return convert<double, float, narrow>(call); }
int32_t encode_f64(const ggufmill_call* call) { return convert<float, double, widen>(call); }

}  // namespace ggufmill::reference
