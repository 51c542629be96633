// Loads a folder into a network, and writes it back.
#include "multihead/models/pretrained/pretrained.h"

#include <algorithm>

#include "multihead/io/durable_file.h"
#include "multihead/io/safetensors.h"
#include "multihead/models/pretrained/families.h"
#include "multihead/models/pretrained/network.h"
#include "multihead/models/pretrained/outputs.h"
#include "multihead/models/pretrained/read_folder.h"

namespace mh {

namespace {

constexpr const char* kConfigName = "config.json";
constexpr const char* kWeightsName = "model.safetensors";

TensorNames names_of(const Family& family, const Architecture& a) {
  const auto texts = [](const std::vector<std::string_view>& all) {
    return std::vector<std::string>(all.begin(), all.end());
  };
  return TensorNames(family.names(a), texts(family.prefixes), texts(family.ignored));
}

bool same_values(const Tensor& a, const Tensor& b) {
  if (a.view().data == b.view().data) return true;
  if (!(a.shape() == b.shape())) return false;
  const Tensor x = a.to(DType::f32).contiguous(), y = b.to(DType::f32).contiguous();
  return std::equal(x.data<float>(), x.data<float>() + x.count(), y.data<float>());
}

// Whether two tables are one is decided by the file: two that differ are two, and one that is missing is the other.
// Returns whether `second` is `first`.
bool joined_table(NamedTensors& ours, const std::string& first, const std::string& second) {
  const auto a = ours.find(first), b = ours.find(second);
  if (a == ours.end() && b != ours.end()) {
    ours[first] = b->second;
    ours.erase(second);
    return true;
  }
  if (a == ours.end() || b == ours.end()) return true;
  if (!same_values(a->second, b->second)) return false;
  ours.erase(b);
  return true;
}

// What the config leaves to the tensors.
void settle_by_tensors(Architecture& a, NamedTensors& ours) {
  const bool two_texts = a.embedding && a.decoder_embedding;
  if (two_texts)
    a.decoder_shares_tokens = joined_table(ours, "embedding.tokens.weight", "decoder_embedding.tokens.weight");
  if (a.head.out_is_embedding) {
    const bool own = a.decoder_embedding && !(two_texts && a.decoder_shares_tokens);
    a.head.out_is_embedding =
        joined_table(ours, own ? "decoder_embedding.tokens.weight" : "embedding.tokens.weight", "head.out.weight");
  }
  if (a.pooler.given && a.head.rows != HeadRows::pooled && ours.count("pooler.dense.weight") == 0)
    a.pooler.given = false;
}

}  // namespace

struct Pretrained::Parts {
  PretrainedOptions options;
  const Family* family = nullptr;
  TensorNames names;
  std::shared_ptr<ParamStore> store;
  std::unique_ptr<Network> network;
  WeightFiles files;                // of the folder it was loaded from
  std::vector<std::string> unused;  // of its tensors
};

Pretrained::Pretrained(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Pretrained::Pretrained(Pretrained&&) noexcept = default;
Pretrained& Pretrained::operator=(Pretrained&&) noexcept = default;
Pretrained::~Pretrained() = default;

Pretrained Pretrained::load(const std::string& folder, const PretrainedOptions& options) {
  FolderParts read = read_folder(folder, options.as);
  Architecture a = std::move(read.architecture);
  WeightFiles files = std::move(read.files);
  const Family& family = family_of(a.family);
  family.head(a);

  TensorNames names = names_of(family, a);
  TensorNames::Loaded loaded = names.load(files.tensors);
  settle_by_tensors(a, loaded.ours);
  const ParamStoreOptions store_options{
      .compute = options.trainable ? options.compute : DType::f32,
      .in_place = !options.trainable,
      .file_name = [names](const std::string& ours) { return names.file_name(ours, false); }};
  auto store = std::make_shared<ParamStore>(std::move(loaded.ours), store_options);
  auto parts = std::make_unique<Parts>(Parts{.options = options,
                                             .family = &family,
                                             .names = std::move(names),
                                             .store = store,
                                             .network = std::make_unique<Network>(a, *store),
                                             .files = std::move(files),
                                             .unused = std::move(loaded.unknown)});
  for (const std::string& ours : store->unused()) parts->unused.push_back(parts->names.file_name(ours, false));
  Pretrained out(std::move(parts));
  if (!options.trainable) out.pack(options.compute);
  return out;
}

Pretrained Pretrained::fresh(const Architecture& architecture, uint64_t seed) {
  return fresh(architecture, std::make_shared<ParamStore>(ParamStoreOptions{.seed = seed}));
}

Pretrained Pretrained::fresh(const Architecture& architecture, std::shared_ptr<ParamStore> store) {
  Architecture a = architecture;
  const Family& family = family_of(a.family);
  family.head(a);
  // The plan of a loaded model says whether its output was tied; a plan of one's own leaves it to the family.
  if (architecture.head.outputs > 0) a.head.out_is_embedding = architecture.head.out_is_embedding;
  if (a.model_class.empty()) {
    for (const HeadClass& each : family.classes)
      if (each.kind == a.head.kind && a.model_class.empty()) a.model_class = each.name;
  }
  PretrainedOptions options;
  options.compute = store->options().compute;
  options.trainable = true;
  return Pretrained(std::make_unique<Parts>(Parts{.options = options,
                                                  .family = &family,
                                                  .names = names_of(family, a),
                                                  .store = store,
                                                  .network = std::make_unique<Network>(a, *store),
                                                  .files = {},
                                                  .unused = {}}));
}

void Pretrained::save(const std::string& folder) const {
  const Architecture& a = architecture();
  Safetensors file{.tensors = {}, .metadata = {{"format", "pt"}}};
  if (parts_->files.tensors.empty()) {
    file.tensors = parts_->names.store(parts_->store->values(), a.head.kind != HeadKind::none);
  } else {
    const NamedTensors ours = parts_->options.trainable ? parts_->store->values() : NamedTensors();
    file.metadata.insert(parts_->files.metadata.begin(), parts_->files.metadata.end());
    for (const auto& [name, tensor] : parts_->files.tensors)
      file.tensors[name] = parts_->names.updated(name, tensor, ours);
  }
  make_folder(folder);
  write_safetensors(folder + "/" + kWeightsName, file);
  write_durably(folder + "/" + kConfigName, write_config(a));
}

ModelOutputs Pretrained::forward(const ModelInputs& inputs, Pass& pass) const {
  return detail::outputs_of(*parts_->network, inputs, pass);
}

ModelOutputs Pretrained::forward(const ModelInputs& inputs) const {
  Pass pass = Pass::inference(parts_->options.compute);
  return forward(inputs, pass);
}

const Architecture& Pretrained::architecture() const { return parts_->network->architecture; }
const Network& Pretrained::network() const { return *parts_->network; }
ParamStore& Pretrained::params() const { return *parts_->store; }
const std::vector<std::string>& Pretrained::unused() const { return parts_->unused; }
void Pretrained::pack(DType compute) { parts_->network->pack(compute); }

}  // namespace mh
