// c10::cuda and at::cuda as kernels' launchers use them. Needs the CUDA runtime's header.
#pragma once

#include <cuda_runtime_api.h>
#include <tilewright/cuda.h>
#include <tilewright/tensor.h>

namespace c10::cuda {

class CUDAStream {
  cudaStream_t stream_;

 public:
  explicit CUDAStream(cudaStream_t stream) : stream_(stream) {}
  cudaStream_t stream() const { return stream_; }
  operator cudaStream_t() const { return stream_; }
};
inline CUDAStream getCurrentCUDAStream(DeviceIndex device = -1) {
  return CUDAStream(static_cast<cudaStream_t>(tilewright::current_stream(device)));
}
inline DeviceIndex current_device() {
  int device = 0;
  cudaGetDevice(&device);
  return static_cast<DeviceIndex>(device);
}
inline void check(cudaError_t status) {
  if (status != cudaSuccess) tilewright::fail(tilewright::str("CUDA error: ", cudaGetErrorString(status)));
}

class CUDAGuard {
  void* guard_;

 public:
  explicit CUDAGuard(DeviceIndex index) : guard_(tilewright::enter_device(index)) {}
  explicit CUDAGuard(Device device) : CUDAGuard(device.index()) {}
  CUDAGuard(const CUDAGuard&) = delete;
  CUDAGuard& operator=(const CUDAGuard&) = delete;
  ~CUDAGuard() { tilewright::leave_device(guard_); }
};
class OptionalCUDAGuard {
  void* guard_ = nullptr;

 public:
  OptionalCUDAGuard() = default;
  explicit OptionalCUDAGuard(Device device) { if (device.is_cuda()) guard_ = tilewright::enter_device(device.index()); }
  explicit OptionalCUDAGuard(std::optional<Device> device) {
    if (device && device->is_cuda()) guard_ = tilewright::enter_device(device->index());
  }
  OptionalCUDAGuard(const OptionalCUDAGuard&) = delete;
  OptionalCUDAGuard& operator=(const OptionalCUDAGuard&) = delete;
  ~OptionalCUDAGuard() { if (guard_) tilewright::leave_device(guard_); }
};

}  // namespace c10::cuda

namespace c10 {
using DeviceGuard = cuda::OptionalCUDAGuard;
}

namespace at {
using c10::DeviceGuard;
inline std::optional<Device> device_of(const Tensor& t) {
  return t.defined() ? std::optional<Device>(t.device()) : std::nullopt;
}
namespace cuda {
using c10::cuda::CUDAGuard;
using c10::cuda::CUDAStream;
using c10::cuda::OptionalCUDAGuard;
using c10::cuda::current_device;
using c10::cuda::getCurrentCUDAStream;
inline const cudaDeviceProp* getDeviceProperties(int64_t device) {
  static cudaDeviceProp all[64];
  static bool is_known[64];
  if (!is_known[device]) {
    c10::cuda::check(cudaGetDeviceProperties(&all[device], static_cast<int>(device)));
    is_known[device] = true;
  }
  return &all[device];
}
inline const cudaDeviceProp* getCurrentDeviceProperties() { return getDeviceProperties(current_device()); }
template <class T>
T ceil_div(T a, T b) { return (a + b - 1) / b; }
template <class T>
T ATenCeilDiv(T a, T b) { return (a + b - 1) / b; }
}  // namespace cuda
}  // namespace at

#define C10_CUDA_CHECK(EXPR) ::c10::cuda::check(EXPR)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() ::c10::cuda::check(cudaGetLastError())
#define AT_CUDA_CHECK(EXPR) ::c10::cuda::check(EXPR)
#define C10_CUDA_ERROR_HANDLED(EXPR) (EXPR)
