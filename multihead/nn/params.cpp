// Fresh parameters, those of a file, and their names.
#include "multihead/nn/params.h"

#include <cmath>

#include "multihead/autograd/tape.h"
#include "multihead/base/parallel.h"
#include "multihead/base/random.h"

namespace mh {

namespace {

// FNV-1a: a stream of random numbers per name, so that adding a layer changes no other.
uint64_t stream_of(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return hash;
}

Tensor fresh(const std::string& name, const Shape& shape, const Init& init, uint64_t seed) {
  if (init.kind == Init::Kind::zeros) return zeros(shape);
  if (init.kind == Init::Kind::ones) return full(shape, 1);
  const Tensor out = empty(shape);
  float* values = out.data<float>();
  const int64_t count = out.count();
  const uint64_t stream = stream_of(name);
  const bool xavier = init.kind == Init::Kind::xavier, uniform = xavier || init.kind == Init::Kind::uniform;
  const double bound = xavier ? std::sqrt(6.0 / static_cast<double>(shape[0] + shape[1])) : init.scale;
  parallel_for((count + 4095) / 4096, [&](int64_t task) {
    for (int64_t i = task * 4096; i < std::min(count, (task + 1) * 4096); i += 4) {
      const auto numbers = uniform ? random_uniform(seed, static_cast<uint64_t>(i / 4), stream)
                                   : random_normal(seed, static_cast<uint64_t>(i / 4), stream);
      for (int64_t n = 0; n < std::min<int64_t>(4, count - i); ++n) {
        const double x = numbers[static_cast<size_t>(n)];
        values[i + n] = static_cast<float>(uniform ? bound * (2 * x - 1) : init.scale * x);
      }
    }
  });
  return out;
}

}  // namespace

void ParamStore::check_new(const std::string& name, const Shape& shape, const Init& init) const {
  for (const auto& param : params_)
    check(param->name != name, "parameters: the name {} is taken; expected each name once", name);
  check(init.kind != Init::Kind::xavier || shape.rank() == 2,
        "parameters: {} is {}; a Xavier beginning expects a matrix", name, shape);
}

const Tensor& ParamStore::loaded(const std::string& name, const Shape& shape) const {
  const std::string shown = options_.file_name ? options_.file_name(name) : name;
  const auto at = loaded_.find(name);
  check(at != loaded_.end(), "parameters: the file has no {}; expected f32 {}", shown, shape);
  check(at->second.shape() == shape, "parameters: {} does not fit the model; expected {}; the file has {}", shown,
        shape, at->second.shape());
  check(is_float(at->second.dtype()), "parameters: {} holds {}; expected floats", shown, mh::name(at->second.dtype()));
  return at->second;
}

const Param& ParamStore::add(const std::string& name, const Tensor& value) {
  auto param = std::make_unique<Param>(Param{.name = name, .value = value, .copy = {}});
  if (options_.compute != DType::f32 && value.rank() == 2 && !options_.in_place)
    param->copy = value.detach().to(options_.compute);
  params_.push_back(std::move(param));
  return *params_.back();
}

const Param& ParamStore::add_learned(const std::string& name, const Tensor& value) {
  return add(name, options_.is_frozen && options_.is_frozen(name) ? value : parameter(value));
}

const Param& ParamStore::make(const std::string& name, const Shape& shape, const Init& init) {
  check_new(name, shape, init);
  if (!from_file_) return add_learned(name, fresh(name, shape, init, options_.seed).to(options_.device));
  const Tensor& from = loaded(name, shape);
  if (options_.in_place) return add(name, from.to(DType::f32).contiguous().to(options_.device));
  // A copy: what a file maps is not ours to write.
  const Tensor value = empty(shape, DType::f32, options_.device);
  value.copy_from(from);
  return add_learned(name, value);
}

const Param& ParamStore::make_stored(const std::string& name, const Shape& shape, const Init& init) {
  if (!from_file_ || !options_.in_place) return make(name, shape, init);
  check_new(name, shape, init);
  const Tensor& from = loaded(name, shape);
  return add(name, (from.dtype() == DType::f64 ? from.to(DType::f32) : from).to(options_.device));
}

int64_t ParamStore::count() const {
  int64_t sum = 0;
  for (const auto& param : params_) sum += param->value.count();
  return sum;
}

std::vector<Tensor> ParamStore::below(const std::string& path) const {
  std::vector<Tensor> out;
  for (const auto& param : params_) {
    if (param->name.starts_with(path + ".")) out.push_back(param->value);
  }
  return out;
}

std::vector<std::string> ParamStore::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : loaded_) {
    bool used = false;
    for (const auto& param : params_) used = used || param->name == name;
    if (!used) names.push_back(name);
  }
  return names;
}

std::map<std::string, Tensor> ParamStore::values() const {
  std::map<std::string, Tensor> out;
  for (const auto& param : params_) out[param->name] = param->value.detach();
  return out;
}

void ParamStore::take(const std::map<std::string, Tensor>& values) {
  for (const auto& param : params_) {
    const auto at = values.find(param->name);
    check(at != values.end() && at->second.shape() == param->value.shape(),
          "parameters: no fitting value for {}; expected {}", param->name, param->value.shape());
  }
  for (const auto& param : params_) param->value.detach().copy_from(values.at(param->name));
  refresh_copies();
}

void ParamStore::refresh_copies() {
  for (const auto& param : params_) {
    if (param->copy) param->copy.copy_from(param->value.detach());
  }
}

std::string Params::joined(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

Params Params::operator/(std::string_view name) const { return Params(*store_, joined(name)); }

const Param& Params::make(std::string_view name, const Shape& shape, const Init& init) const {
  return store_->make(joined(name), shape, init);
}

const Param& Params::make_stored(std::string_view name, const Shape& shape, const Init& init) const {
  return store_->make_stored(joined(name), shape, init);
}

bool Params::holds(std::string_view name) const { return store_->holds(joined(name)); }

}  // namespace mh
