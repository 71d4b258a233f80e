#pragma once

namespace ggufmill::simd {

// Calls order(i, j), i < j, for the pairs of positions that Batcher's odd-even merge sort puts in order, in turn. The
// network sorts `count` items, whose number need not be a power of two.
template <class Order>
constexpr void for_each_pair_to_order(int count, const Order& order) {
  for (int run = 1; run < count; run *= 2)
    for (int distance = run; distance > 0; distance /= 2)
      for (int first = distance % run; first + distance < count; first += 2 * distance)
        for (int i = first; i < first + distance && i + distance < count; ++i)
          if (i / (2 * run) == (i + distance) / (2 * run)) order(i, i + distance);
}

}  // namespace ggufmill::simd
