// What follows the sums of a matrix product: scale, bias, activation, residual, rounding to the type of y.

// a · Φ(-a) for a in [0, 16], Φ the normal distribution: Φ(-a) = exp(-a²/2) · t · p(2t - 1) with t = 1 / (1 + 0.3 a).
// p is a weighted least-squares fit on a in [0, 14] with a relative error of 3.5e-9; the rounding of a² is carried
// along.
HWY_INLINE V normal_tail(V a) {
  constexpr float kTail[] = {0.22197061777114868f,    0.16457948088645935f,   0.08654970675706863f,
                             0.02776033990085125f,    0.0018160298932343721f, -0.0024235087912529707f,
                             -0.0005696704029105604f, 0.0002806259726639837f, 7.663396536372602e-05f,
                             -4.025995440315455e-05f};
  const V one = hn::Set(f32, 1.0f);
  const V half_log2e = hn::Set(f32, 0.5f * kLog2E);
  const V t = hn::Div(one, hn::MulAdd(a, hn::Set(f32, 0.3f), one));
  const V p = hn::Mul(t, polynomial(kTail, hn::Sub(hn::Add(t, t), one)));
  const V square = hn::Mul(a, a);
  const V power = hn::Mul(square, half_log2e);
  const V lost = hn::MulAdd(hn::MulSub(a, a, square), half_log2e, hn::MulSub(square, half_log2e, power));
  const V e = hn::Mul(exp2(hn::Neg(power)), hn::NegMulAdd(lost, hn::Set(f32, kLn2), one));
  return hn::Mul(a, hn::Mul(e, p));
}

// a / (1 + exp(2u)), u = √(2/π) (a + 0.044715 a³), for a in [0, 16].
HWY_INLINE V tanh_tail(V a) {
  const V one = hn::Set(f32, 1.0f);
  const V cubic = hn::MulAdd(hn::Mul(a, a), hn::Set(f32, 0.044715f), one);
  const V u = hn::Mul(hn::Mul(a, cubic), hn::Set(f32, -2 * 0.7978845608028654f * kLog2E));
  const V e = exp2(u);
  return hn::Mul(a, hn::Div(e, hn::Add(one, e)));
}

// Both GELUs are max(x, 0) less an even tail, which keeps the relative accuracy of small results; NaN stays NaN.
HWY_INLINE V activate(Activation activation, V x) {
  if (activation == Activation::none) return x;
  const V positive = hn::IfThenZeroElse(hn::Lt(x, hn::Zero(f32)), x);
  if (activation == Activation::relu) return positive;
  const V size = hn::Min(hn::Abs(x), hn::Set(f32, 16.0f));
  return hn::Sub(positive, activation == Activation::gelu ? normal_tail(size) : tanh_tail(size));
}

// What follows the sums in columns [column, column + columns), at most kPanelWidth of them.
template <class Y>
struct Finish {
  const GemmArgs& args;
  const int64_t column, columns;
  alignas(64) float bias[kPanelWidth] = {};

  Finish(const GemmArgs& of, int64_t first, int64_t count) : args(of), column(first), columns(count) {
    if (args.bias) memcpy(bias, static_cast<const float*>(args.bias.data) + column, static_cast<size_t>(columns) * 4);
  }

  HWY_INLINE void row(const float* sums, int64_t row) const {
    const Y* residual = static_cast<const Y*>(args.residual.data);
    if (residual) residual += row * args.residual.stride[0] + column;
    Y* y = static_cast<Y*>(args.y.data) + row * args.y.stride[0] + column;
    const V scale = hn::Set(f32, args.scale);
    for (int64_t c = 0; c < columns; c += kLanes) {
      V x = hn::MulAdd(hn::LoadU(f32, sums + c), scale, hn::Load(f32, bias + c));
      x = activate(args.activation, x);
      if (columns - c >= kLanes) {
        if (residual) x = hn::Add(x, load_widened(residual + c));
        store_narrowed(x, y + c);
        continue;
      }
      alignas(64) Y lanes[kLanes] = {};
      const size_t bytes = static_cast<size_t>(columns - c) * sizeof(Y);
      if (residual) {
        memcpy(lanes, residual + c, bytes);
        x = hn::Add(x, load_widened(lanes));
      }
      store_narrowed(x, lanes);
      memcpy(y + c, lanes, bytes);
    }
  }
};

// Rows [row, row + rows) and columns [column, column + columns) of y out of sums that lie `width` apart.
template <class Y>
void finish_rows(const GemmArgs& args, const float* sums, int64_t width, int64_t row, int64_t rows, int64_t column,
                 int64_t columns) {
  const Finish<Y> finish(args, column, columns);
  for (int64_t r = 0; r < rows; ++r) finish.row(sums + r * width, row + r);
}

inline void finish_panel(const GemmArgs& args, const float* sums, int64_t width, int64_t row, int64_t rows,
                         int64_t column, int64_t columns) {
  const auto finish = args.y.dtype == DType::bf16 ? finish_rows<bf16> : finish_rows<float>;
  finish(args, sums, width, row, rows, column, columns);
}
