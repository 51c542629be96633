// Turns of the rung's limit loops on all threads, and their medians.
#include "multihead/check/limits.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "multihead/base/parallel.h"
#include "multihead/kernels/cpu/dispatch.h"

namespace mh {
namespace {

// A turn is cut finer than the threads, so that the pool shares it out as it does a kernel's tasks.
constexpr int64_t kPiecesPerThread = 12;
constexpr int64_t kMultiplyAddRounds = 20000;
constexpr int64_t kTileRounds = 2500;
constexpr int64_t kProbeRounds = 500;
constexpr double kFastNanoseconds = 9, kSlowNanoseconds = 14;

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

const kernels::Probe& required(const kernels::Probe& loop) {
  if (!loop) fail(ErrorKind::unsupported, "{}: the rung in use has no such loop", loop.name);
  return loop;
}

double run_pieces(const kernels::Probe& loop, int64_t rounds) {
  required(loop);
  const int64_t pieces = kPiecesPerThread * threads();
  std::vector<double> work(static_cast<size_t>(pieces));
  parallel_for(pieces, [&](int64_t i) { loop.run({.rounds = rounds, .work = &work[static_cast<size_t>(i)]}); });
  double sum = 0;
  for (double piece : work) sum += piece;
  return sum;
}

template <class Turn>
double median_rate(double seconds, const Turn& turn) {
  turn();
  std::vector<double> rates;
  const double start = wall_seconds();
  do {
    const double before = work_seconds();
    const double work = turn();
    rates.push_back(work / std::max(work_seconds() - before, 1e-9));
  } while (wall_seconds() - start < seconds || rates.size() < 3);
  std::sort(rates.begin(), rates.end());
  return rates[rates.size() / 2];
}

double read_rate(int64_t bytes) {
  const std::vector<Tensor> memory{full({bytes / 4}, 1)};
  // Short reads are repeated: a turn of some microseconds would time the clock.
  const int repeats = static_cast<int>(std::max<int64_t>(1, (int64_t{32} << 20) / bytes));
  return median_rate(0.1, [&] {
    double sum = 0;
    for (int i = 0; i < repeats; ++i) sum += run_plain_read(memory);
    return sum;
  });
}

}  // namespace

double work_seconds() {
  if (threads() > 1) return wall_seconds();
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double run_multiply_adds() { return run_pieces(kernels::probes().fma_peak, kMultiplyAddRounds); }

bool has_pair_products() { return static_cast<bool>(kernels::probes().pair_peak); }

double run_pair_products() { return run_pieces(kernels::probes().pair_peak, kMultiplyAddRounds); }

bool has_tiles() { return static_cast<bool>(kernels::probes().tile_peak); }

double run_tile_products() { return run_pieces(kernels::probes().tile_peak, kTileRounds); }

TileState probe_tiles() {
  const kernels::Probe& loop = required(kernels::probes().tile_probe);
  const int64_t count = threads();
  std::vector<double> nanoseconds(static_cast<size_t>(count));
  parallel_for(count, [&](int64_t i) {
    double work = 0;
    const double before = wall_seconds();
    loop.run({.rounds = kProbeRounds, .work = &work});
    nanoseconds[static_cast<size_t>(i)] = (wall_seconds() - before) / work * 1e9;
  });
  const auto [fastest, slowest] = std::minmax_element(nanoseconds.begin(), nanoseconds.end());
  if (*slowest < kFastNanoseconds) return TileState::fast;
  return *fastest > kSlowNanoseconds ? TileState::slow : TileState::mixed;
}

double run_plain_read(const std::vector<Tensor>& tensors) {
  double total = 0;
  for (const Tensor& tensor : tensors) {
    check(tensor.is_contiguous(), "run_plain_read: a tensor of shape {} is not contiguous", to_string(tensor.shape()));
    const int64_t bytes = tensor.count() * size_of(tensor.dtype());
    const int64_t even = bytes / (kPiecesPerThread * threads()) / 4096 * 4096;
    const int64_t piece = threads() == 1 ? std::max<int64_t>(bytes, 1) : std::max<int64_t>(even, 16384);
    const int64_t pieces = (bytes + piece - 1) / piece;
    const char* at = static_cast<const char*>(tensor.view().data);
    parallel_for(pieces, [&](int64_t i) {
      double work = 0;
      kernels::probes().plain_read.run(
          {.data = at + i * piece, .bytes = std::min(piece, bytes - i * piece), .work = &work});
    });
    total += static_cast<double>(bytes);
  }
  return total;
}

Limits measure_limits() {
  Limits limits{.threads = threads()};
  limits.multiply_adds = median_rate(0.15, run_multiply_adds);
  if (has_pair_products()) limits.pair_products = median_rate(0.15, run_pair_products);
  if (has_tiles()) limits.tile_products = median_rate(0.15, run_tile_products);
  const int64_t mib = int64_t{1} << 20;
  limits.read_l2 = read_rate(mib / 2 * threads());
  limits.read_l3 = read_rate(8 * mib);
  limits.read_dram = read_rate(256 * mib);
  return limits;
}

}  // namespace mh
