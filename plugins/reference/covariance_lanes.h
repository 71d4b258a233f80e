// The choice of levels and the factorization of a covariance, for one instruction set. Included once for each, in a
// namespace of its own, with GGUFMILL_LANES, the number of 32-bit lanes of its vectors.
//
// Each sum is one number to which one term after the other is added, in the order of the columns, without fused
// operations. Rows are the lanes, and columns are worked on tile by tile; neither changes a sum.

constexpr int kLanes = GGUFMILL_LANES;
constexpr int kTile = GGUFMILL_METRIC_TILE;
constexpr int kAtOnce = 4;  // columns whose sums are in registers

// A number for each of some rows.
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using Mask = std::int32_t __attribute__((vector_size(kLanes * sizeof(float))));
using Doubles = double __attribute__((vector_size(kLanes * sizeof(float))));

#include "plugins/reference/covariance_book_lanes.h"

// Rows whose levels are chosen together: `kVectors` vectors of rows. All arrays have `kVectors` vectors for each
// column, or for each group of columns with one scale.
template <int kVectors>
class RowGroup {
 public:
  static constexpr int kRows = kVectors * kLanes;

  RowGroup(const PointAccess& type, const ggufmill_level_call& call) : type_(type), call_(call), metric_(*call.metric) {
    if (type.book) together_ = type.book->together();
    const std::uint64_t numbers = call.cols * kVectors, groups = call.cols / static_cast<std::uint64_t>(type.group);
    w_ = static_cast<Lanes*>(call.memory);
    e_ = w_ + numbers;
    g_ = e_ + numbers;
    points_ = g_ + numbers;
    scales_ = points_ + numbers;
    offsets_ = scales_ + groups * kVectors;
  }

  // Chooses the levels of rows [first, first + rows); rows <= kRows.
  void choose(std::uint64_t first, int rows) {
    for (int lane = 0; lane < kRows; ++lane) load(first + static_cast<std::uint64_t>(lane), lane, lane < rows);
    for (std::uint64_t i = 0; i < call_.cols; ++i)
      for (int v = 0; v < kVectors; ++v) set_error(i, v);
    const float* tiles = metric_.tiles;
    for (std::uint64_t at = 0; at < metric_.columns; at += metric_.block) {
      first_ = at;
      columns_ = metric_.columns - at < metric_.block ? metric_.columns - at : metric_.block;
      count_ = (columns_ + kTile - 1) / kTile;
      const std::uint64_t numbers = count_ * (count_ + 1) / 2 * kTile * kTile;
      feed_back(tiles);
      descend(tiles + numbers);
      tiles += 2 * numbers;
    }
    for (int lane = 0; lane < rows; ++lane) store(first + static_cast<std::uint64_t>(lane), lane);
  }

 private:
  static float* floats(Lanes* lanes) { return reinterpret_cast<float*>(lanes); }

  std::uint8_t* block_of(std::uint64_t row, std::uint64_t column) const {
    const std::uint64_t blocks = call_.cols / type_.elements;
    return static_cast<std::uint8_t*>(call_.encoded) + (row * blocks + column / type_.elements) * type_.block_bytes;
  }

  // Lanes without a row have zeros.
  void load(std::uint64_t row, int lane, bool is_row) {
    const auto group = static_cast<std::uint64_t>(type_.group);
    float points[kMaxElements] = {}, scales[kMaxElements / kMinGroup] = {}, offsets[kMaxElements / kMinGroup] = {};
    for (std::uint64_t at = 0; at < call_.cols; at += type_.elements) {
      if (is_row) {
        type_.points(block_of(row, at), points);
        type_.lines(block_of(row, at), scales, offsets);
      }
      const float* const weights = call_.weights + row * call_.cols + at;
      for (std::uint64_t i = 0; i < type_.elements; ++i) {
        floats(points_)[(at + i) * kRows + static_cast<std::uint64_t>(lane)] = points[i];
        floats(w_)[(at + i) * kRows + static_cast<std::uint64_t>(lane)] = is_row ? weights[i] : 0.0f;
      }
      for (std::uint64_t i = 0; i < type_.elements / group; ++i) {
        floats(scales_)[(at / group + i) * kRows + static_cast<std::uint64_t>(lane)] = scales[i];
        floats(offsets_)[(at / group + i) * kRows + static_cast<std::uint64_t>(lane)] = offsets[i];
      }
    }
  }

  void store(std::uint64_t row, int lane) {
    float points[kMaxElements];
    for (std::uint64_t at = 0; at < call_.cols; at += type_.elements) {
      for (std::uint64_t i = 0; i < type_.elements; ++i)
        points[i] = floats(points_)[(at + i) * kRows + static_cast<std::uint64_t>(lane)];
      type_.put_points(points, block_of(row, at));
    }
  }

  std::uint64_t line_of(std::uint64_t column) const {
    return column / static_cast<std::uint64_t>(type_.group) * kVectors;
  }

  void set_error(std::uint64_t i, int v) {
    const std::uint64_t line = line_of(i) + static_cast<std::uint64_t>(v),
                        at = i * kVectors + static_cast<std::uint64_t>(v);
    e_[at] = w_[at] - (scales_[line] * points_[at] + offsets_[line]);
  }

  // Replaces numbers by the nearest points; of two, by the even level or the lower value.
  void round(Lanes& numbers) const {
    const std::int8_t* const table = type_.table;
    if (!table) {
      const Lanes least = Lanes{} + type_.least, most = Lanes{} + type_.most;
      const Lanes magic = Lanes{} + 12582912.0f;  // 1.5 * 2^23
      numbers = numbers > least ? numbers : least;
      numbers = numbers < most ? numbers : most;
      numbers = (numbers + magic) - magic;
      return;
    }
    Lanes points = Lanes{} + static_cast<float>(table[0]);
    for (int k = 0; k + 1 < 16; ++k) {
      const Lanes between = Lanes{} + 0.5f * static_cast<float>(table[k] + table[k + 1]);
      points += numbers > between ? Lanes{} + static_cast<float>(table[k + 1] - table[k]) : Lanes{};
    }
    numbers = points;
  }

  // Gives column i the points nearest to `wanted`. Groups without a scale, and what is not a number, remain.
  void choose_point(std::uint64_t i, int v, const Lanes& wanted) {
    const std::uint64_t line = line_of(i) + static_cast<std::uint64_t>(v),
                        at = i * kVectors + static_cast<std::uint64_t>(v);
    const Lanes scale = scales_[line];
    Lanes x = (wanted - offsets_[line]) / scale;
    const Mask is_usable = (scale != Lanes{}) & (x - x == Lanes{});
    round(x);
    points_[at] = is_usable ? x : points_[at];
    set_error(i, v);
  }

  // Requests a tile that is used next. They come from memory, in no order that the CPU would recognise.
  static void prefetch(const float* tile) {
    constexpr int kLine = 16;
    for (int i = 0; i < kTile * kTile; i += kLine) __builtin_prefetch(tile + i);
  }

  // Adds, for each column k of a tile, the sum over columns i < `rows` of e_i M_ik, where M_ik is at
  // tile[k * kByColumn + i * kByRow]. `sums` and `errors` are those of the first columns.
  template <int kByColumn, int kByRow>
  static void add_products(const float* tile, const Lanes* errors, std::uint64_t rows, Lanes* sums,
                           std::uint64_t columns) {
    constexpr int kTogether = kVectors < 2 ? 1 : 2;  // vectors whose sums are in registers
    for (int first = 0; first < kVectors; first += kTogether) {
      std::uint64_t k = 0;
      for (; k + kAtOnce <= columns; k += kAtOnce) {
        Lanes of[kAtOnce][kTogether];
        Lanes* const to = sums + k * kVectors + first;
        for (int q = 0; q < kAtOnce; ++q)
          for (int v = 0; v < kTogether; ++v) of[q][v] = to[q * kVectors + v];
        const float* m = tile + k * kByColumn;
        const Lanes* e = errors + first;
        for (std::uint64_t i = 0; i < rows; ++i, m += kByRow, e += kVectors)
          for (int q = 0; q < kAtOnce; ++q)
            for (int v = 0; v < kTogether; ++v) of[q][v] += e[v] * m[q * kByColumn];
        for (int q = 0; q < kAtOnce; ++q)
          for (int v = 0; v < kTogether; ++v) to[q * kVectors + v] = of[q][v];
      }
      for (; k < columns; ++k)
        for (std::uint64_t i = 0; i < rows; ++i)
          for (std::uint64_t v = static_cast<std::uint64_t>(first); v < static_cast<std::uint64_t>(first + kTogether);
               ++v)
            sums[k * kVectors + v] += errors[i * kVectors + v] * tile[k * kByColumn + i * kByRow];
    }
  }

  static const float* tile_at(const float* tiles, std::uint64_t row, std::uint64_t column) {
    return tiles + (column * (column + 1) / 2 + row) * kTile * kTile;
  }
  static const float* tile_between(const float* tiles, std::uint64_t a, std::uint64_t b) {
    return a < b ? tile_at(tiles, a, b) : tile_at(tiles, b, a);
  }
  std::uint64_t columns_in(std::uint64_t tile) const {
    return columns_ - tile * kTile < kTile ? columns_ - tile * kTile : kTile;
  }
  // The first of the block's columns in `of`, an array of all columns, that is in a tile.
  Lanes* columns_of(Lanes* of, std::uint64_t tile) const { return of + (first_ + tile * kTile) * kVectors; }

  void clear_sums() {
    Lanes* const end = columns_of(g_, 0) + columns_ * kVectors;
    for (Lanes* sum = columns_of(g_, 0); sum != end; ++sum) *sum = Lanes{};
  }

  // Error feedback: from the first column to the last, each takes over what the errors of the columns before it make
  // wrong in the product.
  void feed_back(const float* tiles) {
    clear_sums();
    for (std::uint64_t tile = 0; tile < count_; ++tile) {
      const std::uint64_t columns = columns_in(tile);
      Lanes* const sums = columns_of(g_, tile);
      for (std::uint64_t before = 0; before < tile; ++before) {
        prefetch(tile_at(tiles, before + 1, tile));
        add_products<kTile, 1>(tile_at(tiles, before, tile), columns_of(e_, before), kTile, sums, columns);
      }
      const float* const own = tile_at(tiles, tile, tile);
      for (std::uint64_t i = 0; i < columns; i += together_) {
        const std::uint64_t column = first_ + tile * kTile + i;
        feed_into(own, i, column);
        for (int v = 0; v < kVectors; ++v)
          for (std::uint64_t of = 0; of < together_; ++of)
            for (std::uint64_t k = i + together_; k < columns; ++k)
              sums[k * kVectors + static_cast<std::uint64_t>(v)] +=
                  e_[(column + of) * kVectors + static_cast<std::uint64_t>(v)] * own[k * kTile + i + of];
      }
    }
  }

  // Gives the columns that are chosen together from column i of a tile on, `column` of all, what the errors before them
  // ask for.
  void feed_into(const float* own, std::uint64_t i, std::uint64_t column) {
    if (type_.book) {
      const float* const at = own + i * kTile + i;
      if (type_.book->dims == 8) return feed_into_book<8, 8>(at, column);
      return together_ == 8 ? feed_into_book<4, 8>(at, column) : feed_into_book<4, 4>(at, column);
    }
    for (int v = 0; v < kVectors; ++v) {
      const std::uint64_t at = column * kVectors + static_cast<std::uint64_t>(v);
      choose_point(column, v, w_[at] + g_[at] * metric_.inverse_a[column]);
    }
  }

  // As above, for columns with a code book, whose entries have kDims columns. `own` is element (i, i) of the tile.
  template <int kDims, int kColumns>
  void feed_into_book(const float* own, std::uint64_t column) {
    Quadratic<kColumns> form;
    for (int i = 0; i < kColumns; ++i)
      for (int j = 0; j <= i; ++j) {
        float sum = 0;
        for (int k = i; k < kColumns; ++k) sum += own[k * kTile + i] * own[k * kTile + j];
        form.d[i][j] = form.d[j][i] = sum;
      }
    for (int v = 0; v < kVectors; ++v) {
      Lanes added[kColumns], wanted[kColumns];
      for (int k = 0; k < kColumns; ++k) {
        const std::uint64_t at = place_of(column, k, v);
        Lanes missing = g_[at];
        for (int j = 0; j < k; ++j) missing -= added[j] * own[k * kTile + j];
        added[k] = missing * metric_.inverse_a[column + static_cast<std::uint64_t>(k)];
        wanted[k] = w_[at] + added[k];
      }
      form.aim_at(wanted);
      put_entries<kDims>(form, wanted, column, v, false);
    }
  }

  // Likewise.
  template <int kDims, int kColumns>
  void reconsider_in_book(const float* own, std::uint64_t column, int v) {
    Quadratic<kColumns> form;
    Lanes values[kColumns], wanted[kColumns];
    const Lanes scale = scales_[line_of(column) + static_cast<std::uint64_t>(v)];
    for (int i = 0; i < kColumns; ++i) {
      for (int j = 0; j < kColumns; ++j) form.d[i][j] = own[j * kTile + i];
      const std::uint64_t at = place_of(column, i, v);
      values[i] = scale * points_[at];
      wanted[i] = values[i] + g_[at] * metric_.inverse_h[column + static_cast<std::uint64_t>(i)];
    }
    form.aim_at(values);
    for (int i = 0; i < kColumns; ++i) form.b[i] += g_[place_of(column, i, v)];
    put_entries<kDims>(form, wanted, column, v, true);
  }

  std::uint64_t place_of(std::uint64_t column, int i, int v) const {
    return (column + static_cast<std::uint64_t>(i)) * kVectors + static_cast<std::uint64_t>(v);
  }

  // Gives columns entries of the book; if they must be better, only where they lower the form.
  template <int kDims, int kColumns>
  void put_entries(const Quadratic<kColumns>& form, const Lanes* wanted, std::uint64_t column, int v,
                   bool must_be_better) {
    const Lanes scale = scales_[line_of(column) + static_cast<std::uint64_t>(v)];
    Lanes points[kColumns], values[kColumns], current[kColumns];
    choose_entries<kDims, kColumns>(*type_.book, form, wanted, scale, points);
    Mask is_usable = scale != Lanes{};
    for (int i = 0; i < kColumns; ++i) {
      is_usable &= wanted[i] - wanted[i] == Lanes{};
      values[i] = scale * points[i];
      current[i] = scale * points_[place_of(column, i, v)];
    }
    if (must_be_better) is_usable &= form.of(values) < form.of(current);
    for (int i = 0; i < kColumns; ++i) {
      const std::uint64_t at = place_of(column, i, v);
      points_[at] = is_usable ? points[i] : points_[at];
      set_error(column + static_cast<std::uint64_t>(i), v);
    }
  }

  // Coordinate descent: each column gets the best level, given the current levels of all others.
  void descend(const float* tiles) {
    if (call_.sweeps == 0) return;
    clear_sums();
    for (std::uint64_t tile = 0; tile < count_; ++tile)
      for (std::uint64_t other = 0; other < count_; ++other) {
        if (other + 1 < count_) prefetch(tile_between(tiles, tile, other + 1));
        Lanes* const sums = columns_of(g_, tile);
        if (other <= tile)
          add_products<kTile, 1>(tile_between(tiles, tile, other), columns_of(e_, other), columns_in(other), sums,
                                 columns_in(tile));
        else
          add_products<1, kTile>(tile_between(tiles, tile, other), columns_of(e_, other), columns_in(other), sums,
                                 columns_in(tile));
      }
    for (std::uint32_t sweep = 0; sweep < call_.sweeps; ++sweep) {
      bool is_changed = false;
      for (std::uint64_t tile = 0; tile < count_; ++tile) is_changed |= reconsider(tiles, tile);
      if (!is_changed) return;
    }
  }

  // Changes of the errors of one vector of rows, in some columns of a tile.
  struct Changes {
    Lanes of[kTile];
    std::uint8_t columns[kTile];
    std::uint64_t count = 0;
  };

  // As add_products(), for the columns that have changed, and sums that are `kVectors` apart.
  template <int kByColumn, int kByRow>
  static void add_changes(const float* tile, const Changes& changes, Lanes* sums, std::uint64_t columns) {
    constexpr int kMany = 8;
    std::uint64_t k = 0;
    for (; k + kMany <= columns; k += kMany) {
      Lanes of[kMany];
      for (int q = 0; q < kMany; ++q) of[q] = sums[(k + static_cast<std::uint64_t>(q)) * kVectors];
      for (std::uint64_t i = 0; i < changes.count; ++i) {
        const float* const m = tile + k * kByColumn + changes.columns[i] * kByRow;
        for (int q = 0; q < kMany; ++q) of[q] += changes.of[i] * m[q * kByColumn];
      }
      for (int q = 0; q < kMany; ++q) sums[(k + static_cast<std::uint64_t>(q)) * kVectors] = of[q];
    }
    for (; k < columns; ++k)
      for (std::uint64_t i = 0; i < changes.count; ++i)
        sums[k * kVectors] += changes.of[i] * tile[k * kByColumn + changes.columns[i] * kByRow];
  }

  // Reconsiders the points that are chosen together from column i of a tile on, `column` of all.
  void reconsider(const float* own, std::uint64_t i, std::uint64_t column, int v) {
    if (type_.book) {
      const float* const at = own + i * kTile + i;
      if (type_.book->dims == 8) return reconsider_in_book<8, 8>(at, column, v);
      return together_ == 8 ? reconsider_in_book<4, 8>(at, column, v) : reconsider_in_book<4, 4>(at, column, v);
    }
    const std::uint64_t line = line_of(column) + static_cast<std::uint64_t>(v),
                        at = column * kVectors + static_cast<std::uint64_t>(v);
    const Lanes value = scales_[line] * points_[at] + offsets_[line];
    choose_point(column, v, value + g_[at] * metric_.inverse_h[column]);
  }

  // Reconsiders the levels of the columns of a tile. Returns true if any has changed.
  bool reconsider(const float* tiles, std::uint64_t tile) {
    const float* const own = tile_at(tiles, tile, tile);
    const std::uint64_t columns = columns_in(tile);
    Changes changes[kVectors];
    for (std::uint64_t i = 0; i < columns; i += together_) {
      const std::uint64_t column = first_ + tile * kTile + i;
      for (int v = 0; v < kVectors; ++v) {
        Lanes errors[kMaxTogether];
        for (std::uint64_t of = 0; of < together_; ++of)
          errors[of] = e_[(column + of) * kVectors + static_cast<std::uint64_t>(v)];
        reconsider(own, i, column, v);
        for (std::uint64_t of = 0; of < together_; ++of) {
          const Lanes change = e_[(column + of) * kVectors + static_cast<std::uint64_t>(v)] - errors[of];
          if (!any(change != Lanes{})) continue;
          changes[v].of[changes[v].count] = change;
          changes[v].columns[changes[v].count++] = static_cast<std::uint8_t>(i + of);
          Lanes* const sums = columns_of(g_, tile) + v;
          for (std::uint64_t k = 0; k < columns; ++k) sums[k * kVectors] += change * own[k * kTile + i + of];
        }
      }
    }
    bool is_changed = false;
    for (const Changes& each : changes) is_changed |= each.count != 0;
    if (!is_changed) return false;
    for (std::uint64_t other = 0; other < count_; ++other) {
      if (other == tile) continue;
      if (other + 1 < count_) prefetch(tile_between(tiles, tile, other + 1));
      const float* const between = tile_between(tiles, tile, other);
      for (int v = 0; v < kVectors; ++v) {
        Lanes* const sums = columns_of(g_, other) + v;
        if (other > tile)
          add_changes<kTile, 1>(between, changes[v], sums, columns_in(other));
        else
          add_changes<1, kTile>(between, changes[v], sums, columns_in(other));
      }
    }
    return true;
  }

  static bool any(const Mask& mask) {
    std::int32_t all = 0;
    for (int lane = 0; lane < kLanes; ++lane) all |= mask[lane];
    return all != 0;
  }

  const PointAccess& type_;
  const ggufmill_level_call& call_;
  const ggufmill_metric& metric_;
  Lanes *w_, *e_, *g_, *points_, *scales_, *offsets_;
  std::uint64_t together_ = 1;                         // columns whose points are chosen together
  std::uint64_t first_ = 0, columns_ = 0, count_ = 0;  // of the block of columns: the first, their number, and tiles
};

template <int kVectors>
std::uint64_t choose_rows_with(const PointAccess& type, const ggufmill_level_call& call, std::uint64_t row) {
  const std::uint64_t left = call.rows - row,
                      rows = left < RowGroup<kVectors>::kRows ? left : RowGroup<kVectors>::kRows;
  RowGroup<kVectors>(type, call).choose(row, static_cast<int>(rows));
  return rows;
}

// Returns the number of rows that were done. Vectors without any row would need more memory than there is.
std::uint64_t choose_rows(const PointAccess& type, const ggufmill_level_call& call, std::uint64_t row) {
  const std::uint64_t left = call.rows - row;
  if (left > 3 * kLanes) return choose_rows_with<4>(type, call, row);
  return left > kLanes ? choose_rows_with<2>(type, call, row) : choose_rows_with<1>(type, call, row);
}

std::int32_t choose_levels(const ggufmill_level_call* call) {
  const PointAccess* const type = find_points(call->type_id);
  if (!type || !suits(*type, *call->metric)) return 1;
  for (std::uint64_t row = 0; row < call->rows;) row += choose_rows(*type, *call, row);
  return 0;
}

// Writes the losses of one vector of rows, whose errors are `errors`, GGUFMILL_LEVEL_ROWS numbers apart.
void losses_of(const ggufmill_loss_call& call, const float* errors, double* losses) {
  constexpr int kMany = 8;  // vectors whose products are in registers
  const auto add = [&](const Lanes& product) {
    for (int lane = 0; lane < kLanes; ++lane) losses[lane] += static_cast<double>(product[lane]) * product[lane];
  };
  std::uint64_t t = 0;
  for (; t + kMany <= call.count; t += kMany) {
    Lanes of[kMany] = {};
    const float* const x = call.vectors + t * call.cols;
    for (std::uint64_t i = 0; i < call.cols; ++i) {
      Lanes e;
      std::memcpy(&e, errors + i * GGUFMILL_LEVEL_ROWS, sizeof e);
      for (int q = 0; q < kMany; ++q) of[q] += e * x[static_cast<std::uint64_t>(q) * call.cols + i];
    }
    for (int q = 0; q < kMany; ++q) add(of[q]);
  }
  for (; t < call.count; ++t) {
    Lanes of = {};
    for (std::uint64_t i = 0; i < call.cols; ++i) {
      Lanes e;
      std::memcpy(&e, errors + i * GGUFMILL_LEVEL_ROWS, sizeof e);
      of += e * call.vectors[t * call.cols + i];
    }
    add(of);
  }
}

void losses(const ggufmill_loss_call* call) {
  auto* const errors = static_cast<float*>(call->memory);
  for (std::uint64_t i = 0; i < call->cols; ++i)
    for (std::uint64_t row = 0; row < GGUFMILL_LEVEL_ROWS; ++row) {
      const std::uint64_t at = row * call->cols + i;
      errors[i * GGUFMILL_LEVEL_ROWS + row] = row < call->rows ? call->weights[at] - call->decoded[at] : 0;
    }
  double of_rows[GGUFMILL_LEVEL_ROWS] = {};
  for (std::uint64_t row = 0; row < call->rows; row += kLanes) losses_of(*call, errors + row, of_rows + row);
  for (std::uint64_t row = 0; row < call->rows; ++row) call->losses[row] = of_rows[row];
}

// Subtracts from each element (i, j) the products of elements (i, k) and (j, k), from the last k to the first.
void update(double* tile, const double* a_ik, const double* a_jk) {
  constexpr int kWidth = kLanes / 2, kVectors = 2;
  for (int j = 0; j < kTile; j += kAtOnce)
    for (int i = 0; i < kTile; i += kVectors * kWidth) {
      Doubles of[kAtOnce][kVectors];
      for (int q = 0; q < kAtOnce; ++q) std::memcpy(of[q], tile + (j + q) * kTile + i, sizeof of[q]);
      for (int k = kTile; k-- > 0;) {
        Doubles a[kVectors];
        std::memcpy(a, a_ik + k * kTile + i, sizeof a);
        for (int q = 0; q < kAtOnce; ++q)
          for (int v = 0; v < kVectors; ++v) of[q][v] -= a[v] * a_jk[k * kTile + j + q];
      }
      for (int q = 0; q < kAtOnce; ++q) std::memcpy(tile + (j + q) * kTile + i, of[q], sizeof of[q]);
    }
}

std::int32_t diagonal(double* tile, std::uint64_t columns) {
  for (std::uint64_t k = columns; k-- > 0;) {
    double* const column = tile + k * kTile;
    if (!(column[k] > 0)) return 1;
    const double root = std::sqrt(column[k]);
    for (std::uint64_t i = 0; i < k; ++i) column[i] /= root;
    column[k] = root;
    for (std::uint64_t i = k + 1; i < kTile; ++i) column[i] = 0;
    for (std::uint64_t j = 0; j < k; ++j)
      for (std::uint64_t i = 0; i <= j; ++i) tile[j * kTile + i] -= column[i] * column[j];
  }
  return 0;
}

void solve(double* tile, const double* diagonal, std::uint64_t columns) {
  for (std::uint64_t k = columns; k-- > 0;) {
    double* const column = tile + k * kTile;
    for (int i = 0; i < kTile; ++i) column[i] /= diagonal[k * kTile + k];
    for (std::uint64_t j = 0; j < k; ++j)
      for (int i = 0; i < kTile; ++i)
        tile[j * kTile + static_cast<std::uint64_t>(i)] -= column[i] * diagonal[k * kTile + j];
  }
}
