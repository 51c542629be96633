// Runs the parts of a network that the inputs call for, and names what comes out.
#include "multihead/models/pretrained/outputs.h"

#include <algorithm>

#include "multihead/ops/elementwise.h"
#include "multihead/ops/products/matmul.h"
#include "multihead/ops/rows/reduce.h"
#include "multihead/ops/shape.h"

namespace mh {

const Tensor& ModelOutputs::operator[](const std::string& name) const {
  const auto at = tensors.find(name);
  if (at == tensors.end()) {
    std::string known;
    for (const auto& [each, tensor] : tensors) known += (known.empty() ? "" : ", ") + each;
    fail(ErrorKind::invalid_argument, "outputs: there is no {}; expected one of {}", name, known);
  }
  return at->second;
}

namespace detail {

namespace {

// The last row of sequence b for which `wanted` holds; `otherwise` where there is none.
template <class Wanted>
int32_t last_row(const TokenBatch& tokens, int64_t b, Wanted&& wanted) {
  const int32_t* starts = tokens.at.starts.data<int32_t>();
  const int32_t* ids = tokens.ids.data<int32_t>();
  for (int32_t row = starts[b + 1] - 1; row >= starts[b]; --row)
    if (wanted(ids[row])) return row;
  return -1;
}

int32_t row_of(const TokenBatch& tokens, int64_t b, HeadRows which, const SpecialTokens& special) {
  const int32_t* starts = tokens.at.starts.data<int32_t>();
  if (which == HeadRows::first || which == HeadRows::pooled) return starts[b];
  if (which == HeadRows::last_text) {
    const int32_t row = last_row(tokens, b, [&](int32_t id) { return id != special.pad; });
    return row < 0 ? starts[b + 1] - 1 : row;
  }
  const int32_t* ids = tokens.ids.data<int32_t>();
  if (which == HeadRows::highest_id)
    return static_cast<int32_t>(std::max_element(ids + starts[b], ids + starts[b + 1]) - ids);
  const auto is_end = [&](int32_t id) {
    return std::find(special.ends.begin(), special.ends.end(), id) != special.ends.end();
  };
  int32_t row = -1;
  if (which == HeadRows::last_end) {
    row = last_row(tokens, b, is_end);
  } else if (const int32_t* at = std::find_if(ids + starts[b], ids + starts[b + 1], is_end);
             at != ids + starts[b + 1]) {
    row = static_cast<int32_t>(at - ids);
  }
  check(row >= 0, "forward: sequence {} has no token that ends a text; expected one, which the model reads", b);
  return row;
}

Tensor mean_rows(const Tensor& rows, const Sequences& at) {
  const int32_t* starts = at.starts.data<int32_t>();
  std::vector<Tensor> means;
  for (int64_t b = 0; b < at.count(); ++b)
    means.push_back(mean(slice(rows, 0, starts[b], starts[b + 1]), {.axes = {0}, .keep = true}));
  return means.empty() ? zeros({0, rows.size(1)}) : concat(means, 0);
}

// Rows of unit length.
Tensor unit(const Tensor& x) { return div(x, sqrt(sum(square(x), {.axes = {-1}, .keep = true}))); }

// One pass: what was run, and what of it is kept.
class Run {
 public:
  Run(const Network& network, const ModelInputs& inputs, Pass& pass)
      : network_(network), inputs_(inputs), pass_(pass), plan_(network.architecture) {}

  ModelOutputs outputs() {
    check_inputs();
    if (plan_.head.kind == HeadKind::contrastive) {
      compare();
    } else if (plan_.decoder) {
      write();
    } else {
      read();
    }
    return std::move(out_);
  }

 private:
  void check_inputs() const {
    const bool reads_images = plan_.patches.has_value(), reads_text = plan_.embedding.has_value();
    const auto fits = [&](bool given, bool read, std::string_view what) {
      check(given == read, "forward: {} {}; a {} model {} them", what, given ? "are given" : "are missing",
            plan_.family, read ? "reads" : "does not read");
    };
    const bool both = plan_.head.kind == HeadKind::contrastive;
    if (both) {
      check(inputs_.tokens.ids || inputs_.pixels, "forward: tokens and pixels are missing; expected either or both");
    } else {
      fits(static_cast<bool>(inputs_.pixels), reads_images, "pixels");
      fits(static_cast<bool>(inputs_.tokens.ids), reads_text, "tokens");
    }
    if (!reads_text_twice(plan_) || inputs_.decoder.ids)
      fits(static_cast<bool>(inputs_.decoder.ids), plan_.decoder && plan_.encoder && !both, "the decoder's tokens");
    check(!inputs_.types || (inputs_.tokens.ids && inputs_.types.count() == inputs_.tokens.ids.count()),
          "forward: types of {} tokens; expected one for each token, {}", inputs_.types ? inputs_.types.count() : 0,
          inputs_.tokens.ids ? inputs_.tokens.ids.count() : 0);
    const int32_t* starts = inputs_.tokens.ids ? inputs_.tokens.at.starts.data<int32_t>() : nullptr;
    for (int64_t b = 0; starts != nullptr && b < inputs_.tokens.at.count(); ++b)
      check(starts[b] < starts[b + 1], "forward: sequence {} is empty; expected at least one token", b);
  }

  // Throws: invalid_argument where the model says no token to begin with.
  TokenBatch shifted() const {
    const TokenBatch& from = inputs_.tokens;
    check(plan_.wraps_last || plan_.tokens.decoder_start >= 0,
          "forward: the decoder's tokens are missing, and the config has no decoder_start_token_id; expected either");
    const int32_t* ids = from.ids.data<int32_t>();
    const int32_t* starts = from.at.starts.data<int32_t>();
    std::vector<int32_t> out;
    for (int64_t b = 0; b < from.at.count(); ++b) {
      int32_t last = starts[b] - 1;
      for (int32_t row = starts[b]; row < starts[b + 1]; ++row) last += ids[row] != plan_.tokens.pad ? 1 : 0;
      out.push_back(plan_.wraps_last ? ids[std::max(last, starts[b])] : plan_.tokens.decoder_start);
      out.insert(out.end(), ids + starts[b], ids + starts[b + 1] - 1);
    }
    return {tensor<int32_t>(out, {static_cast<int64_t>(out.size())}), from.at};
  }

  StackRecord record() const {
    StackRecord out;
    out.states = inputs_.hidden_states;
    out.weights = inputs_.attentions;
    out.last_normed = !plan_.patches;
    return out;
  }

  void note(const StackRecord& from, const std::string& prefix) {
    if (inputs_.hidden_states) out_.layers[prefix + "hidden_states"] = from.hidden_states;
    if (inputs_.attentions) out_.layers[prefix + "attentions"] = from.attentions;
    if (!from.cross_attentions.empty()) out_.layers["cross_attentions"] = from.cross_attentions;
  }

  EncoderOutput encoded(StackRecord& kept) const {
    return plan_.patches ? network_.encode_images(inputs_.pixels, pass_, &kept)
                         : network_.encode(inputs_.tokens, inputs_.types, pass_, &kept);
  }

  Tensor pooled(const Tensor& rows, const TokenBatch& tokens) const {
    const Tensor first = chosen_rows(rows, tokens, HeadRows::first, plan_.tokens);
    return (*network_.pooler)(cast(first, pass_.compute()),
                              {.activation = plan_.pooler.activation, .result = DType::f32});
  }

  // An encoder alone.
  void read() {
    StackRecord kept = record();
    const EncoderOutput encoded_rows = encoded(kept);
    out_.at = encoded_rows.at;
    note(kept, "");
    const Tensor rows = cast(encoded_rows.rows, DType::f32);
    const TokenBatch tokens{inputs_.tokens.ids, encoded_rows.at};
    out_.tensors["last_hidden_state"] = rows;
    Tensor pool;
    if (network_.pooler) pool = pooled(rows, tokens);
    if (pool && plan_.pooler.is_output) out_.tensors["pooler_output"] = pool;
    if (network_.head) finish(rows, tokens, pool);
  }

  // A decoder, with an encoder before it or alone.
  void write() {
    EncoderOutput memory;
    StackRecord kept = record();
    if (plan_.encoder) {
      StackRecord encoder_kept = record();
      const EncoderOutput encoder_rows = encoded(encoder_kept);
      out_.at = encoder_rows.at;
      note(encoder_kept, "encoder_");
      out_.tensors["encoder_last_hidden_state"] = cast(encoder_rows.rows, DType::f32);
      memory = network_.bridged(encoder_rows, pass_);
    }
    const TokenBatch tokens = !plan_.encoder                                    ? inputs_.tokens
                              : reads_text_twice(plan_) && !inputs_.decoder.ids ? shifted()
                                                                                : inputs_.decoder;
    const Tensor rows = cast(network_.decode(tokens, memory, pass_, &kept), DType::f32);
    note(kept, plan_.encoder ? "decoder_" : "");
    (plan_.encoder ? out_.decoder_at : out_.at) = tokens.at;
    out_.tensors["last_hidden_state"] = rows;
    if (network_.head) finish(rows, read_by_head(tokens), {});
  }

  // The tokens by which a head behind a decoder chooses its row: those of the text, whose last end stands where the
  // decoder has read all before it.
  TokenBatch read_by_head(const TokenBatch& decoder) const {
    if (!reads_text_twice(plan_)) return decoder;
    const Sequences &text = inputs_.tokens.at, &read = decoder.at;
    bool alike = text.count() == read.count();
    for (int64_t b = 0; alike && b <= text.count(); ++b)
      alike = text.starts.data<int32_t>()[b] == read.starts.data<int32_t>()[b];
    check(alike || plan_.head.kind == HeadKind::question,
          "forward: {} tokens in {} sequences for the decoder, and the text has {} in {}; expected the same lengths",
          decoder.ids.count(), read.count(), inputs_.tokens.ids.count(), text.count());
    return plan_.head.kind == HeadKind::question ? decoder : inputs_.tokens;
  }

  void finish(const Tensor& rows, const TokenBatch& tokens, const Tensor& pool) {
    const HeadRows which = plan_.head.rows;
    const Tensor read = which == HeadRows::all      ? rows
                        : which == HeadRows::pooled ? pool
                                                    : chosen_rows(rows, tokens, which, plan_.tokens);
    Tensor logits = (*network_.head)(read, pass_);
    if (network_.distilled) {
      const Tensor second = (*network_.distilled)(second_rows(rows, tokens.at), pass_);
      out_.tensors["cls_logits"] = logits;
      out_.tensors["distillation_logits"] = second;
      logits = scale(add(logits, second), 0.5F);
    }
    if (plan_.head.kind == HeadKind::question) {
      const std::vector<Tensor> ends = split(logits, 1, {1, 1});
      out_.tensors["start_logits"] = reshape(ends[0], {ends[0].size(0)});
      out_.tensors["end_logits"] = reshape(ends[1], {ends[1].size(0)});
    } else {
      out_.tensors["logits"] = logits;
    }
  }

  static Tensor second_rows(const Tensor& rows, const Sequences& at) {
    std::vector<int32_t> ids;
    for (int64_t b = 0; b < at.count(); ++b) ids.push_back(at.starts.data<int32_t>()[b] + 1);
    return gather(rows, tensor<int32_t>(ids, {at.count()}));
  }

  // Two towers.
  void compare() {
    Tensor text, image;
    if (inputs_.tokens.ids) {
      StackRecord kept = record();
      const Tensor rows = cast(network_.decode(inputs_.tokens, {}, pass_, &kept), DType::f32);
      out_.at = inputs_.tokens.at;
      note(kept, "text_");
      const Tensor one = chosen_rows(rows, inputs_.tokens, plan_.head.rows, plan_.tokens);
      text = unit((*network_.text_projection)(cast(one, pass_.compute()), {.result = DType::f32}));
      out_.tensors["text_last_hidden_state"] = rows;
      out_.tensors["text_embeds"] = text;
    }
    if (inputs_.pixels) {
      StackRecord kept = record();
      const EncoderOutput encoder_rows = network_.encode_images(inputs_.pixels, pass_, &kept);
      note(kept, "vision_");
      const Tensor rows = cast(encoder_rows.rows, DType::f32);
      Tensor first = chosen_rows(rows, {{}, encoder_rows.at}, HeadRows::first, plan_.tokens);
      if (network_.image_norm) first = (*network_.image_norm)(first);
      image = unit((*network_.image_projection)(cast(first, pass_.compute()), {.result = DType::f32}));
      out_.tensors["vision_last_hidden_state"] = rows;
      out_.tensors["image_embeds"] = image;
    }
    if (!text || !image) return;
    const Tensor by_image = mul(matmul(image, transpose(text, 0, 1)), exp(network_.logit_scale->value));
    out_.tensors["logits_per_image"] = by_image;
    out_.tensors["logits_per_text"] = transpose(by_image, 0, 1);
  }

  const Network& network_;
  const ModelInputs& inputs_;
  Pass& pass_;
  const Architecture& plan_;
  ModelOutputs out_;
};

}  // namespace

Tensor chosen_rows(const Tensor& rows, const TokenBatch& tokens, HeadRows which, const SpecialTokens& special) {
  if (which == HeadRows::mean) return mean_rows(rows, tokens.at);
  std::vector<int32_t> ids;
  for (int64_t b = 0; b < tokens.at.count(); ++b) ids.push_back(row_of(tokens, b, which, special));
  return gather(rows, tensor<int32_t>(ids, {tokens.at.count()}));
}

ModelOutputs outputs_of(const Network& network, const ModelInputs& inputs, Pass& pass) {
  return Run(network, inputs, pass).outputs();
}

}  // namespace detail

}  // namespace mh
