// From an archive or a stream to storages, and from a pickle to the tensors in them.
#include "multihead/io/torch/torch_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "multihead/base/checked_math.h"
#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/io/tensors_in_file.h"
#include "multihead/io/torch/little_endian.h"
#include "multihead/io/torch/pickle_machine.h"
#include "multihead/io/torch/zip_stored.h"

namespace mh {

namespace {

static_assert(std::endian::native == std::endian::little, "torch's files are little-endian");

using detail::Pickle;
using detail::PickleValue;
using Part = std::span<std::byte>;
using Kind = PickleValue::Kind;

// The number that the stream of old begins with, as a pickle.
constexpr std::array<uint8_t, 15> kStreamStart{0x80, 0x02, 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46,
                                               0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e};
constexpr int64_t kStreamVersion = 1001;

constexpr std::pair<std::string_view, DType> kStorages[] = {
    {"FloatStorage", DType::f32},  {"HalfStorage", DType::f16}, {"BFloat16Storage", DType::bf16},
    {"DoubleStorage", DType::f64}, {"LongStorage", DType::i64}, {"IntStorage", DType::i32},
    {"CharStorage", DType::i8},    {"ByteStorage", DType::u8},  {"BoolStorage", DType::boolean}};

bool is_allowed(std::string_view module, std::string_view name) {
  if (module == "collections") return name == "OrderedDict";
  if (module == "torch._utils") return name == "_rebuild_tensor_v2" || name == "_rebuild_parameter";
  return module == "torch" && name.ends_with("Storage");
}

template <class... Args>
[[noreturn]] void refuse_torch(const std::string& file, fmt::format_string<Args...> form, Args&&... args) {
  fail(ErrorKind::io, "{}: {}", printable_path(file), fmt::format(form, std::forward<Args>(args)...));
}

Pickle pickle_at(Part bytes, const std::string& file) {
  static const detail::PickleOptions options{.allowed = is_allowed};
  return detail::read_pickle(bytes, file, options);
}

// What a pickle says lies elsewhere: ('storage', torch.FloatStorage, '0', 'cpu', 12).
struct StorageName {
  DType dtype = DType::f32;
  std::string key;
  int64_t count = 0;
  int64_t bytes() const { return count * size_of(dtype); }
};

// The pickle of a file, in a reader's terms.
class State {
 public:
  State(Pickle pickle, const std::string& file) : pickle_(std::move(pickle)), file_(file) {}

  // The storages that the pickle names, each once. Throws where one is named with two types or sizes.
  std::map<std::string, StorageName> storages() const {
    std::map<std::string, StorageName> out;
    for (const PickleValue& value : pickle_.values) {
      if (value.kind != Kind::persistent) continue;
      StorageName name = storage_name(value);
      const auto [at, added] = out.emplace(name.key, name);
      if (!added && (at->second.dtype != name.dtype || at->second.count != name.count))
        refuse_torch(file_, "the storage {} has two types or sizes", printable(name.key));
    }
    return out;
  }

  TorchFile tensors(const std::map<std::string, Part>& data, const detail::TensorsInFile& within,
                    uint64_t file_bytes) const {
    TorchFile out;
    std::map<Place, std::string> first;
    uint64_t total = 0;
    const PickleValue& root = pickle_[pickle_.root];
    if (root.kind != Kind::dict && !is_call_of(root, "OrderedDict"))
      refuse_torch(file_, "holds no dictionary; expected tensors by name, as a model's state_dict() is");
    for (size_t n = 0; n + 1 < root.items.size(); n += 2) {
      const PickleValue& key = pickle_[root.items[n]];
      if (key.kind != Kind::text) refuse_torch(file_, "a name in its dictionary is not text");
      const std::string name(key.text);
      const PickleValue* tensor = tensor_of(root.items[n + 1]);
      if (tensor == nullptr) {
        out.left_out.push_back(name);
        continue;
      }
      const Place place = place_of(*tensor, name);
      const auto [at, added] = first.emplace(place, name);
      const bool tied = !added && place.count > 0;
      if (out.tensors.count(name) != 0 || out.tied.count(name) != 0)
        refuse_torch(file_, "the tensor {} stands twice", printable(name));
      if (tied) {
        out.tied.emplace(name, at->second);
        continue;
      }
      total += static_cast<uint64_t>(place.count * size_of(place.dtype));
      if (total > file_bytes)
        refuse_torch(file_, "its tensors overlap: with {} they hold more than the {} bytes of the file",
                     printable(name), file_bytes);
      out.tensors.emplace(name, made(place, data.at(place.key), within, name));
    }
    return out;
  }

 private:
  struct Place {
    std::string key;
    DType dtype = DType::f32;
    int64_t offset = 0;
    std::vector<int64_t> sizes{}, strides{};
    int64_t count = 0, reach = 0;  // elements, and from the first to behind the last
    bool operator<(const Place& o) const {
      return std::tie(key, offset, sizes, strides) < std::tie(o.key, o.offset, o.sizes, o.strides);
    }
  };

  bool is_call_of(const PickleValue& value, std::string_view name) const {
    return value.kind == Kind::call && pickle_[value.function].text == name;
  }
  const std::vector<uint32_t>& arguments(const PickleValue& call) const { return pickle_[call.arguments].items; }

  // The call that rebuilds a tensor, a parameter's within it; null for other values.
  const PickleValue* tensor_of(uint32_t number) const {
    const PickleValue* value = &pickle_[number];
    if (is_call_of(*value, "_rebuild_parameter") && !arguments(*value).empty())
      value = &pickle_[arguments(*value).front()];
    return is_call_of(*value, "_rebuild_tensor_v2") ? value : nullptr;
  }

  StorageName storage_name(const PickleValue& value) const {
    const PickleValue& id = pickle_[value.items.front()];
    const auto part = [&](size_t n, Kind kind) -> const PickleValue& {
      if (id.kind != Kind::tuple || id.items.size() <= n || pickle_[id.items[n]].kind != kind)
        refuse_torch(file_, "names what lies elsewhere by no storage; expected ('storage', type, key, device, size)");
      return pickle_[id.items[n]];
    };
    if (part(0, Kind::text).text != "storage")
      refuse_torch(file_, "holds {} where a storage is expected", printable(part(0, Kind::text).text));
    // The stream of old may say of a storage that it is a view of another.
    if (id.items.size() > 5 && pickle_[id.items[5]].kind != Kind::none)
      refuse_torch(file_, "a storage in it is a view of another; expected each to be whole");
    const std::string_view type = part(1, Kind::global).text;
    for (const auto& [known, dtype] : kStorages) {
      if (type != known) continue;
      StorageName out{dtype, std::string(part(2, Kind::text).text), part(4, Kind::integer).integer};
      if (out.count < 0 || !checked_multiply(out.count, size_of(dtype)))
        refuse_torch(file_, "the storage {} claims {} elements", printable(out.key), out.count);
      return out;
    }
    fail(ErrorKind::unsupported,
         "{}: holds elements of {}; expected floats, signed whole numbers of 1, 4 or 8 bytes, bytes or bools",
         printable_path(file_), printable("torch." + std::string(type)));
  }

  std::vector<int64_t> numbers(uint32_t number, const std::string& name) const {
    std::vector<int64_t> out;
    const PickleValue& tuple = pickle_[number];
    bool whole = tuple.kind == Kind::tuple;
    for (const uint32_t item : tuple.items) {
      whole = whole && pickle_[item].kind == Kind::integer && pickle_[item].integer >= 0;
      out.push_back(pickle_[item].integer);
    }
    if (!whole) refuse_torch(file_, "the sizes or strides of {} are no whole numbers from 0 on", printable(name));
    return out;
  }

  // Where a tensor lies: within its storage, and with no more elements than that has.
  Place place_of(const PickleValue& call, const std::string& name) const {
    const std::vector<uint32_t>& given = arguments(call);
    if (given.size() < 4 || pickle_[given[0]].kind != Kind::persistent || pickle_[given[1]].kind != Kind::integer)
      refuse_torch(file_, "the tensor {} is not described as torch does", printable(name));
    const StorageName storage = storage_name(pickle_[given[0]]);
    Place out{storage.key, storage.dtype, pickle_[given[1]].integer, numbers(given[2], name), numbers(given[3], name)};
    if (out.sizes.size() != out.strides.size())
      refuse_torch(file_, "the tensor {} has {} sizes and {} strides", printable(name), out.sizes.size(),
                   out.strides.size());
    if (out.sizes.size() > kMaxRank)
      fail(ErrorKind::unsupported, "{}: the tensor {} has {} axes; expected at most {}", printable_path(file_),
           printable(name), out.sizes.size(), kMaxRank);
    std::optional<int64_t> count = 1, last = out.offset;
    for (size_t n = 0; n < out.sizes.size(); ++n) {
      count = count ? checked_multiply(*count, out.sizes[n]) : count;
      const std::optional<int64_t> way = checked_multiply(std::max<int64_t>(out.sizes[n] - 1, 0), out.strides[n]);
      last = last && way ? checked_add(*last, *way) : std::nullopt;
    }
    const bool empty = std::find(out.sizes.begin(), out.sizes.end(), 0) != out.sizes.end();
    const bool fits = out.offset >= 0 && count && last && (empty || (*count <= storage.count && *last < storage.count));
    if (!fits)
      refuse_torch(file_, "the tensor {} of shape [{}] does not fit its storage of {} elements", printable(name),
                   fmt::join(out.sizes, ", "), storage.count);
    out.count = empty ? 0 : *count;
    out.reach = empty ? 0 : *last + 1 - out.offset;
    return out;
  }

  Tensor made(const Place& place, Part storage, const detail::TensorsInFile& within, const std::string& name) const {
    const auto each = static_cast<size_t>(size_of(place.dtype));
    const Part bytes =
        storage.subspan(static_cast<size_t>(place.offset) * each, static_cast<size_t>(place.reach) * each);
    if (place.dtype == DType::boolean && !detail::holds_bools(bytes))
      refuse_torch(file_, "the tensor {} holds bools that are neither 0 nor 1", printable(name));
    return within.at(bytes, Shape(place.sizes), place.strides, place.dtype);
  }

  const Pickle pickle_;
  const std::string& file_;
};

TorchFile read_archive(const detail::FileBytes& file, const std::string& name) {
  constexpr std::string_view kPickle = "/data.pkl";
  std::map<std::string, Part> entries = detail::read_stored_zip(file.bytes, name);
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry.first.ends_with(kPickle) && entry.first.find('/') + kPickle.size() == entry.first.size();
  });
  if (found == entries.end()) refuse_torch(name, "is a zip archive without data.pkl; expected a file of torch.save");
  const std::string folder = found->first.substr(0, found->first.size() - kPickle.size());
  if (const auto order = entries.find(folder + "/byteorder"); order != entries.end()) {
    const std::string_view said(reinterpret_cast<const char*>(order->second.data()), order->second.size());
    if (said != "little") refuse_torch(name, "its byte order is {}; expected little", printable(said));
  }
  const State state(pickle_at(found->second, name), name);
  std::map<std::string, Part> data;
  for (const auto& [key, storage] : state.storages()) {
    const auto entry = entries.find(folder + "/data/" + key);
    if (entry == entries.end()) refuse_torch(name, "the storage {} is missing", printable(key));
    if (static_cast<uint64_t>(storage.bytes()) != entry->second.size())
      refuse_torch(name, "the storage {} claims {} bytes and has {}", printable(key), storage.bytes(),
                   entry->second.size());
    data[key] = entry->second;
  }
  return state.tensors(data, detail::TensorsInFile(file), file.bytes.size());
}

// Before PyTorch 1.6: pickles one behind the other (a number, a version, facts of the system, the tensors, the keys of
// the storages), then each storage's count and elements.
class Stream {
 public:
  Stream(const detail::FileBytes& file, const std::string& name) : file_(file), name_(name) {}

  TorchFile read() {
    at_ = kStreamStart.size();
    const Pickle version = next();
    if (version[version.root].kind != Kind::integer || version[version.root].integer != kStreamVersion)
      refuse_torch(name_, "is of another version of torch.save's old form; expected {}", kStreamVersion);
    check_system(next());
    const State state(next(), name_);
    const Pickle keys = next();
    if (keys[keys.root].kind != Kind::list) refuse_torch(name_, "has no list of its storages");
    const std::map<std::string, StorageName> named = state.storages();
    std::map<std::string, Part> data;
    for (const uint32_t item : keys[keys.root].items) {
      const std::string key(keys[item].text);
      const auto storage = named.find(key);
      if (storage == named.end() || data.count(key) != 0)
        refuse_torch(name_, "lists the storage {}, which it does not name, or twice", printable(key));
      data[key] = elements(storage->second);
    }
    for (const auto& [key, storage] : named)
      if (data.count(key) == 0) refuse_torch(name_, "the storage {} is missing", printable(key));
    return state.tensors(data, detail::TensorsInFile(file_), file_.bytes.size());
  }

 private:
  Pickle next() {
    Pickle out = pickle_at(file_.bytes.subspan(at_), name_);
    at_ += out.bytes;
    return out;
  }

  void check_system(const Pickle& facts) const {
    const PickleValue& dict = facts[facts.root];
    for (size_t n = 0; n + 1 < dict.items.size(); n += 2) {
      if (facts[dict.items[n]].text != "little_endian") continue;
      const PickleValue& value = facts[dict.items[n + 1]];
      if (value.kind == Kind::boolean && value.integer == 0)
        refuse_torch(name_, "its byte order is big; expected little");
    }
  }

  Part elements(const StorageName& storage) {
    const std::optional<int64_t> count = detail::little_endian_at<int64_t>(file_.bytes, at_);
    if (count != storage.count)
      refuse_torch(name_, "the storage {} has another size than its tensors say, {}", printable(storage.key),
                   storage.count);
    at_ += sizeof(*count);
    const auto size = static_cast<uint64_t>(storage.bytes());
    if (size > file_.bytes.size() - at_)
      refuse_torch(name_, "the storage {} claims {} bytes where {} are left", printable(storage.key), size,
                   file_.bytes.size() - at_);
    at_ += size;
    return file_.bytes.subspan(at_ - size, size);
  }

  const detail::FileBytes& file_;
  const std::string& name_;
  size_t at_ = 0;
};

TorchFile read_bytes(const detail::FileBytes& file, const std::string& name) {
  constexpr std::string_view kZip = "PK\x03\x04";
  const std::string_view start(reinterpret_cast<const char*>(file.bytes.data()),
                               std::min(file.bytes.size(), kStreamStart.size()));
  if (start.starts_with(kZip)) return read_archive(file, name);
  if (start == std::string_view(reinterpret_cast<const char*>(kStreamStart.data()), kStreamStart.size()))
    return Stream(file, name).read();
  refuse_torch(name, "is no file of torch.save: it begins neither as a zip archive nor as the older form does");
}

}  // namespace

TorchFile read_torch_file(const std::string& path) { return read_bytes(detail::map_file(path), path); }

TorchFile parse_torch_file(std::span<const std::byte> bytes, const std::string& name) {
  return read_bytes(detail::copy_of(bytes), name);
}

}  // namespace mh
