// Launches of the Hopper kernels: tensor maps, tiles, the counters their blocks share.
#include <cudaTypedefs.h>

#include <array>
#include <atomic>
#include <utility>

#include "multihead/kernels/cuda/entry.h"
#include "multihead/kernels/cuda/hopper/instance.h"
#include "multihead/kernels/cuda/hopper/maps.h"
#include "multihead/kernels/cuda/plan.h"

namespace mh::kernels::cuda {

cudaError_t mend(const Call& call, const Task& dq, int dq_rows, const Task& dkv, cudaStream_t stream);

namespace {

// Each launch takes the next pair of counters and leaves it 0. A pair comes round again after 32768 launches: no two
// launches that run at the same time share one, short of that many in flight.
constexpr int kSlots = 32768;
__device__ int counters[2 * kSlots];

int* next_counter() {
  static std::atomic<unsigned> turn{0};
  void* base = nullptr;
  if (cudaGetSymbolAddress(&base, counters) != cudaSuccess) return nullptr;
  return static_cast<int*>(base) + 2 * (turn.fetch_add(1) % kSlots);
}

int multiprocessors() {
  int device = 0, count = 1;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count;
}

using Run = cudaError_t (*)(const Maps&, const Call&, const Task&, int, cudaStream_t);
template <int... N>
constexpr std::array<Run, sizeof...(N)> forward_table(std::integer_sequence<int, N...>) {
  return {run_forward<N>...};
}
template <int... N>
constexpr std::array<Run, sizeof...(N)> dq_table(std::integer_sequence<int, N...>) {
  return {run_dq<N>...};
}
template <int... N>
constexpr std::array<Run, sizeof...(N)> dkv_table(std::integer_sequence<int, N...>) {
  return {run_dkv<N>...};
}

Task tiles_of(int heads, int blocks, int group) {
  Task task;
  task.counter = next_counter();
  task.blocks = blocks;
  task.heads = heads;
  task.tiles = heads * blocks;
  task.group = group;
  return task;
}

}  // namespace

cudaError_t forward_hopper(const Call& call, int shape, uint16_t* flags, cudaStream_t stream) {
  static constexpr auto table = forward_table(std::make_integer_sequence<int, kForwardCount>{});
  const ForwardEntry& e = kForwardShapes[shape];
  Maps maps;
  const Box q{call.q, call.H, call.q_rows, call.Dk}, k{call.k, call.Hkv, call.k_rows, call.Dk},
      v{call.v, call.Hkv, call.k_rows, call.Dv};
  const bool joined = whole_chunks(call);
  if (!encode(maps.q, q, call.batch, 64 * e.groups, joined) || !encode(maps.k, k, call.batch, e.BN, joined) ||
      !encode(maps.v, v, call.batch, e.BN, joined))
    return cudaErrorInvalidValue;
  const int heads = call.B * call.H;
  Task task = tiles_of(heads, whole_tiles(call.Tq, 64 * e.groups),
                       heads_in_l2(heads, int64_t{2} * call.Tk * (call.Dk + call.Dv)));
  task.flags = flags;
  task.joined = joined;
  const int room = multiprocessors() * e.per_sm;
  return table[shape](maps, call, task, task.tiles < room ? task.tiles : room, stream);
}

cudaError_t backward_hopper(const Call& call, int dq, int dkv, const Rows& rows, uint16_t* flags, cudaStream_t stream) {
  static constexpr auto dq_runs = dq_table(std::make_integer_sequence<int, kDqCount>{});
  static constexpr auto dkv_runs = dkv_table(std::make_integer_sequence<int, kDkvCount>{});
  const DqEntry& a = kDqShapes[dq];
  const DkvEntry& c = kDkvShapes[dkv];
  const Box q{call.q, call.H, call.q_rows, call.Dk}, g{call.d_o, call.H, call.q_rows, call.Dv};
  const Box k{call.k, call.Hkv, call.k_rows, call.Dk}, v{call.v, call.Hkv, call.k_rows, call.Dv};
  Maps first, second;
  const bool joined = whole_chunks(call);
  auto encoded = [&](CUtensorMap& map, const Box& box, int rows) { return encode(map, box, call.batch, rows, joined); };
  if (!encoded(first.q, q, 64 * a.groups) || !encoded(first.g, g, 64 * a.groups) || !encoded(first.k, k, a.BN) ||
      !encoded(first.v, v, a.BN) || !encoded(second.q, q, c.BM) || !encoded(second.g, g, c.BM) ||
      !encoded(second.k, k, 128) || !encoded(second.v, v, 128))
    return cudaErrorInvalidValue;
  const int heads = call.B * call.H, key_heads = call.B * call.Hkv, sms = multiprocessors();
  const int64_t width = call.Dk + call.Dv;
  auto with_rows = [&](Task task) {
    task.lse2 = rows.lse2;
    task.delta = rows.delta;
    task.padded = rows.padded;
    task.flags = flags;
    task.joined = joined;
    return task;
  };
  const Task by_rows =
      with_rows(tiles_of(heads, whole_tiles(call.Tq, 64 * a.groups), heads_in_l2(heads, 2 * call.Tk * width)));
  cudaError_t error = dq_runs[dq](first, call, by_rows, by_rows.tiles < sms ? by_rows.tiles : sms, stream);
  if (error != cudaSuccess) return error;
  Task by_keys = with_rows(tiles_of(key_heads, whole_tiles(call.Tk, 128),
                                    heads_in_l2(key_heads, 2 * call.Tq * width * (call.H / call.Hkv))));
  by_keys.flags = flags + 16 * by_rows.tiles;
  error = dkv_runs[dkv](second, call, by_keys, by_keys.tiles < sms ? by_keys.tiles : sms, stream);
  if (error != cudaSuccess) return error;
  // Without masks or lengths no pair is dropped, and what is not finite is so by right.
  const bool whole =
      !is_masked(call.options) && !call.spans && call.span.q_len == call.q_rows && call.span.k_len == call.k_rows;
  return whole ? cudaSuccess : mend(call, by_rows, 64 * a.groups, by_keys, stream);
}

}  // namespace mh::kernels::cuda
