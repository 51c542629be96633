// The tape: what was computed while it was open, walked backwards for gradients.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/autograd/gradients.h"
#include "multihead/tensor/tensor.h"

namespace mh {

// One for each input of an op, in order; empty where there is none.
using Grads = std::vector<Tensor>;

// The same memory under a fresh trace: gradients of it are wanted. Later tapes know it by the same trace.
Tensor parameter(const Tensor& x);

// A scope: ops on traced tensors called by this thread are recorded on the innermost open tape. No tape, no cost.
class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Gradients of a loss of one element with respect to every parameter it depends on. Walks the tape once, from its
  // end, and forgets what it has walked: a second call finds nothing. Throws: invalid_argument where loss has not one
  // element or was not recorded here; unsupported, by name, where an op on the way has no derivative.
  Gradients backward(const Tensor& loss);
  // The same, added to what `sums` holds: gradients of several losses.
  void backward(const Tensor& loss, Gradients& sums);
  // The same from given gradients of several outputs; an empty one counts as zero.
  void backward(const std::vector<Tensor>& ys, const Grads& dys, Gradients& sums);

  size_t size() const { return entries_.size(); }

 private:
  friend std::vector<Tensor> record(std::string_view, std::vector<Tensor>, const std::vector<Tensor>&,
                                    std::function<Grads(const std::vector<Tensor>&)>);
  friend Tensor record_adding(std::string_view, const Tensor&, const std::vector<Tensor>&,
                              std::function<Grads(const Tensor&, const Tensor&)>);
  using Backward = std::function<Grads(const std::vector<Tensor>& dys, const Tensor& gathered)>;
  struct Entry {
    std::string op;
    std::vector<uint64_t> inputs, outputs;
    Backward backward;
    bool adds = false;  // to what its first input has gathered
  };
  static std::vector<Tensor> note(std::vector<Tensor> ys, const std::vector<Tensor>& inputs, Entry entry);
  std::vector<Entry> entries_;
  Tape* outer_;
};

// Closes the tapes of this thread for a while: what runs in its scope is not recorded.
class NoTape {
 public:
  NoTape();
  ~NoTape();
  NoTape(const NoTape&) = delete;
  NoTape& operator=(const NoTape&) = delete;

 private:
  Tape* outer_;
};

// Whether a tape is open and one of the inputs is traced: asked by ops that save more than their result.
// Throws: invalid_argument where a tape is open and an input is a cut view of a traced tensor (Tensor::trace).
bool recording(std::initializer_list<Tensor> inputs);
bool recording(const std::vector<Tensor>& inputs);

// Notes on the open tape how to get the inputs' gradients from the output's, and returns y with a trace of its own;
// where nothing is to be recorded, y. The closure holds detached values.
Tensor record(std::string_view op, const Tensor& y, const std::vector<Tensor>& inputs,
              std::function<Grads(const Tensor& dy)> backward);
// The same for an op that can add the gradient of its first input, where that is f32, to what the ops after it have
// given to that input: `gathered`, the closure's own to write to and to give back as that gradient; or empty.
Tensor record_adding(std::string_view op, const Tensor& y, const std::vector<Tensor>& inputs,
                     std::function<Grads(const Tensor& dy, const Tensor& gathered)> backward);
// Several outputs; the gradient of one that nothing depended on comes empty.
std::vector<Tensor> record(std::string_view op, std::vector<Tensor> ys, const std::vector<Tensor>& inputs,
                           std::function<Grads(const std::vector<Tensor>& dys)> backward);
// For an op without a derivative: a backward pass that reaches y throws with the op's name.
Tensor refuse_gradient(std::string_view op, const Tensor& y, const std::vector<Tensor>& inputs);
// For an op whose result carries no trace, such as one that writes into the caller's memory or packs weights.
// Throws: unsupported, by name, where a tape is open and an input is traced.
void refuse_traced(std::string_view op, std::initializer_list<Tensor> inputs);
void refuse_traced(std::string_view op, const std::vector<Tensor>& inputs);

}  // namespace mh
