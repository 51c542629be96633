// multihead.KVCache: keys and values that grow.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <string>

#include "python/array.h"
#include "python/bindings.h"
#include "python/cache_object.h"
#include "python/docstrings.h"
#include "python/lost_gradients.h"

namespace mh::python {

using namespace nb::literals;

namespace {

DType cache_type(const std::string& name) {
  for (const DType each : {DType::f32, DType::bf16, DType::f16, DType::i8}) {
    if (name == mh::name(each)) return each;
  }
  if (name == "float32") return DType::f32;
  if (name == "bfloat16") return DType::bf16;
  if (name == "float16") return DType::f16;
  if (name == "int8") return DType::i8;
  fail(ErrorKind::invalid_argument, "KVCache: dtype is '{}'; expected float32, bfloat16, float16 or int8", name);
}

void make(CacheObject* self, int64_t batch, int64_t key_heads, int64_t key_width, std::optional<int64_t> value_width,
          int64_t capacity, const std::string& dtype, int64_t page) {
  KVCacheOptions options;
  options.batch = batch;
  options.key_heads = key_heads;
  options.key_width = key_width;
  options.value_width = value_width.value_or(key_width);
  options.capacity = capacity;
  options.dtype = cache_type(dtype);
  options.page = page;
  new (self) CacheObject(options);
}

void append(CacheObject& self, nb::handle k_object, nb::handle v_object,
            const std::optional<std::vector<int32_t>>& sequences) {
  refuse_recording("KVCache.append", k_object);
  const Array k({"KVCache.append", "k"}, k_object), v({"KVCache.append", "v"}, v_object);
  refuse_gradient({"KVCache.append", "k"}, k.object());
  refuse_gradient({"KVCache.append", "v"}, v.object());
  nb::gil_scoped_release released;
  self.change([&](KVCache& cache) {
    if (sequences)
      cache.append(k.tensor(), v.tensor(), *sequences);
    else
      cache.append(k.tensor(), v.tensor());
  });
}

nb::object block_table(const CacheObject& self) {
  Tensor pages;
  {
    nb::gil_scoped_release released;
    pages = self.read([](const KVCache& cache) { return cache.pages ? cache.pages.clone() : Tensor{}; });
  }
  if (!pages) return nb::none();
  const nb::object like = numpy("empty")(0, numpy("int32"));
  return to_array(Array({"KVCache", "block_table"}, like), pages);
}

std::string text(const CacheObject& self) {
  nb::gil_scoped_release released;
  return self.read([](const KVCache& cache) {
    const KVCacheOptions& o = cache.options();
    const std::string paged = o.page > 0 ? fmt::format(", page={}", o.page) : "";
    return fmt::format(
        "multihead.KVCache(batch={}, key_heads={}, key_width={}, value_width={}, capacity={}, dtype='{}'{})",
        cache.lengths().size(), o.key_heads, o.key_width, o.value_width, o.capacity, name(o.dtype), paged);
  });
}

}  // namespace

void bind_cache(nb::module_& m) {
  using Release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<CacheObject>(m, "KVCache", docs::kKVCache)
      .def("__init__", make, "batch"_a, "key_heads"_a, "key_width"_a, "value_width"_a.none() = nb::none(),
           nb::kw_only(), "capacity"_a, "dtype"_a = "float32", "page"_a = 0)
      .def("append", append, "k"_a, "v"_a, "sequences"_a.none() = nb::none(), docs::kAppend)
      .def(
          "truncate",
          [](CacheObject& self, int64_t sequence, int64_t length) {
            self.change([&](KVCache& cache) { cache.truncate(sequence, length); });
          },
          "sequence"_a, "length"_a, Release(), docs::kTruncate)
      .def(
          "copy",
          [](CacheObject& self, int64_t source, int64_t target) {
            self.change([&](KVCache& cache) { cache.copy(source, target); });
          },
          "source"_a, "target"_a, Release(), docs::kCopy)
      .def(
          "choose",
          [](CacheObject& self, const std::vector<int32_t>& parents) {
            self.change([&](KVCache& cache) { cache.choose(parents); });
          },
          "parents"_a, Release(), docs::kChoose)
      .def_prop_ro(
          "lengths",
          [](const CacheObject& self) { return self.read([](const KVCache& cache) { return cache.lengths(); }); },
          Release(), docs::kCacheLengths)
      .def_prop_ro(
          "nbytes",
          [](const CacheObject& self) { return self.read([](const KVCache& cache) { return cache.bytes(); }); },
          Release(), docs::kBytes)
      .def_prop_ro("block_table", block_table, docs::kBlockTable)
      .def("__repr__", text);
}

}  // namespace mh::python
