#include "plugins/reference/compensate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>

#include "plugins/reference/codebooks.h"

namespace ggufmill::reference {
namespace {

constexpr double kLikeness = 0.4;  // share of a correlation of columns that is taken for one of inputs; measured
#if defined(__AVX512F__)
constexpr int kLanes = 16;  // rows that are compensated at a time, one per lane; the bytes do not depend on it
#elif defined(__AVX__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif
constexpr int kPanel = 256;    // columns whose values are transposed at a time
constexpr int kMinGroup = 16;  // of a type

constexpr int kPadding = 16;  // a multiple of kLanes; groups have a multiple of it, with rows of zeros

// A number for each row of a lane. The compiler makes vectors of it that the instruction set has.
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

// A column of a group of rows; 0 for rows that do not exist.
union Column {
  Lanes lanes[kRowsTogether / kLanes];
  float rows[kRowsTogether];
};

constexpr int kProbes = 16;  // random vectors, see signal()

// Random signs: those of each row, for each probe.
struct Signs {
  float of[kRowsTogether][kProbes];

  constexpr Signs() : of() {
    std::uint64_t state = 0x9e3779b97f4a7c15;
    for (auto& row : of)
      for (float& sign : row) {
        state = state * 6364136223846793005 + 1442695040888963407;
        sign = (state >> 63) != 0 ? 1.0f : -1.0f;
      }
  }
};
constexpr Signs kSigns;

struct Workspace {
  Column x[kPanel];
  Lanes products[kRowsTogether / kLanes][kRowsTogether];  // of kLanes rows: the sums of e r x for each row x
  float roots[kPanel];                                    // r of a column; 0 if it is not compensated
  float pulls[kPanel];                                    // s * r / w
  float norms[kPanel];                                    // 1 / sqrt(sum of the squares of a column), or 0 likewise
  Lanes echoes[kRowsTogether][kProbes / kLanes];          // X X^T v for each v, see probe()
};

// The encoded parts of kLanes rows in the columns of a panel: points, which are levels or the values of those levels in
// kIq4Values, and the lines of their groups.
struct Panel {
  Lanes points[kPanel];
  Lanes scales[kPanel / kMinGroup], offsets[kPanel / kMinGroup];
};

// Rows that are compensated together.
class RowGroup {
 public:
  RowGroup(const LevelAccess& type, const ggufmill_call& call, std::uint64_t first, Workspace& space)
      : type_(type), call_(call), space_(space), row_bytes_(call.cols / type.elements * type.block_bytes) {
    rows_ = static_cast<int>(std::min<std::uint64_t>(call.rows - first, kRowsTogether));
    x_ = static_cast<const float*>(call.src) + first * call.cols;
    encoded_ = static_cast<std::uint8_t*>(call.dst) + first * row_bytes_;
  }

  void compensate() {
    for (auto& of_rows : space_.products) std::fill(std::begin(of_rows), std::end(of_rows), Lanes{});
    for (auto& of_row : space_.echoes) std::fill(std::begin(of_row), std::end(of_row), Lanes{});
    for_panels([&](int part, const Panel& panel) {
      if (part == 0) probe();
      add_products(part, panel);
    });
    share_ = static_cast<float>(kLikeness * signal());
    if (share_ == 0) return;
    for_panels([&](int part, Panel& panel) {
      settle(part, panel);
      write(part, panel);
    });
  }

 private:
  // Calls `use` for each kLanes rows of each panel.
  template <class Use>
  void for_panels(const Use& use) {
    for (at_ = 0; at_ < call_.cols; at_ += kPanel) {
      columns_ = static_cast<int>(std::min<std::uint64_t>(call_.cols - at_, kPanel));
      transpose();
      estimate();
      for (int part = 0; part * kLanes < rows_; ++part) {
        Panel panel;
        read(part, panel);
        use(part, panel);
      }
    }
  }

  void transpose() {
    constexpr int kTile = 16;
    for (int row = rows_; row % kPadding != 0; ++row)
      for (int i = 0; i < columns_; ++i) space_.x[i].rows[row] = 0;
    for (int first = 0; first < columns_; first += kTile)
      for (int row = 0; row < rows_; ++row) {
        const float* from = x_ + static_cast<std::uint64_t>(row) * call_.cols + at_ + first;
        for (int i = 0; i < kTile; ++i) space_.x[first + i].rows[row] = from[i];
      }
  }

  void estimate() {
    for (int i = 0; i < columns_; ++i) {
      float squares = 0;
      for (int row = 0; row < rows_; ++row) squares += space_.x[i].rows[row] * space_.x[i].rows[row];
      const float weight = call_.importance ? call_.importance[at_ + static_cast<std::uint64_t>(i)] : 1.0f;
      const float root = std::sqrt(weight / squares), pull = root / weight, norm = 1 / std::sqrt(squares);
      const bool is_usable = root > 0 && root <= kMax && pull > 0 && pull <= kMax && norm <= kMax;
      space_.roots[i] = is_usable ? root : 0;
      space_.pulls[i] = is_usable ? share_ * pull : 0;
      space_.norms[i] = is_usable ? norm : 0;
    }
  }

  // Adds to X X^T v for each vector v of random signs, where X are the rows with columns scaled to length 1.
  void probe() {
    for (int i = 0; i < columns_; ++i) {
      if (space_.norms[i] == 0) continue;
      ++usable_;
      const float* const x = space_.x[i].rows;
      for (int part = 0; part < kProbes / kLanes; ++part) {
        Lanes sum{};
        for (int row = 0; row < rows_; ++row) {
          Lanes signs;
          std::memcpy(&signs, kSigns.of[row] + part * kLanes, sizeof signs);
          sum += signs * x[row];
        }
        sum = (sum * space_.norms[i]) * space_.norms[i];
        for (int row = 0; row < rows_; ++row) space_.echoes[row][part] += sum * x[row];
      }
    }
  }

  // Returns the part of the squared correlations of the columns that exceeds those of independent numbers. The sum of
  // all of them, and of 1 for each column, is that of the squared elements of X X^T, which is the mean of |X X^T v|^2
  // over vectors v of random signs (Hutchinson's estimate).
  double signal() const {
    double all = 0;
    for (int row = 0; row < rows_; ++row)
      for (int part = 0; part < kProbes / kLanes; ++part)
        for (int lane = 0; lane < kLanes; ++lane) {
          const double echo = double{space_.echoes[row][part][lane]};
          all += echo * echo;
        }
    const double found = all / kProbes - usable_, independent = usable_ * (usable_ - 1) / rows_;
    return found > independent ? 1 - independent / found : 0;
  }

  std::uint8_t* block(int row, int first) const {
    return encoded_ + static_cast<std::uint64_t>(row) * row_bytes_ +
           (at_ + static_cast<std::uint64_t>(first)) / type_.elements * type_.block_bytes;
  }

  // Lanes of rows that do not exist have zeros.
  void read(int part, Panel& panel) const {
    const int elements = static_cast<int>(type_.elements), groups = elements / type_.group;
    std::fill(std::begin(panel.points), std::end(panel.points), Lanes{});
    std::fill(std::begin(panel.scales), std::end(panel.scales), Lanes{});
    std::fill(std::begin(panel.offsets), std::end(panel.offsets), Lanes{});
    for (int lane = 0; lane < kLanes && part * kLanes + lane < rows_; ++lane)
      for (int first = 0; first < columns_; first += elements) {
        std::uint8_t levels[kPanel];
        float scales[kPanel / kMinGroup], offsets[kPanel / kMinGroup];
        const std::uint8_t* const from = block(part * kLanes + lane, first);
        type_.levels(from, levels);
        type_.lines(from, scales, offsets);
        for (int i = 0; i < elements; ++i)
          panel.points[first + i][lane] = type_.is_table ? kIq4Values[levels[i]] : levels[i];
        for (int i = 0; i < groups; ++i) {
          panel.scales[first / type_.group + i][lane] = scales[i];
          panel.offsets[first / type_.group + i][lane] = offsets[i];
        }
      }
  }

  void write(int part, const Panel& panel) const {
    const int elements = static_cast<int>(type_.elements);
    for (int lane = 0; lane < kLanes && part * kLanes + lane < rows_; ++lane)
      for (int first = 0; first < columns_; first += elements) {
        std::uint8_t levels[kPanel];
        for (int i = 0; i < elements; ++i) levels[i] = level_of(panel.points[first + i][lane]);
        type_.put_levels(levels, block(part * kLanes + lane, first));
      }
  }

  const Lanes& values(int part, int i) const { return space_.x[i].lanes[part]; }

  std::uint8_t level_of(float point) const {
    if (!type_.is_table) return static_cast<std::uint8_t>(point);
    return static_cast<std::uint8_t>(std::ranges::find(kIq4Values, static_cast<std::int8_t>(point)) - kIq4Values);
  }

  // Replaces numbers by the nearest points; of two, by the even level or the lower value.
  void round(Lanes& numbers) const {
    if (!type_.is_table) {
      const Lanes most = Lanes{} + static_cast<float>(type_.most), magic = Lanes{} + 12582912.0f;
      numbers = numbers > Lanes{} ? numbers : Lanes{};
      numbers = numbers < most ? numbers : most;
      numbers = (numbers + magic) - magic;
      return;
    }
    Lanes points = Lanes{} + static_cast<float>(kIq4Values[0]);
    for (int k = 0; k + 1 < 16; ++k) {
      const Lanes between = Lanes{} + 0.5f * static_cast<float>(kIq4Values[k] + kIq4Values[k + 1]);
      points += numbers > between ? Lanes{} + static_cast<float>(kIq4Values[k + 1] - kIq4Values[k]) : Lanes{};
    }
    numbers = points;
  }

  // Adds the columns of the panel to the products, in order.
  void add_products(int part, const Panel& panel) {
    Lanes errors[kPanel];
    for (int i = 0; i < columns_; ++i) {
      const int group = i / type_.group;
      const Lanes value = panel.scales[group] * panel.points[i] + panel.offsets[group];
      errors[i] = (value - values(part, i)) * space_.roots[i];
    }
    constexpr int kAtOnce = 8;  // rows; there are products for rows that do not exist
    for (int first = 0; first < rows_; first += kAtOnce) {
      Lanes sums[kAtOnce];
      Lanes* const products = space_.products[part] + first;
      for (int row = 0; row < kAtOnce; ++row) sums[row] = products[row];
      for (int i = 0; i < columns_; ++i)
        for (int row = 0; row < kAtOnce; ++row) sums[row] += errors[i] * space_.x[i].rows[first + row];
      for (int row = 0; row < kAtOnce; ++row) products[row] = sums[row];
    }
  }

  // Adds a change of the error in column `i` to the products, and then sums their products with column `next`: four
  // sums, of every fourth row each.
  void add_change(Lanes* products, int i, const Lanes& error, int next, Lanes& sum) const {
    const float *const x = space_.x[i].rows, *const y = space_.x[next].rows;
    Lanes a{}, b{}, c{}, d{};
    for (int row = 0; row < rows_; row += 4) {  // there are zeros for rows that do not exist
      products[row] += error * x[row];
      products[row + 1] += error * x[row + 1];
      products[row + 2] += error * x[row + 2];
      products[row + 3] += error * x[row + 3];
      a += products[row] * y[row];
      b += products[row + 1] * y[row + 1];
      c += products[row + 2] * y[row + 2];
      d += products[row + 3] * y[row + 3];
    }
    sum = (a + b) + (c + d);
  }

  // The sum over all columns is least for the error
  //   e_i = -(1 / w_i) sum over j != i(C_ij e_j) = s e_i - (s r_i / w_i) sum over rows(x_i p),
  // where p are the products, to which column i itself contributes.
  void settle(int part, Panel& panel) {
    Lanes* const products = space_.products[part];
    Lanes sum;
    add_change(products, 0, Lanes{}, 0, sum);
    for (int i = 0; i < columns_; ++i) {
      const Lanes scale = panel.scales[i / type_.group], offset = panel.offsets[i / type_.group];
      const Lanes x = values(part, i), point = panel.points[i];
      const Lanes error = (scale * point + offset) - x;
      const Lanes wanted = (x + share_ * error) - space_.pulls[i] * sum;
      const Lanes exact = (wanted - offset) / scale;
      Lanes rounded = exact;
      round(rounded);
      // Columns that are not compensated, groups without a scale and sums that are not numbers keep their levels.
      rounded = (exact - exact == Lanes{} && Lanes{} + space_.roots[i] > Lanes{}) ? rounded : point;
      panel.points[i] = rounded;
      const Lanes change = ((scale * rounded + offset) - x) - error;
      add_change(products, i, change * space_.roots[i], std::min(i + 1, columns_ - 1), sum);
    }
  }

  static constexpr float kMax = 0x1p100f;

  const LevelAccess& type_;
  const ggufmill_call& call_;
  Workspace& space_;
  std::uint64_t row_bytes_;
  int rows_ = 0;
  const float* x_ = nullptr;
  std::uint8_t* encoded_ = nullptr;
  std::uint64_t at_ = 0;  // first column of the panel
  int columns_ = 0;       // of the panel
  double usable_ = 0;     // columns that have a norm
  float share_ = 0;       // s; 0 before it is known
};

}  // namespace

std::int32_t compensate(const LevelAccess& type, const ggufmill_call& call) {
  const std::unique_ptr<Workspace> space(new (std::nothrow) Workspace);
  if (!space) return GGUFMILL_NO_MEMORY;
  for (std::uint64_t first = 0; first < call.rows; first += kRowsTogether)
    RowGroup(type, call, first, *space).compensate();
  return GGUFMILL_OK;
}

}  // namespace ggufmill::reference
