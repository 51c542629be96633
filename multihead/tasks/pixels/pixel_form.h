// How an example of a classifier of pixels becomes what its model reads: pictures here, sounds beside them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "multihead/base/random.h"
#include "multihead/tensor/tensor.h"

namespace mh {

// Of what a model reads and how it cuts it: f32 (channels, height, width) in patches.
struct PixelShape {
  int64_t channels = 3, height = 0, width = 0;
  int64_t patch_height = 0, patch_width = 0;
};

class PixelForm {
 public:
  virtual ~PixelForm() = default;
  virtual std::string examples() const = 0;              // "pictures"
  virtual std::vector<std::string> endings() const = 0;  // of the files' names
  virtual PixelShape shape() const = 0;                  // without patches where they are the model's choice
  // An example as it is kept. Throws: io, naming the file.
  virtual Tensor read(const std::string& path) const = 0;
  // f32 (channels, height, width). With `random` varied, as the configuration says: draws from it alone decide how.
  virtual Tensor pixels(const Tensor& example, Random* random) const = 0;
  // Writes what reads the same form again. Throws: io.
  virtual void save(const std::string& folder) const = 0;
};

}  // namespace mh
