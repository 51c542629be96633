// Rounds weights to bytes, keeps the largest where not all are stored, and deflates.
#include "multihead/show/packed_layer.h"

#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "multihead/base/error.h"
#include "multihead/base/parallel.h"

namespace mh::detail {

namespace {

constexpr int64_t kFloatsAtOnce = int64_t{8} << 20;

unsigned char byte_of(float weight) {
  // NaN, from inputs of a caller, counts as 0.
  return weight > 0 ? static_cast<unsigned char>(std::lround(255 * std::sqrt(std::min(weight, 1.0F)))) : 0;
}

// Writes what is stored of one head.
class HeadWriter {
 public:
  HeadWriter(unsigned char* out, int64_t queries, int64_t keys, bool whole)
      : out_(out),
        queries_(queries),
        keys_(keys),
        across_(std::min(kPicture, keys)),
        down_(std::min(kPicture, queries)),
        whole_(whole) {}

  static int64_t bytes(int64_t queries, int64_t keys, bool whole) {
    if (whole) return queries * keys;
    return std::min(kPicture, queries) * std::min(kPicture, keys) + queries * kTopKeys * 5;
  }

  void add(const float* weights, int64_t row) {
    statistics.add(weights, keys_, row);
    if (whole_) {
      for (int64_t j = 0; j < keys_; ++j) out_[row * keys_ + j] = byte_of(weights[j]);
      return;
    }
    unsigned char* picture = out_ + row * down_ / queries_ * across_;
    for (int64_t j = 0; j < keys_; ++j) {
      unsigned char& cell = picture[j * across_ / keys_];
      cell = std::max(cell, byte_of(weights[j]));
    }
    add_largest(weights, row);
  }

  HeadStatistics statistics{};

 private:
  void add_largest(const float* weights, int64_t row) {
    order_.resize(static_cast<size_t>(keys_));
    std::iota(order_.begin(), order_.end(), 0);
    const auto end = order_.begin() + std::min(kTopKeys, keys_);
    std::partial_sort(order_.begin(), end, order_.end(), [&](int32_t a, int32_t b) {
      return weights[a] > weights[b] || (weights[a] == weights[b] && a < b);
    });
    unsigned char* keys = out_ + down_ * across_ + row * kTopKeys * 4;
    unsigned char* largest = out_ + down_ * across_ + queries_ * kTopKeys * 4 + row * kTopKeys;
    for (auto each = order_.begin(); each != end; ++each, keys += 4) {
      for (int n = 0; n < 4; ++n) keys[n] = static_cast<unsigned char>(*each >> (8 * n));
      *largest++ = byte_of(weights[*each]);
    }
  }

  unsigned char* out_;
  int64_t queries_, keys_, across_, down_;
  bool whole_;
  std::vector<int32_t> order_;
};

}  // namespace

PackedLayer pack_layer(const PageLayer& layer, int64_t queries, int64_t keys, const std::vector<bool>& whole) {
  std::vector<int64_t> begins{0};
  for (const bool each : whole) begins.push_back(begins.back() + HeadWriter::bytes(queries, keys, each));
  PackedLayer out;
  out.bytes.resize(static_cast<size_t>(begins.back()));
  std::vector<HeadWriter> writers;
  for (int64_t h = 0; h < layer.heads; ++h)
    writers.emplace_back(out.bytes.data() + begins[static_cast<size_t>(h)], queries, keys,
                         whole[static_cast<size_t>(h)]);

  const int64_t rows = std::max<int64_t>(1, kFloatsAtOnce / std::max<int64_t>(1, layer.heads * keys));
  for (int64_t begin = 0; begin < queries; begin += rows) {
    const int64_t end = std::min(queries, begin + rows);
    const Tensor weights = layer.weights(begin, end).contiguous();
    check(weights.shape() == Shape{layer.heads, end - begin, keys},
          "page: weights of {} heads over {} rows and {} keys are {}; expected one matrix for each head", layer.heads,
          end - begin, keys, weights.shape());
    const float* w = weights.data<float>();
    parallel_for(layer.heads, [&](int64_t h) {
      for (int64_t i = begin; i < end; ++i)
        writers[static_cast<size_t>(h)].add(w + (h * (end - begin) + i - begin) * keys, i);
    });
  }
  for (size_t h = 0; h < writers.size(); ++h) out.heads.push_back({whole[h], writers[h].statistics.over(queries)});
  return out;
}

std::string deflated_base64(const std::vector<unsigned char>& bytes) {
  z_stream stream{};
  check(bytes.size() < (size_t{1} << 31), "page: a layer takes {} bytes; expected less than 2 GiB", bytes.size());
  if (deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    fail(ErrorKind::internal, "page: zlib does not start");
  std::vector<unsigned char> packed(deflateBound(&stream, static_cast<uLong>(bytes.size())));
  stream.next_in = const_cast<unsigned char*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  const int end = deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  if (end != Z_STREAM_END) fail(ErrorKind::internal, "page: zlib ended with {}", end);

  static constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((packed.size() + 2) / 3 * 4);
  for (size_t n = 0; n < packed.size(); n += 3) {
    const auto byte = [&](size_t at) { return at < packed.size() ? uint32_t{packed[at]} : 0; };
    const uint32_t three = byte(n) << 16 | byte(n + 1) << 8 | byte(n + 2);
    for (size_t k = 0; k < 4; ++k) text += n + k > packed.size() ? '=' : kLetters[three >> (18 - 6 * k) & 63];
  }
  return text;
}

}  // namespace mh::detail
