#include "pipeline/io/budget.h"

namespace ggufmill {

bool Budget::try_acquire(std::uint64_t bytes) {
  std::uint64_t used = in_use_.load();
  do {
    if (bytes > bytes_ - used) return false;
  } while (!in_use_.compare_exchange_weak(used, used + bytes));
  std::uint64_t peak = peak_.load();
  while (peak < used + bytes && !peak_.compare_exchange_weak(peak, used + bytes)) {
  }
  return true;
}

void Budget::release(std::uint64_t bytes) { in_use_.fetch_sub(bytes); }

std::uint64_t Budget::in_use() const { return in_use_.load(); }

std::uint64_t Budget::peak() const { return peak_.load(); }

}  // namespace ggufmill
