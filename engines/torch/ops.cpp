// torch.ops.lpgemm.*: lpgemm as operators of PyTorch, through the stable C++ interface of libtorch (2.10 and later), so
// that one library serves every torch from 2.10 on. docs/engines.md says what each operator does.
//
// Packed weights are a tensor of bytes, which owns the memory: nothing here remembers where one lies. What describes
// them on the host is a text, the header: 16 hexadecimal digits of its checksum, then its bytes without the hashes and
// without the zeros at the end (package/header.py writes it). A text is a constant for torch.compile, and nothing of a
// GPU has to be read for a product. Each thread has a handle for every device that it works on.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "lpgemm.h"

// Of torch's library for CUDA: not there in a torch for the CPU.
extern "C" AOTITorchError __attribute__((weak))
aoti_torch_get_current_cuda_stream(int32_t device_index, void **ret_stream);

namespace {

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

[[noreturn]] void refuse(const std::string &sentence) { throw std::runtime_error(sentence); }

void check(lpgemm_status_t status) {
  if (status != LPGEMM_SUCCESS) refuse(lpgemm_last_error());
}

template <typename T>
T sized() {
  T value{};
  value.size = sizeof value;
  return value;
}

// ---- types and places of tensors ----

lpgemm_dtype_t parse_type(const std::string &text) {
  lpgemm_dtype_t type = 0;
  check(lpgemm_dtype_parse(text.c_str(), &type));
  return type;
}

// 0: another type.
lpgemm_dtype_t known_type_of(const Tensor &tensor) {
  switch (tensor.scalar_type()) {
    case ScalarType::Half: return LPGEMM_F16;
    case ScalarType::BFloat16: return LPGEMM_BF16;
    case ScalarType::Float: return LPGEMM_F32;
    case ScalarType::Byte: return LPGEMM_U8;
    case ScalarType::Float8_e4m3fn: return LPGEMM_E4M3;
    default: return 0;
  }
}

// Of scales and zeros.
lpgemm_dtype_t type_of(const char *name, const Tensor &tensor) {
  const lpgemm_dtype_t type = known_type_of(tensor);
  if (!type) refuse(std::string(name) + " must be float16, bfloat16, float32, float8_e4m3fn or uint8");
  return type;
}

// Of what is multiplied and of what comes out.
lpgemm_dtype_t real_type_of(const char *name, const Tensor &tensor) {
  const lpgemm_dtype_t type = known_type_of(tensor);
  if (LPGEMM_DTYPE_KIND(type) != LPGEMM_KIND_REAL) refuse(std::string(name) + " must be float16, bfloat16 or float32");
  return type;
}

void check_beside(const char *name, const Tensor &tensor, const Tensor &other) {
  if (tensor.is_cuda() != other.is_cuda() || tensor.get_device_index() != other.get_device_index()) {
    refuse(std::string(name) + " lies on another device than the other tensors");
  }
}

size_t bytes_of(const Tensor &tensor) { return static_cast<size_t>(tensor.numel()) * tensor.element_size(); }

// A tensor without gaps beside another one.
Tensor dense(const char *name, const Tensor &tensor, const Tensor &other) {
  check_beside(name, tensor, other);
  return torch::stable::contiguous(tensor);
}

// A tensor as rows with the same distance, of which the last dimension is one; `kept` holds what they point to.
struct rows {
  Tensor kept;
  int64_t m, columns, ld;
};

rows rows_of(const char *name, const Tensor &tensor) {
  const int64_t dims = tensor.dim();
  if (dims < 1) refuse(std::string(name) + " has no dimension");
  const int64_t columns = tensor.size(dims - 1);
  int64_t m = 1, ld = columns, following = -1;  // -1: no dimension with more than one row yet
  bool is_regular = columns <= 1 || tensor.stride(dims - 1) == 1;
  for (int64_t i = dims - 2; i >= 0; i--) {
    const int64_t size = tensor.size(i);
    m *= size;
    if (size == 1) continue;
    if (following < 0) {
      ld = tensor.stride(i);
      is_regular = is_regular && ld >= columns;
    } else {
      is_regular = is_regular && tensor.stride(i) == following;
    }
    following = tensor.stride(i) * size;
  }
  if (!is_regular && m > 0) return {torch::stable::contiguous(tensor), m, columns, columns};
  return {tensor, m, columns, ld};
}

// ---- handles ----

// torch's own threads: as many as torch.get_num_threads() says.
void on_torch_threads(void *, lpgemm_task_t task, void *work, int64_t count) {
  try {
    torch::stable::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; i++) task(work, i);
    });
  } catch (...) {  // lpgemm sees that tasks are missing
  }
}

// What is known of a header on a device.
struct described {
  uint8_t header[LPGEMM_HEADER_BYTES] = {};
  int64_t outputs = 0, columns = 0, biases = 0;      // of Y and of X; one a row of W
  std::map<std::vector<int64_t>, size_t> workspace;  // bytes by rows, a power of two, and options
};

class device_handle {
 public:
  device_handle(bool is_cuda, int32_t index) : index_(is_cuda ? index : -1) {
    auto config = sized<lpgemm_config_t>();
    config.backend = is_cuda ? LPGEMM_BACKEND_CUDA : LPGEMM_BACKEND_CPU;
    config.device = is_cuda ? index : 0;
    config.num_threads = 1;
    if (!is_cuda) config.parallel_for = on_torch_threads;
    check(lpgemm_create(&handle_, &config));
  }
  device_handle(const device_handle &) = delete;
  ~device_handle() { lpgemm_destroy(handle_); }

  operator lpgemm_handle_t() const { return handle_; }

  // The work that follows goes where torch's does.
  void follow_torch() {
    if (index_ >= 0) {
      void *stream = nullptr;
      if (!aoti_torch_get_current_cuda_stream) refuse("this torch has no CUDA");
      TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(index_, &stream));
      check(lpgemm_set_stream(handle_, stream));
    } else {
      check(lpgemm_set_num_threads(handle_, static_cast<int32_t>(torch::stable::get_num_threads())));
    }
  }

  described &describe(const std::string &text, const Tensor &weight);

 private:
  lpgemm_handle_t handle_ = nullptr;
  int32_t index_;  // -1: the CPU
  std::unordered_map<std::string, described> known_;
};

device_handle &handle_for(const Tensor &tensor) {
  static thread_local std::map<int32_t, std::unique_ptr<device_handle>> handles;
  static thread_local pid_t process = getpid();
  if (process != getpid()) {  // the child of a fork makes its own
    handles.clear();
    process = getpid();
  }
  const int32_t key = tensor.is_cuda() ? tensor.get_device_index() : -1;
  if (key < 0 && !tensor.is_cpu()) refuse("tensors must lie on the CPU or on a CUDA device");
  auto &handle = handles[key];
  if (!handle) handle = std::make_unique<device_handle>(key >= 0, key);
  handle->follow_torch();
  return *handle;
}

// ---- weights ----

int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

enum { HASHES = 16 };  // the last bytes of a header

void read_header(const std::string &text, uint8_t *header) {
  enum { DIGITS = HASHES, MOST = DIGITS + 2 * (LPGEMM_HEADER_BYTES - HASHES) };
  bool is_right = text.size() >= DIGITS && text.size() <= MOST;
  for (size_t i = 0; i < text.size() && is_right; i++) {
    const int digit = hex_digit(text[i]);
    is_right = digit >= 0;
    const size_t at = i < DIGITS ? LPGEMM_HEADER_BYTES - 8 + i / 2 : (i - DIGITS) / 2;
    header[at] = static_cast<uint8_t>(header[at] | (digit & 15) << (i % 2 ? 0 : 4));
  }
  if (!is_right) refuse("header is no text that lpgemm.torch.header_of() makes of packed weights");
}

// Weights for the length of a call.
class weights {
 public:
  weights(lpgemm_handle_t handle, const uint8_t *header, const Tensor &tensor) {
    if (tensor.scalar_type() != ScalarType::Byte || !tensor.is_contiguous()) {
      refuse("weight must be packed weights: a contiguous tensor of uint8");
    }
    const void *bytes = tensor.const_data_ptr();
    // What lies in host memory is at hand: a tensor that got other weights behind the caller's back is seen.
    if (tensor.is_cpu() && bytes_of(tensor) >= LPGEMM_HEADER_BYTES &&
        std::memcmp(bytes, header, LPGEMM_HEADER_BYTES - HASHES) != 0) {
      refuse("header is not that of weight: take it anew with lpgemm.torch.header_of()");
    }
    check(lpgemm_weights_from_blob(handle, header, LPGEMM_HEADER_BYTES, bytes, bytes_of(tensor), storage_,
                                   sizeof storage_, &weights_));
  }
  weights(const weights &) = delete;
  ~weights() { lpgemm_weights_destroy(weights_); }

  operator lpgemm_weights_t() const { return weights_; }

 private:
  uint64_t storage_[LPGEMM_WEIGHTS_BYTES / sizeof(uint64_t)];
  lpgemm_weights_t weights_ = nullptr;
};

described &device_handle::describe(const std::string &text, const Tensor &weight) {
  const auto found = known_.find(text);
  if (found != known_.end()) return found->second;
  enum { MOST = 4096 };  // of texts: no program has so many, unless it makes weights without end
  described made;
  read_header(text, made.header);
  const weights w(handle_, made.header, weight);
  auto info = sized<lpgemm_weights_info_t>();
  check(lpgemm_weights_info(w, &info));
  check(lpgemm_prepare(handle_, w, INT32_MAX));
  made.outputs = info.desc.rows == LPGEMM_ROWS_PAIRED ? info.desc.n / 2 : info.desc.n;
  made.columns = info.desc.x_k ? info.desc.x_k : info.desc.k;
  made.biases = info.desc.n;
  if (known_.size() >= MOST) known_.clear();
  return known_.emplace(text, std::move(made)).first->second;
}

// ---- the product ----

// A workspace is a tensor that is made for the call: in stream order torch gives its memory to the next one, and inside
// a CUDA graph it comes from the graph's own pool.
Tensor bind_workspace(device_handle &handle, described &d, const weights &w, const lpgemm_run_args_t &args,
                      const Tensor &beside) {
  int64_t rows = 1;
  while (rows < args.m) rows *= 2;
  const std::vector<int64_t> key = {rows, args.x_type, args.level, args.bias != nullptr, args.activation};
  auto found = d.workspace.find(key);
  if (found == d.workspace.end()) {
    size_t bytes = 0;
    check(lpgemm_workspace_size(handle, w, rows, &args, &bytes));
    found = d.workspace.emplace(key, bytes).first;
  }
  enum { ALIGN = 256 };
  const int64_t bytes = static_cast<int64_t>(found->second);
  if (bytes == 0) {
    check(lpgemm_set_workspace(handle, nullptr, 0));
    return beside;
  }
  const Tensor memory = torch::stable::new_empty(beside, {bytes + ALIGN}, ScalarType::Byte);
  const auto at = (reinterpret_cast<uintptr_t>(memory.mutable_data_ptr()) + ALIGN - 1) / ALIGN * ALIGN;
  check(lpgemm_set_workspace(handle, reinterpret_cast<void *>(at), found->second));
  return memory;
}

lpgemm_activation_t parse_activation(const std::string &text) {
  if (text == "none") return LPGEMM_ACTIVATION_NONE;
  if (text == "relu") return LPGEMM_ACTIVATION_RELU;
  if (text == "gelu") return LPGEMM_ACTIVATION_GELU_ERF;
  if (text == "gelu_tanh") return LPGEMM_ACTIVATION_GELU_TANH;
  if (text == "silu") return LPGEMM_ACTIVATION_SILU;
  refuse("activation is \"" + text + "\"; it must be none, relu, gelu, gelu_tanh or silu");
}

Tensor matmul(Tensor x, Tensor weight, std::string header, std::optional<Tensor> bias, bool fast,
              std::string activation) {
  check_beside("weight", weight, x);
  const lpgemm_dtype_t type = real_type_of("x", x);
  device_handle &handle = handle_for(x);
  described &d = handle.describe(header, weight);
  const rows in = rows_of("x", x);
  if (in.columns != d.columns) {
    refuse("x has " + std::to_string(in.columns) + " columns, and weight " + std::to_string(d.columns));
  }
  std::vector<int64_t> shape(x.sizes().begin(), x.sizes().end());
  shape.back() = d.outputs;
  Tensor y = torch::stable::new_empty(x, shape);
  auto args = sized<lpgemm_run_args_t>();
  const weights w(handle, d.header, weight);
  args.weights = w;
  args.m = in.m;
  args.x = in.kept.const_data_ptr();
  args.ldx = in.ld;
  args.y = y.mutable_data_ptr();
  args.x_type = args.y_type = type;
  args.level = fast ? LPGEMM_LEVEL_FAST : LPGEMM_LEVEL_EXACT;
  args.activation = parse_activation(activation);
  std::optional<Tensor> b;
  if (bias) {
    b = dense("bias", *bias, x);
    if (b->dim() != 1 || b->size(0) < d.biases) {
      refuse("bias must have one dimension of " + std::to_string(d.biases) + " numbers");
    }
    args.bias = b->const_data_ptr();
    args.bias_type = real_type_of("bias", *b);
  }
  if (in.m == 0 || d.outputs == 0) return y;
  const Tensor workspace = bind_workspace(handle, d, w, args, x);
  check(lpgemm_run(handle, &args));
  return y;
}

Tensor dequantize(Tensor weight, std::string header, ScalarType dtype) {
  device_handle &handle = handle_for(weight);
  const described &d = handle.describe(header, weight);
  const weights w(handle, d.header, weight);
  auto info = sized<lpgemm_weights_info_t>();
  check(lpgemm_weights_info(w, &info));
  Tensor out = torch::stable::new_empty(weight, {info.desc.n, d.columns}, dtype);
  check(lpgemm_unpack_weights(handle, w, real_type_of("the result", out), out.mutable_data_ptr(), 0));
  return out;
}

// ---- packing ----

Tensor room_for(const lpgemm_weight_desc_t &desc, const Tensor &beside) {
  size_t bytes = 0;
  check(lpgemm_packed_size(&desc, &bytes));
  return torch::stable::new_empty(beside, {static_cast<int64_t>(bytes)}, ScalarType::Byte);
}

Tensor pack(Tensor codes, std::string type, std::optional<Tensor> scales, std::optional<Tensor> zeros,
            std::optional<double> zero, int64_t group_k, bool paired) {
  if (codes.scalar_type() != ScalarType::Byte || codes.dim() != 2) {
    refuse("codes must be a matrix of uint8, one code a byte");
  }
  if (zeros && zero) refuse("zeros and zero are both given");
  device_handle &handle = handle_for(codes);
  const Tensor kept = torch::stable::contiguous(codes);
  auto desc = sized<lpgemm_weight_desc_t>();
  auto source = sized<lpgemm_weight_source_t>();
  desc.n = kept.size(0);
  desc.k = kept.size(1);
  desc.type = parse_type(type);
  desc.group_k = group_k;
  desc.rows = paired ? LPGEMM_ROWS_PAIRED : LPGEMM_ROWS_PLAIN;
  source.codes = kept.const_data_ptr();
  source.codes_bytes = bytes_of(kept);
  std::optional<Tensor> s, z;
  if (scales) {
    s = dense("scales", *scales, codes);
    desc.scale_type = type_of("scales", *s);
    source.scales = s->const_data_ptr();
    source.scales_bytes = bytes_of(*s);
  }
  if (zeros) {
    z = dense("zeros", *zeros, codes);
    desc.zero = LPGEMM_ZERO_PER_GROUP;
    desc.zero_type = type_of("zeros", *z);
    source.zeros = z->const_data_ptr();
    source.zeros_bytes = bytes_of(*z);
  }
  if (zero) {
    desc.zero = LPGEMM_ZERO_CONSTANT;
    desc.zero_constant = static_cast<float>(*zero);
  }
  Tensor packed = room_for(desc, codes);
  lpgemm_weights_t made = nullptr;
  check(lpgemm_pack_weights(handle, &desc, &source, packed.mutable_data_ptr(), bytes_of(packed), &made));
  check(lpgemm_weights_destroy(made));
  return packed;
}

lpgemm_quantize_method_t parse_method(const std::string &text) {
  if (text == "absmax") return LPGEMM_QUANTIZE_ABSMAX;
  if (text == "minmax") return LPGEMM_QUANTIZE_MINMAX;
  if (text == "mse") return LPGEMM_QUANTIZE_MSE;
  refuse("method is \"" + text + "\"; it must be absmax, minmax or mse");
}

Tensor quantize(Tensor w, std::string type, int64_t group_k, std::string scale_type, std::string method,
                std::optional<double> zero, std::optional<std::string> zero_type) {
  if (zero && zero_type) refuse("zero and zero_type are both given");
  device_handle &handle = handle_for(w);
  const rows in = rows_of("w", w);
  if (w.dim() != 2) refuse("w must be a matrix");
  auto desc = sized<lpgemm_weight_desc_t>();
  desc.n = in.m;
  desc.k = in.columns;
  desc.type = parse_type(type);
  desc.group_k = group_k;
  desc.scale_type = parse_type(scale_type);
  if (zero) {
    desc.zero = LPGEMM_ZERO_CONSTANT;
    desc.zero_constant = static_cast<float>(*zero);
  }
  if (zero_type) {
    desc.zero = LPGEMM_ZERO_PER_GROUP;
    desc.zero_type = parse_type(*zero_type);
  }
  Tensor packed = room_for(desc, w);
  lpgemm_weights_t made = nullptr;
  check(lpgemm_quantize_weights(handle, &desc, parse_method(method), in.kept.const_data_ptr(), real_type_of("w", w),
                                in.ld, packed.mutable_data_ptr(), bytes_of(packed), &made));
  check(lpgemm_weights_destroy(made));
  return packed;
}

}  // namespace

STABLE_TORCH_LIBRARY(lpgemm, m) {
  m.def(
      "matmul(Tensor x, Tensor weight, str header, Tensor? bias=None, bool fast=False, str activation='none') -> "
      "Tensor");
  m.def("dequantize(Tensor weight, str header, ScalarType dtype) -> Tensor");
  m.def(
      "pack(Tensor codes, str type, Tensor? scales=None, Tensor? zeros=None, float? zero=None, int group_k=0, "
      "bool paired=False) -> Tensor");
  m.def(
      "quantize(Tensor w, str type, int group_k=0, str scale_type='f16', str method='absmax', float? zero=None, "
      "str? zero_type=None) -> Tensor");
}

#define REGISTER(key)                             \
  STABLE_TORCH_LIBRARY_IMPL(lpgemm, key, m) {     \
    m.impl("matmul", TORCH_BOX(&matmul));         \
    m.impl("dequantize", TORCH_BOX(&dequantize)); \
    m.impl("pack", TORCH_BOX(&pack));             \
    m.impl("quantize", TORCH_BOX(&quantize));     \
  }
REGISTER(CPU)
REGISTER(CUDA)
