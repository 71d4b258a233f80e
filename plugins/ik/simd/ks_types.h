#pragma once
// Kernels of IQ2_KS to IQ5_KS, IQ4_KSS and IQ2_KL, with the same results as those of plugins/ik/ks_types.h.

#include "plugins/ik/ks_types.h"
#include "plugins/ik/simd/code_fit.h"
#include "plugins/ik/simd/eight_sums.h"
#include "plugins/ik/simd/row_encoder.h"

namespace ggufmill::simd {

struct IQ2_KS : ik::IQ2_KS {
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void search(const Batch<1>& batch, LaneScales& found);
  class Rows {
   public:
    explicit Rows(const RowScales& found);
    void encode(const Batch<1>& batch, const LaneScales& found, LaneBlocks<Block>& block);
    Words header() const;

   private:
    CodeFit<16> fit_;
    EightSums qx_, q2_;
  };
};

struct IQ3_KS : ik::IQ3_KS {
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void search(const Batch<1>& batch, LaneScales& found);
  class Rows {
   public:
    explicit Rows(const RowScales& found);
    void encode(const Batch<1>& batch, const LaneScales& found, LaneBlocks<Block>& block);
    Words header() const;

   private:
    Floats d_;
    LaneSums sums_;
  };
};

struct IQ4_KS : ik::IQ4_KS {
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void search(const Batch<1>& batch, LaneScales& found);
  class Rows {
   public:
    explicit Rows(const RowScales& found);
    void encode(const Batch<1>& batch, const LaneScales& found, LaneBlocks<Block>& block);
    Words header() const;

   private:
    Floats d_;
    LaneSums sums_;
  };
};

struct IQ5_KS : ik::IQ5_KS {
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void search(const Batch<1>& batch, LaneScales& found);
  class Rows {
   public:
    explicit Rows(const RowScales& found);
    void encode(const Batch<1>& batch, const LaneScales& found, LaneBlocks<Block>& block);
    Words header() const;

   private:
    Floats d_;
    LaneSums sums_;
  };
};

struct IQ4_KSS : ik::IQ4_KSS {
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void search(const Batch<1>& batch, LaneScales& found);
  class Rows {
   public:
    explicit Rows(const RowScales& found);
    void encode(const Batch<1>& batch, const LaneScales& found, LaneBlocks<Block>& block);
    Words header() const;

   private:
    Floats d_;
    LaneSums sums_;
  };
};

struct IQ2_KL : ik::IQ2_KL {
  static void decode_row(const Header& header, const Block* blocks, std::uint64_t count, float* x);
  static void search(const Batch<1>& batch, LaneScales& found);
  class Rows {
   public:
    explicit Rows(const RowScales& found);
    void encode(const Batch<1>& batch, const LaneScales& found, LaneBlocks<Block>& block);
    Words header() const;

   private:
    Floats d_;
    LaneSums sums_;
  };
};

inline constexpr auto kIkKsKernels = simd::row_kernels_of<IQ2_KS, IQ3_KS, IQ4_KS, IQ5_KS, IQ4_KSS, IQ2_KL>();

}  // namespace ggufmill::simd
