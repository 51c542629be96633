// Recording, and the walk back.
#include "multihead/autograd/tape.h"

#include <atomic>
#include <utility>

namespace mh {

namespace {

thread_local Tape* open_tape = nullptr;

uint64_t fresh_trace() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

bool is_traced(const Tensor& x) { return x.trace() != 0; }

void refuse_cut(std::string_view op, const Tensor& x) {
  check(x.trace() != kCutTrace,
        "{}: an input is a view that Tensor's own methods made of a traced tensor, and its gradient would be lost; "
        "expected "
        "an op of ops/shape.h, or detach(); it is {}",
        op, x.shape());
}

template <class Inputs>
bool any_traced(std::string_view op, const Inputs& inputs) {
  if (open_tape == nullptr) return false;
  bool traced = false;
  for (const Tensor& x : inputs) {
    refuse_cut(op, x);
    traced = traced || is_traced(x);
  }
  return traced;
}

}  // namespace

Tensor parameter(const Tensor& x) { return x.traced(fresh_trace()); }

Tape::Tape() : outer_(std::exchange(open_tape, this)) {}
Tape::~Tape() { open_tape = outer_; }

NoTape::NoTape() : outer_(std::exchange(open_tape, nullptr)) {}
NoTape::~NoTape() { open_tape = outer_; }

bool recording(std::initializer_list<Tensor> inputs) { return any_traced("record", inputs); }
bool recording(const std::vector<Tensor>& inputs) { return any_traced("record", inputs); }

std::vector<Tensor> Tape::note(std::vector<Tensor> ys, const std::vector<Tensor>& inputs, Entry entry) {
  for (const Tensor& x : inputs) entry.inputs.push_back(x.trace());
  for (Tensor& y : ys) {
    y = y.traced(fresh_trace());
    entry.outputs.push_back(y.trace());
  }
  open_tape->entries_.push_back(std::move(entry));
  return ys;
}

std::vector<Tensor> record(std::string_view op, std::vector<Tensor> ys, const std::vector<Tensor>& inputs,
                           std::function<Grads(const std::vector<Tensor>&)> backward) {
  if (!any_traced(op, inputs)) return ys;
  return Tape::note(std::move(ys), inputs,
                    {.op = std::string(op),
                     .inputs = {},
                     .outputs = {},
                     .backward = [backward = std::move(backward)](const std::vector<Tensor>& dys, const Tensor&) {
                       return backward(dys);
                     }});
}

Tensor record_adding(std::string_view op, const Tensor& y, const std::vector<Tensor>& inputs,
                     std::function<Grads(const Tensor&, const Tensor&)> backward) {
  if (!any_traced(op, inputs)) return y;
  return Tape::note(
      {y}, inputs,
      {.op = std::string(op),
       .inputs = {},
       .outputs = {},
       .backward = [backward = std::move(backward)](const std::vector<Tensor>& dys,
                                                    const Tensor& gathered) { return backward(dys[0], gathered); },
       .adds = inputs[0].dtype() == DType::f32})[0];
}

Tensor record(std::string_view op, const Tensor& y, const std::vector<Tensor>& inputs,
              std::function<Grads(const Tensor&)> backward) {
  if (!any_traced(op, inputs)) return y;
  return record(op, std::vector<Tensor>{y}, inputs,
                [backward = std::move(backward)](const std::vector<Tensor>& dys) { return backward(dys[0]); })[0];
}

Tensor refuse_gradient(std::string_view op, const Tensor& y, const std::vector<Tensor>& inputs) {
  return record(op, y, inputs, [op = std::string(op)](const Tensor&) -> Grads {
    fail(ErrorKind::unsupported,
         "{}: has no derivative, and a gradient was asked for through it; expected its inputs or its result detached",
         op);
  });
}

namespace {

template <class Inputs>
void refuse_any(std::string_view op, const Inputs& inputs) {
  if (!any_traced(op, inputs)) return;
  fail(ErrorKind::unsupported,
       "{}: an input is traced, and what this op makes of it carries no gradient; expected detached inputs, or no open "
       "tape",
       op);
}

}  // namespace

void refuse_traced(std::string_view op, std::initializer_list<Tensor> inputs) { refuse_any(op, inputs); }
void refuse_traced(std::string_view op, const std::vector<Tensor>& inputs) { refuse_any(op, inputs); }

Gradients Tape::backward(const Tensor& loss) {
  Gradients sums;
  backward(loss, sums);
  return sums;
}

void Tape::backward(const Tensor& loss, Gradients& sums) {
  check(loss.count() == 1, "backward: the loss has {} elements; expected one; it is {}", loss.count(), loss.shape());
  check(is_traced(loss) && loss.trace() != kCutTrace,
        "backward: the loss was not recorded; expected one computed from parameters while the tape was open");
  backward({loss}, {full(loss.shape(), 1, loss.dtype(), loss.device())}, sums);
}

void Tape::backward(const std::vector<Tensor>& ys, const Grads& dys, Gradients& sums) {
  check(ys.size() == dys.size(), "backward: {} outputs and {} gradients; expected one for each", ys.size(), dys.size());
  for (size_t i = 0; i < ys.size(); ++i) {
    if (dys[i] && is_traced(ys[i])) sums.add(ys[i].trace(), dys[i]);
  }
  const NoTape closed;  // what the derivatives compute is not recorded
  while (!entries_.empty()) {
    Entry entry = std::move(entries_.back());
    entries_.pop_back();
    std::vector<Tensor> outputs;
    bool reached = false;
    for (const uint64_t trace : entry.outputs) {
      outputs.push_back(sums.take(trace));
      reached = reached || outputs.back();
    }
    if (!reached) continue;
    Tensor gathered;
    if (entry.adds && entry.inputs[0] != 0) gathered = sums.take_to_grow(entry.inputs[0]);
    Grads grads = entry.backward(outputs, gathered);
    gathered = {};
    outputs.clear();
    check(grads.size() == entry.inputs.size(), "{}: its derivative gave {} gradients; expected {}", entry.op,
          grads.size(), entry.inputs.size());
    for (size_t i = 0; i < grads.size(); ++i) {
      if (grads[i] && entry.inputs[i] != 0) sums.add(entry.inputs[i], std::move(grads[i]));
    }
  }
}

}  // namespace mh
