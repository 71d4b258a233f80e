// The choice of an entry of a code book for some columns of a row, for one instruction set: covariance_lanes.h includes
// it. The best entry is that with which a quadratic form is least, and is found by looking at all of them. Entries that
// follow each other agree in their last columns, whose part of the form is computed once.

// y D y^T - 2 y b^T of the values y of some columns. D is symmetric, and the same for all rows.
template <int kDims>
struct Quadratic {
  float d[kDims][kDims];
  Lanes b[kDims];

  Lanes of(const Lanes* y) const {
    Lanes sum{};
    for (int i = 0; i < kDims; ++i) {
      Lanes product{};
      for (int j = 0; j < kDims; ++j) product += y[j] * d[i][j];
      sum += y[i] * (product - 2 * b[i]);
    }
    return sum;
  }
  void aim_at(const Lanes* y) {
    for (int i = 0; i < kDims; ++i) {
      b[i] = Lanes{};
      for (int j = 0; j < kDims; ++j) b[i] += y[j] * d[i][j];
    }
  }
};

// Returns the number of the entry with the least form; of equal ones, the first. Element (i, j) of `products`, for
// i <= j, is the factor of m_i m_j, where m are the magnitudes of an entry; `values` are the factors of -m_i.
template <int kDims>
Mask best_entry(const PointBook& book, const Lanes (&products)[kDims][kDims], const Lanes* values) {
  // Of an entry's columns i and later: their part of the form, and for each column before what it is multiplied with.
  Lanes part[kDims + 1] = {}, linear[kDims + 1][kDims];
  for (int i = 0; i < kDims; ++i) linear[kDims][i] = -values[i];
  Lanes least = Lanes{} + std::numeric_limits<float>::infinity();
  Mask best{};
  const std::uint8_t* levels = book.levels;
  for (std::int32_t entry = 0; entry < book.count; ++entry, levels += kDims) {
    for (int i = book.differs[entry]; i >= 0; --i) {
      const float m = book.magnitudes[levels[i]];
      part[i] = part[i + 1] + m * (products[i][i] * m + linear[i + 1][i]);
      for (int k = 0; k < i; ++k) linear[i][k] = linear[i + 1][k] + products[k][i] * m;
    }
    const Mask is_less = part[0] < least;
    least = is_less ? part[0] : least;
    best = is_less ? Mask{} + entry : best;
  }
  return best;
}

// Chooses the entries and signs of some columns so that `form` is small, and writes the points. The signs are those of
// the values `wanted`; if the number of negative ones must be even and is not, the sign that costs least is inverted.
// Of several entries, each is the best one given the others, twice; at first, the others have the values wanted.
template <int kDims, int kColumns>
void choose_entries(const PointBook& book, const Quadratic<kColumns>& form, const Lanes* wanted, const Lanes& scale,
                    Lanes* points) {
  Lanes signed_scale[kColumns], values[kColumns];
  Mask is_odd{}, which{};
  Lanes least = Lanes{} + std::numeric_limits<float>::infinity();
  for (int i = 0; i < kColumns; ++i) {
    const Mask is_negative = (wanted[i] < Lanes{}) ^ (scale < Lanes{});
    const Lanes cost = wanted[i] * wanted[i] * form.d[i][i];
    const Mask is_less = cost < least;
    is_odd ^= is_negative;
    least = is_less ? cost : least;
    which = is_less ? Mask{} + i : which;
    signed_scale[i] = is_negative ? -scale : scale;
    values[i] = wanted[i];
  }
  if (book.has_even_signs)
    for (int i = 0; i < kColumns; ++i) signed_scale[i] = (is_odd & (which == i)) ? -signed_scale[i] : signed_scale[i];
  for (int pass = 0; pass < (kDims == kColumns ? 1 : 2); ++pass)
    for (int first = 0; first < kColumns; first += kDims) {
      Lanes products[kDims][kDims], factors[kDims];
      for (int i = 0; i < kDims; ++i) {
        const int column = first + i;
        Lanes b = form.b[column];
        for (int other = 0; other < kColumns; ++other)
          if (other / kDims != first / kDims) b -= values[other] * form.d[column][other];
        factors[i] = 2 * signed_scale[column] * b;
        products[i][i] = signed_scale[column] * signed_scale[column] * form.d[column][column];
        for (int j = i + 1; j < kDims; ++j)
          products[i][j] = signed_scale[column] * signed_scale[first + j] * (2 * form.d[column][first + j]);
      }
      const Mask best = best_entry<kDims>(book, products, factors);
      for (int i = 0; i < kDims; ++i) {
        const int column = first + i;
        for (int lane = 0; lane < kLanes; ++lane)
          points[column][lane] = book.magnitudes[book.levels[best[lane] * kDims + i]];
        values[column] = signed_scale[column] * points[column];
      }
    }
  for (int i = 0; i < kColumns; ++i) points[i] = signed_scale[i] == scale ? points[i] : -points[i];
}
