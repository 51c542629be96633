// The families of models that are read from and written to Hugging Face folders: one value each, in families/.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "multihead/models/pretrained/architecture.h"
#include "multihead/models/pretrained/config_fields.h"
#include "multihead/models/pretrained/tensor_names.h"

namespace mh {

// A class that transformers loads the folder with.
struct HeadClass {
  std::string_view name;  // as in "architectures"
  HeadKind kind = HeadKind::none;
  std::string_view marker{};  // a tensor that only this head has: tells it where the config names no class
};

struct Family {
  std::string_view type;                     // model_type
  std::vector<std::string_view> prefixes{};  // of the body's tensors, where a model with a head adds one
  std::vector<HeadClass> classes{};          // of several of one kind the first is written
  // The config's keys: sets defaults and reads, or writes what the architecture says.
  void (*keys)(ConfigFields& fields, Architecture& a) = nullptr;
  // Fills in a.head, and what else depends on its kind.
  void (*head)(Architecture& a) = nullptr;
  std::vector<TensorName> (*names)(const Architecture& a) = nullptr;
  std::vector<std::string_view> ignored{};
};

// All of them, by type. A type that is written like another (xlm-roberta as roberta) has an entry of its own.
std::span<const Family* const> families();
// Throws: unsupported, with the types there are, for another.
const Family& family_of(std::string_view type);

// The architecture a config.json describes, without its head: which is decided by `head_of` and filled in by the
// family. `as`: the family where the text has no model_type. Throws: io, unsupported; `name` stands in the sentences.
Architecture read_config(std::string_view json, const std::string& name, const std::string& as = {});
// The head of the class that `a` names, or the one whose marker the file has. Throws: unsupported for a class that is
// not known.
HeadKind head_of(const Family& family, const Architecture& a, const NamedTensors& file);
// config.json: the keys of a.config, if there are any, with ours put over them.
std::string write_config(const Architecture& a);

}  // namespace mh
