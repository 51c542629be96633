// Heads as parts that can be taken out: what a model loses without one, and how much its loss leans on each.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "multihead/models/transformer.h"
#include "multihead/nn/attention_observer.h"
#include "multihead/show/recording.h"

namespace mh {

struct HeadName {
  AttentionKind kind = AttentionKind::encoder;
  int64_t layer = 0, head = 0;  // from 0
  friend bool operator==(const HeadName&, const HeadName&) = default;
};
// "encoder 2.3", counted from 1.
std::string to_string(const HeadName& head);

// What takes the place of a head's output.
enum class Ablation {
  zero,
  mean,     // its mean over the rows of the call
  uniform,  // what it reads with equal weights on all keys of the sequence; where causal, on those not later
};

// Watches one pass: the heads' outputs are replaced. Without a gradient through them.
class AblatedHeads final : public AttentionObserver {
 public:
  AblatedHeads(std::vector<HeadName> heads, Ablation how = Ablation::zero) : heads_(std::move(heads)), how_(how) {}
  // Throws: invalid_argument for a head that the layer does not have.
  Tensor attended(const AttendedCall& call) override;

 private:
  std::vector<HeadName> heads_;
  Ablation how_;
  int64_t seen_[3] = {};
};

struct HeadImportance {
  HeadName head{};
  double loss_added = 0;  // nats per token: the loss without the head, less that with it
  double gradient = 0;  // mean over sentences of |∂L/∂m| for o[h] · m at m = 1, L summed over the sentence's tokens
                        // (Michel, Levy and Neubig, 2019)
  double entropy = 0, confidence = 0;  // means over rows: nats, the largest weight (Voita et al., 2019)
};

struct HeadReport {
  double loss = 0;  // of the whole model, nats per target token
  int64_t sentences = 0, tokens = 0;
  std::vector<HeadImportance> heads{};  // encoder, decoder, cross, by layer and head
};

struct HeadReportOptions {
  Ablation ablation = Ablation::zero;
  int64_t tokens_per_batch = 4096;
};

// One pass for each head, one for the gradients. Throws: invalid_argument where there is no pair.
HeadReport head_importance(const Transformer& model, const std::vector<SentencePair>& pairs,
                           const HeadReportOptions& options = {});

}  // namespace mh
