// A timed wrapper for every kernel of the table, and the work a call stands for.
#include "multihead/kernels/cpu/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <utility>

namespace mh::kernels {

namespace {

struct Work {
  double flops = 0, bytes = 0;
  std::string detail{};
};

double bytes_of(const View& view) {
  if (!view) return 0;
  double count = 1;
  for (int axis = 0; axis < view.rank; ++axis)
    count *= view.stride[axis] == 0 ? 1 : static_cast<double>(view.size[axis]);
  return count * static_cast<double>(size_of(view.dtype));
}

template <class... Views>
double bytes_of_all(const Views&... views) {
  return (bytes_of(views) + ...);
}

// Pairs of query and key, half of them where later keys are dropped.
double pairs_of(const Sequences& sequences, const Scores& scores) {
  double pairs = 0;
  for (int64_t n = 0; n < sequences.count; ++n) {
    const Sequence& s = sequences.data[n];
    pairs += static_cast<double>(s.q_len) * static_cast<double>(s.k_len) * (scores.ahead == 0 ? 0.5 : 1);
  }
  return pairs;
}

template <class Args>
double attention_flops(const Args& a) {
  return 2 * pairs_of(a.sequences, a.scores) * static_cast<double>(a.q.size[1]) *
         static_cast<double>(a.kv.k.size[3] + a.kv.v.size[3]);
}

template <class Args>
Work work_of(const Args&) {
  return {};
}
Work work_of(const GemmArgs& a) {
  const auto m = static_cast<double>(a.a.size[0]), n = static_cast<double>(a.n), k = static_cast<double>(a.k);
  return {2 * m * n * k, bytes_of_all(a.a, a.y, a.residual, a.gate) + n * k * static_cast<double>(size_of(a.a.dtype)),
          fmt::format("{}x{}x{} {}", a.a.size[0], a.k, a.n, name(a.a.dtype))};
}
Work work_of(const AttentionForwardArgs& a) { return {attention_flops(a), bytes_of_all(a.q, a.o, a.lse)}; }
Work work_of(const AttentionMeanArgs& a) {
  return {attention_flops(a.call), bytes_of_all(a.call.q, a.call.o, a.call.lse, a.mean)};
}
Work work_of(const AttentionBackwardArgs& a) {
  return {2.5 * attention_flops(a), bytes_of_all(a.q, a.o, a.d_o, a.dq, a.dk, a.dv)};
}
Work work_of(const NormaliseForwardArgs& a) { return {0, bytes_of_all(a.x, a.y)}; }
Work work_of(const NormaliseBackwardArgs& a) { return {0, bytes_of_all(a.x, a.dy, a.dx)}; }
Work work_of(const AdamwArgs& a) { return {0, static_cast<double>(a.count) * (a.copy != nullptr ? 30 : 28)}; }
Work work_of(const CrossEntropyForwardArgs& a) { return {0, bytes_of_all(a.x, a.dx)}; }
Work work_of(const CrossEntropyBackwardArgs& a) { return {0, bytes_of_all(a.x, a.dx)}; }

class Notes {
 public:
  void add(std::string_view name, const Work& work, double seconds) {
    const std::lock_guard lock(mutex_);
    KernelTime& at = times_[{std::string(name), work.detail}];
    at.calls += 1;
    at.seconds += seconds;
    at.flops += work.flops;
    at.bytes += work.bytes;
  }

  std::vector<KernelTime> take() {
    const std::lock_guard lock(mutex_);
    std::vector<KernelTime> out;
    for (auto& [key, time] : times_) {
      out.push_back(time);
      out.back().name = key.first;
      out.back().detail = key.second;
    }
    times_.clear();
    std::sort(out.begin(), out.end(), [](const KernelTime& a, const KernelTime& b) { return a.seconds > b.seconds; });
    return out;
  }

 private:
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, KernelTime> times_;
};

Notes notes;
const Table* inner = nullptr;

template <auto kMember, class Args>
void timed(const Args& args, Queue& queue) {
  const auto begin = std::chrono::steady_clock::now();
  (inner->*kMember).run(args, queue);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  notes.add((inner->*kMember).name, work_of(args), took.count());
}

template <auto kMember, class Args>
void wrap(Kernel<Args>& kernel) {
  if (kernel) kernel.run = timed<kMember, Args>;
}

}  // namespace

Table profiled(const Table& below) {
  inner = &below;
  Table out = below;
  for_each_kernel([&]<auto kMember>() { wrap<kMember>(out.*kMember); });
  return out;
}

std::vector<KernelTime> take_profile() { return notes.take(); }

}  // namespace mh::kernels
