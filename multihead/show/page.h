// One HTML file that shows weights of attention and needs nothing else: no request, no other file, no network.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "multihead/show/recording.h"

namespace mh {

struct PageLayer {
  int64_t heads = 0;
  // f32 (heads, end - begin, keys) of rows begin … end - 1.
  std::function<Tensor(int64_t begin, int64_t end)> weights{};
};

// Layers over the same queries and keys: a grid of pictures.
struct PageGroup {
  std::string name{}, about{};     // "Encoder", and a sentence
  size_t queries = 0, keys = 0;    // which of the page's texts; equal: self-attention
  std::string head_word = "head";  // what a picture of a layer is called
  std::vector<PageLayer> layers{};
};

struct Page {
  std::string title{}, subtitle{};
  std::vector<RecordedText> texts{};
  std::vector<PageGroup> groups{};
};

struct ChosenHead {
  int64_t layer = 0, head = -1;  // from 0; head -1: all of the layer
};
// "5.3,7.*" as `--heads` takes it, counted from 1. Throws: invalid_argument.
std::vector<ChosenHead> chosen_heads(const std::string& text);

struct PageOptions {
  // Above so many weights in all, only pictures of 64 × 64, the 16 largest weights of each row, statistics and the
  // chosen heads are stored, and the page says so.
  int64_t most_weights = int64_t{40} << 20;
  std::vector<ChosenHead> chosen{};  // of every group
};

// Encoder, decoder, cross-attention and rollout (of at most 1,024 tokens), as far as there are layers of them. Reads
// `recording`, which must outlive the page.
Page page_of(const Recording& recording, const std::string& title, const std::string& subtitle);

// Weights are stored as round(255 √w), deflated and spelled in base64, a block for each layer: w is off by less than
// 0.004. Text of tokens is only ever text; of one longer than 1,000 bytes the beginning is stored.
// Throws: invalid_argument where there is nothing to show, texts and layers do not fit, or a chosen head does not
// exist.
std::string page_html(const Page& page, const PageOptions& options = {});

}  // namespace mh
