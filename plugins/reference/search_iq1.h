#pragma once
// The search of search_book.h for IQ1_S and IQ1_M: the values of a group are a point of the book, all of them shifted
// up or down. The number of a point is its index, plus the size of the book if it is shifted down.

#include "plugins/reference/iq1_thirds.h"
#include "plugins/reference/iq1_types.h"
#include "plugins/reference/iq_bits.h"
#include "plugins/reference/search_book.h"

namespace ggufmill::reference {

// Scales of 3 bits; what IQ1_S and IQ1_M have in common.
struct Iq1Book {
  static constexpr int kMaxCode = 7;
  static constexpr PartRange kParts{0.8f, 1.7f};
  static constexpr const CodeBook<Ternary, 2048>& kBook = kIq1Book;
  static constexpr const std::int8_t* kMagnitudes = kIq1Values;
  static constexpr unsigned kDown = 2048;  // of the number of a point
  static const Lattice<Ternary>& lattice() { return iq1_lattice(); }
  static float scale(float d, unsigned stored) { return d * static_cast<float>(2 * stored + 1); }
};

struct Iq1SBook : Iq1Book {
  using Block = Iq1S::Block;
  static constexpr int kSubBlock = 32;
  static constexpr bool kSharesShift = true;  // by the groups of a sub-block

  static void put_scale(Block& block, int sub, unsigned scale) { put_u16(block.qh + 2 * sub, scale << 12); }
  static void put_index(Block& block, int group, unsigned point) {
    put_u8(block.qs[group], point & 255);
    put_u16(block.qh + group / 4 * 2, (point >> 8 & 7) << (group % 4 * 3) | (point & kDown) << 4);
  }
};

struct Iq1MBook : Iq1Book {
  using Block = Iq1M::Block;
  static constexpr int kSubBlock = 16;
  static constexpr bool kSharesShift = false;

  static void put_d(Block& block, float d) {
    for (int i = 0; i < 4; ++i) put_u8(block.scales[2 * i + 1], (float_to_half(d) >> (4 * i) & 15u) << 4);
  }
  static void put_scale(Block& block, int sub, unsigned scale) {
    put_u16(block.scales + sub / 4 * 2, scale << (sub % 4 * 3));
  }
  static void put_index(Block& block, int group, unsigned point) {
    put_u8(block.qs[group], point & 255);
    put_u8(block.qh[group / 2], (point >> 8 & 15) << (group % 2 * 4));
  }
};

// Chooses the points of a sub-block: `of(group, shift)` returns the choice for the group with index `group` in the
// super-block, of the points shifted up (0) or down (1). Of equal choices, the one shifted up is taken.
template <class Format, class Of>
inline void choose_shifted(int sub, PointChoice* choices, const Of& of) {
  constexpr int kGroups = BookShape<Format>::kGroups;
  PointChoice down[kGroups];
  float error_up = 0, error_down = 0;
  for (int i = 0; i < kGroups; ++i) {
    choices[i] = of(sub * kGroups + i, 0);
    down[i] = of(sub * kGroups + i, 1);
    down[i].point += static_cast<int>(Format::kDown);
    error_up += choices[i].error;
    error_down += down[i].error;
  }
  for (int i = 0; i < kGroups; ++i)
    if (Format::kSharesShift ? error_down < error_up : down[i].error < choices[i].error) choices[i] = down[i];
}

// Chooses the best points of the groups of a super-block, shifted up or down.
template <class Format>
class ShiftedPoints {
 public:
  ShiftedPoints(const float* x, const float* w) {
    for (int shift = 0; shift < 2; ++shift)
      for (int group = 0; group < Shape::kAllGroups; ++group) {
        // The terms of each value and level.
        float xms[Shape::kDims][Shape::kLevels], mms[Shape::kDims][Shape::kLevels];
        for (int i = 0; i < Shape::kDims; ++i)
          for (int level = 0; level < Shape::kLevels; ++level) {
            const int at = group * Shape::kDims + i;
            const float m = kShiftedValues[shift][static_cast<std::size_t>(level)], wm = w[at] * m;
            xms[i][level] = wm * x[at];
            mms[i][level] = wm * m;
          }
        for (int point = 0; point < Shape::kPoints; ++point) {
          float xm = 0, mm = 0;
          for (int i = 0; i < Shape::kDims; ++i) {
            const int level = Format::kBook[point][i];
            xm += xms[i][level];
            mm += mms[i][level];
          }
          xm_[shift][group][point] = xm;
          mm_[shift][group][point] = mm;
        }
      }
  }

  // Chooses the points of the groups of a sub-block.
  void choose(int sub, float scale, PointChoice* choices) const {
    choose_shifted<Format>(sub, choices, [&](int group, int shift) {
      return AllPoints<Format>::choose(xm_[shift][group], mm_[shift][group], scale);
    });
  }

 private:
  using Shape = BookShape<Format>;

  float xm_[2][Shape::kAllGroups][Shape::kPoints], mm_[2][Shape::kAllGroups][Shape::kPoints];
};

}  // namespace ggufmill::reference
