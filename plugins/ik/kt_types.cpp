#include "plugins/ik/kt_types.h"

#include <cstdlib>

#include "plugins/ik/kt_encoder.h"

namespace ggufmill::ik {

using trellis::kSubBlocks;

void IQ1_KT::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block)
    for (int b = 0; b < kSubBlocks; ++b) {
      const float scale = d * kValues4.plain[block->sh[b] & 15];
      for (int g = 0; g < 4; ++g) {
        const unsigned index = block->ql[4 * b + g] | bits_at(block->qh, 4 * (b % 4) + g, 4 * (b / 4), 15) << 8 |
                               bits_at(block->sh, b, 4 + g, 1) << 12;
        for (const std::int8_t value : trellis_values<8>(index + kTrellisOffset)) *x++ = scale * value;
      }
    }
}

void IQ1_KT::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  trellis::encode_iq1_kt(book_of_iq1_kt(), x, importance, header, blocks, count);
}

void IQ2_KT::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block)
    for (int b = 0; b < kSubBlocks; ++b) {
      const float scale = d * kValues4.plain[bits_at(block->scales, b % 4, 4 * (b / 4), 15)];
      for (int g = 0; g < 4; ++g)
        for (const std::int8_t value : trellis_values<8>(block->ql[4 * b + g].load() + kTrellisOffset))
          *x++ = scale * value;
    }
}

void IQ2_KT::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  trellis::encode_iq2_kt(book_of_iq2_kt(), x, importance, header, blocks, count);
}

void IQ3_KT::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block)
    for (int b = 0; b < kSubBlocks; ++b) {
      const float scale = d * static_cast<float>(bits_at(block->scales, b % 4, 4 * (b / 4), 15));
      for (int g = 0; g < 4; ++g) {
        const auto values = trellis_values<8>(block->ql[4 * b + g].load() + kTrellisOffset);
        for (int k = 0; k < 8; ++k) {
          const float size = scale * static_cast<float>(std::abs(values[static_cast<std::size_t>(k)]));
          *x++ = bits_at(block->qh, 8 * g + k, b, 1) ? -size : size;
        }
      }
    }
}

void IQ3_KT::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  trellis::encode_iq3_kt(book_of_iq3_kt(), x, importance, header, blocks, count);
}

void IQ4_KT::decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x) {
  const float d = header.d.load();
  for (const Block* block = blocks; block != blocks + count; ++block)
    for (int b = 0; b < kSubBlocks; ++b) {
      const std::uint8_t* const shb = block->shb + 4 * b;
      const unsigned high = shb[1] | static_cast<unsigned>(shb[2]) << 8 | static_cast<unsigned>(shb[3]) << 16;
      const float scale = d * static_cast<float>((shb[0] >> 1) - 64);
      const std::uint32_t offset = shb[0] & 1 ? kSecondTrellisOffset : kTrellisOffset;
      for (int g = 0; g < 8; ++g) {
        const int n = 8 * b + g;
        const unsigned index =
            block->ql[n] | bits_at(block->qh, n % 32, 4 * (n / 32), 15) << 8 | (high >> (3 * g) & 7) << 12;
        for (const std::int8_t value : trellis_values<4>(index + offset)) *x++ = scale * value;
      }
    }
}

void IQ4_KT::encode_row(const float* x, const float* importance, Header& header, Block* blocks, std::uint64_t count) {
  trellis::encode_iq4_kt(book_of_iq4_kt(false), book_of_iq4_kt(true), x, importance, header, blocks, count);
}

}  // namespace ggufmill::ik
