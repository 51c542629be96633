// Parameters by path: the same constructor makes fresh weights or takes those of a file.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh {

// How a fresh parameter begins. xavier: uniform in ±√(6 / (fan in + fan out)) of a matrix (out, in); normal: N(0,
// scale²); uniform: in ±scale.
struct Init {
  enum class Kind { zeros, ones, xavier, normal, uniform } kind = Kind::zeros;
  double scale = 1;

  static Init zeros() { return {}; }
  static Init ones() { return {Kind::ones}; }
  static Init xavier() { return {Kind::xavier}; }
  static Init normal(double scale) { return {Kind::normal, scale}; }
  static Init uniform(double scale) { return {Kind::uniform, scale}; }
};

// A learned tensor: f32, traced (but where it is frozen), with a bf16 copy beside it where products run in bf16.
struct Param {
  std::string name{};
  Tensor value{};
  Tensor copy{};
};

struct ParamStoreOptions {
  uint64_t seed = 1;           // of fresh parameters
  DType compute = DType::f32;  // bf16: matrices get a bf16 copy
  // Values of a file stay where they are, untraced: for inference. Matrices keep their type and strides.
  bool in_place = false;
  // What a file calls one of our parameters, for sentences; our name where not given.
  std::function<std::string(const std::string&)> file_name{};
  // Parameters that are not learned, by name: untraced, so that no gradient of them is computed.
  std::function<bool(const std::string&)> is_frozen{};
  Device device{};  // where the parameters lie, and with them what a model computes
};

// All parameters of a model, by name. Fresh ones depend on the seed and their own name alone.
class ParamStore {
 public:
  explicit ParamStore(const ParamStoreOptions& options = {}) : options_(options) {}
  // Takes values from `loaded` in place of fresh ones; f32, bf16 and f16 are taken (as f32).
  ParamStore(std::map<std::string, Tensor> loaded, const ParamStoreOptions& options = {})
      : options_(options), loaded_(std::move(loaded)), from_file_(true) {}

  // Throws: invalid_argument where the name is taken, missing from the file, or there with another shape.
  const Param& make(const std::string& name, const Shape& shape, const Init& init);
  // The same for a module that reads any float type and any strides: a value in place keeps them.
  const Param& make_stored(const std::string& name, const Shape& shape, const Init& init);
  // In the order they were made.
  const std::vector<std::unique_ptr<Param>>& all() const { return params_; }
  int64_t count() const;
  // The values whose names begin with `path` and a dot.
  std::vector<Tensor> below(const std::string& path) const;
  // Names of the file that no module asked for.
  std::vector<std::string> unused() const;
  bool holds(const std::string& name) const { return loaded_.count(name) != 0; }
  bool from_file() const { return from_file_; }
  const ParamStoreOptions& options() const { return options_; }

  // The values by name, detached: what a file holds. `take` copies equally named values in.
  std::map<std::string, Tensor> values() const;
  void take(const std::map<std::string, Tensor>& values);
  // Makes the bf16 copies those of the values again.
  void refresh_copies();

 private:
  const Tensor& loaded(const std::string& name, const Shape& shape) const;
  const Param& add(const std::string& name, const Tensor& value);
  const Param& add_learned(const std::string& name, const Tensor& value);
  void check_new(const std::string& name, const Shape& shape, const Init& init) const;
  ParamStoreOptions options_;
  std::map<std::string, Tensor> loaded_;
  bool from_file_ = false;
  std::vector<std::unique_ptr<Param>> params_;
};

// A path into a store: `at / "encoder" / "norm"` names what lies below it.
class Params {
 public:
  explicit Params(ParamStore& store, std::string path = "") : store_(&store), path_(std::move(path)) {}

  Params operator/(std::string_view name) const;
  Params operator/(int64_t index) const { return *this / std::to_string(index); }
  const Param& make(std::string_view name, const Shape& shape, const Init& init) const;
  const Param& make_stored(std::string_view name, const Shape& shape, const Init& init) const;
  // Whether a file is being read and has the name below this path.
  bool holds(std::string_view name) const;
  bool from_file() const { return store_->from_file(); }
  ParamStore& store() const { return *store_; }
  const std::string& path() const { return path_; }

 private:
  std::string joined(std::string_view name) const;
  ParamStore* store_;
  std::string path_;
};

}  // namespace mh
