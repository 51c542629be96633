// Loads libmultihead_cuda.so, and hands it calls.
#include "multihead/kernels/gpu.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "multihead/base/error.h"
#include "multihead/kernels/cuda/host_call.h"
#include "multihead/kernels/cuda/pack.h"

namespace mh::kernels::gpu {
namespace {

constexpr const char* kVariable = "MULTIHEAD_CUDA_LIBRARY";
constexpr const char* kName = "libmultihead_cuda.so";

struct Library {
  std::string path, missing;
  decltype(&mh_cuda_forward) forward = nullptr;
  decltype(&mh_cuda_backward) backward = nullptr;
  decltype(&mh_cuda_toolkit) toolkit = nullptr;
};

// Where it is looked for: what the variable says, or beside this code, or where the system looks.
std::vector<std::string> places() {
  if (const char* given = std::getenv(kVariable)) return {given};
  std::vector<std::string> found;
  Dl_info own;
  if (dladdr(reinterpret_cast<const void*>(&facts), &own) != 0 && own.dli_fname) {
    const std::filesystem::path beside = std::filesystem::path(own.dli_fname).parent_path();
    for (const auto& folder : {beside, beside / "lib", beside / ".." / "lib"}) {
      std::error_code ignored;
      if (std::filesystem::exists(folder / kName, ignored)) found.push_back((folder / kName).string());
    }
  }
  found.emplace_back(kName);
  return found;
}

template <class Function>
void find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
}

Library load() {
  Library library;
  for (const std::string& path : places()) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
      const char* why = dlerror();
      const bool found = path.find('/') != std::string::npos && std::filesystem::exists(path);
      library.missing = found ? fmt::format("{} cannot be loaded: {}", path, why ? why : "no reason was given")
                              : fmt::format("{} is not found; {} names it where it lies elsewhere", path, kVariable);
      continue;
    }
    decltype(&mh_cuda_interface) interface = nullptr;
    find(handle, "mh_cuda_interface", interface);
    if (!interface || interface() != cuda::kInterface) {
      library.missing = fmt::format("{} belongs to another version; expected one built from the same sources", path);
      dlclose(handle);
      continue;
    }
    find(handle, "mh_cuda_forward", library.forward);
    find(handle, "mh_cuda_backward", library.backward);
    find(handle, "mh_cuda_toolkit", library.toolkit);
    library.path = path;
    library.missing.clear();
    return library;
  }
  return library;
}

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

std::string version(int number) { return number <= 0 ? "" : fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

// What NVIDIA's driver says, without our library: libcuda.so.1 is part of it.
Facts driver_facts() {
  Facts out;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) {
    out.missing = "no driver of NVIDIA's is installed (libcuda.so.1)";
    return out;
  }
  int (*start)(unsigned) = nullptr, (*version_of)(int*) = nullptr, (*count_of)(int*) = nullptr;
  int (*name_of)(char*, int, int) = nullptr, (*attribute_of)(int*, int, int) = nullptr,
                             (*memory_of)(size_t*, int) = nullptr;
  find(driver, "cuInit", start);
  find(driver, "cuDriverGetVersion", version_of);
  find(driver, "cuDeviceGetCount", count_of);
  find(driver, "cuDeviceGetName", name_of);
  find(driver, "cuDeviceGetAttribute", attribute_of);
  find(driver, "cuDeviceTotalMem_v2", memory_of);
  int number = 0, count = 0;
  if (version_of && version_of(&number) == 0) out.driver = version(number);
  const int failed = start ? start(0) : -1;
  if (failed != 0 || !count_of || count_of(&count) != 0 || count == 0) {
    out.missing = fmt::format("the driver finds no GPU (cuInit gives {})", failed);
    return out;
  }
  char name[256] = {};
  constexpr int kMajor = 75, kMinor = 76;  // of CUdevice_attribute
  if (name_of && name_of(name, sizeof name, 0) == 0) out.name = name;
  if (attribute_of) attribute_of(&out.major, kMajor, 0), attribute_of(&out.minor, kMinor, 0);
  size_t memory = 0;
  if (memory_of && memory_of(&memory, 0) == 0) out.memory = static_cast<int64_t>(memory);
  return out;
}

void run(std::string_view op, decltype(&mh_cuda_forward) Library::*function, const cuda::Packed& packed,
         const Queue& queue) {
  const Library& loaded = library();
  if (!loaded.missing.empty())
    fail(ErrorKind::unsupported, "{}: tensors of a GPU need its kernels; {}", op, loaded.missing);
  const cuda::HostCall call{packed.call, packed.spans.empty() ? nullptr : packed.spans.data(), queue.device,
                            queue.stream};
  char sentence[cuda::kLongestSentence] = {};
  if ((loaded.*function)(&call, sentence) != 0) fail(ErrorKind::internal, "{}: {}", op, sentence);
}

}  // namespace

void attention_forward(const AttentionForwardArgs& args, const Queue& queue) {
  run("attention", &Library::forward, cuda::pack(args), queue);
}

void attention_backward(const AttentionBackwardArgs& args, const Queue& queue) {
  run("attention_backward", &Library::backward, cuda::pack(args), queue);
}

Facts facts() {
  Facts out = driver_facts();
  const Library& loaded = library();
  out.library = loaded.path;
  if (loaded.toolkit) out.toolkit = version(loaded.toolkit());
  if (!loaded.missing.empty()) out.missing += (out.missing.empty() ? "" : "; ") + loaded.missing;
  if (out.missing.empty() && out.major != 9)
    out.missing = fmt::format("{} has compute capability {}.{}; the kernels are built for 9.0 (Hopper)", out.name,
                              out.major, out.minor);
  return out;
}

}  // namespace mh::kernels::gpu
