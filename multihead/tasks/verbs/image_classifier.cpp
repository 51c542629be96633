// Pictures through a ViT, a batch at a time.
#include "multihead/tasks/verbs/image_classifier.h"

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/images/preparation.h"
#include "multihead/tasks/pixels/image_form.h"
#include "multihead/tasks/pixels/pixel_model.h"

namespace mh {

struct ImageClassifier::Parts {
  PixelModel model;
};

ImageClassifier ImageClassifier::load(const std::string& folder, DType compute) {
  PixelModel model = PixelModel::load(folder, compute);
  if (dynamic_cast<const ImageForm*>(&model.form()) == nullptr)
    fail(ErrorKind::io, "{}: its model reads {}; expected pictures", printable_path(folder), model.form().examples());
  return ImageClassifier(std::make_shared<const Parts>(Parts{std::move(model)}));
}

Classification ImageClassifier::operator()(const Tensor& picture) const {
  const auto& form = dynamic_cast<const ImageForm&>(parts_->model.form());
  const Tensor one[] = {fitted(picture, form.preparation())};
  return parts_->model.classify(one).front();
}

std::vector<Classification> ImageClassifier::operator()(std::span<const std::string> files) const {
  std::vector<Tensor> pictures;
  for (const std::string& file : files) pictures.push_back(parts_->model.form().read(file));
  return parts_->model.classify(pictures);
}

const std::vector<std::string>& ImageClassifier::labels() const { return parts_->model.labels().names(); }

}  // namespace mh
