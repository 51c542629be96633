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
  decltype(&mh_cuda_facts) facts = nullptr;
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
    find(handle, "mh_cuda_facts", library.facts);
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

void run(std::string_view op, decltype(&mh_cuda_forward) Library::* function, const cuda::Packed& packed, const Queue& queue) {
  const Library& loaded = library();
  if (!loaded.missing.empty()) fail(ErrorKind::unsupported, "{}: tensors of a GPU need its kernels; {}", op, loaded.missing);
  const cuda::HostCall call{packed.call, packed.spans.empty() ? nullptr : packed.spans.data(), queue.device, queue.stream};
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
  const Library& loaded = library();
  Facts out;
  out.library = loaded.path;
  out.missing = loaded.missing;
  if (!loaded.facts) return out;
  cuda::GpuFacts found;
  loaded.facts(&found);
  out.name = found.name;
  out.major = found.major;
  out.minor = found.minor;
  out.memory = found.memory;
  out.driver = version(found.driver);
  out.toolkit = version(found.toolkit);
  if (found.count == 0)
    out.missing = fmt::format("no GPU can be used: {}", found.reason);
  else if (found.major != 9)
    out.missing = fmt::format("{} has compute capability {}.{}; the kernels are built for 9.0 (Hopper)", out.name, found.major, found.minor);
  return out;
}

}  // namespace mh::kernels::gpu
