// The differences between LibTorch's CPU and a CUDA device: opening, memory, synchronising, and the meaning of
// failures. All other code of this engine runs on both.
#include "gpu/torch/torch_device.h"

#include "core/base/error.h"
#include "gpu/kernels/device_error.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include <dlfcn.h>

#include <algorithm>
#include <thread>
#include <utility>
#include <vector>

namespace kvscope::gpu {

namespace {

constexpr std::int64_t kCpuBatchBytes = std::int64_t{32} << 20; // keeps intermediate results in the caches
constexpr std::int64_t kCudaBatchBytes = std::int64_t{1} << 30;
constexpr std::int64_t kSmallestBatchBytes = std::int64_t{4} << 20;
constexpr double kResidentShare = 0.6; // of the free memory; the rest is for intermediate results

std::string gibibytes(std::size_t bytes) { return std::to_string((bytes + (std::size_t{1} << 29)) >> 30) + " GiB"; }

/// Opens LibTorch's CUDA library once, whose static initialisers register CUDA. That must happen before the first
/// operation of any engine: one that asks for CUDA and does not find it switches CUDA off for the rest of the process.
/// Returns what went wrong; empty: nothing.
const std::string& loadCudaLibrary() {
    static const std::string failure =
        dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_LOCAL) ? std::string() : std::string(dlerror());
    return failure;
}

[[noreturn]] void refuse(const std::string& sentence, const std::string& remedy) {
    throw Error({sentence, "engine cuda", remedy});
}

at::Device deviceOf(bool cuda) { return cuda ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU); }

template <class Number> at::Tensor copied(std::span<const Number> numbers, at::ScalarType type, bool cuda) {
    // The buffer is only read: the result is the copy below.
    auto* data = const_cast<Number*>(numbers.data());
    return at::from_blob(data, {static_cast<std::int64_t>(numbers.size())}, type)
        .to(deviceOf(cuda), at::kLong == type || at::kInt == type ? at::kLong : at::kDouble, false, true);
}

std::vector<std::int64_t> sizesOf(const Shape& shape) {
    std::vector<std::int64_t> sizes;
    for (int axis = 0; axis < shape.rank(); ++axis) sizes.push_back(shape[axis]);
    return sizes;
}

/// Wraps the numbers without a copy; they live as long as the tensor.
at::Tensor cpuTensorOf(HostTensor numbers) {
    const std::vector<std::int64_t> sizes = sizesOf(numbers.shape);
    auto* owner = new std::vector<float>(std::move(numbers.data));
    return at::from_blob(
        owner->data(), sizes, [owner](void*) { delete owner; }, at::TensorOptions(at::kFloat));
}

/// The tensor in pinned host memory, from which the GPU copies directly; the tensor itself where none is available.
at::Tensor pinned(const at::Tensor& onHost) {
    try {
        return onHost.pin_memory();
    } catch (const c10::Error&) {
        return onHost;
    }
}

} // namespace

[[gnu::weak]] bool kernelsRunOnTheCpu() { return false; }

TorchDevice::TorchDevice(const EngineModuleRequest& request)
    : m_cuda(request.device == "cuda"), m_batchBytes(m_cuda ? kCudaBatchBytes : kCpuBatchBytes) {
    if (request.hasDriver || m_cuda) loadCudaLibrary();
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const int threads = request.threads > 0 ? request.threads : cores;
    at::set_num_threads(threads);
    m_description = "LibTorch on the CPU, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    if (m_cuda) openCuda(request.gpu);
    m_runsKernels = KVSCOPE_HAS_KERNELS && (m_cuda || kernelsRunOnTheCpu());
    if (m_runsKernels && !m_cuda) m_description += ", emulated kernels";
}

void TorchDevice::openCuda(const std::string& gpu) {
    if (!loadCudaLibrary().empty())
        refuse("LibTorch's CUDA libraries cannot be loaded (" + loadCudaLibrary() + ")",
               "Run resources/dev/libtorch.sh fetch-gpu, or use --engine cpu");
    try {
        if (!at::globalContext().hasCUDA() ||
            at::globalContext().getAcceleratorHooksInterface(at::kCUDA).deviceCount() < 1)
            refuse("no NVIDIA GPU can be used by LibTorch",
                   "nvidia-smi says what the driver sees; or use --engine cpu");
        at::globalContext().lazyInitDevice(at::kCUDA);
        const auto [free, total] = c10::getDeviceAllocator(at::kCUDA)->getMemoryInfo(0);
        m_residentBytes = static_cast<std::size_t>(kResidentShare * static_cast<double>(free));
        m_batchBytes = std::min(kCudaBatchBytes, static_cast<std::int64_t>(free / 8));
        m_description = gpu + " (" + gibibytes(total) + ")";
    } catch (const c10::Error& error) {
        refuse(std::string("the NVIDIA GPU cannot be used (") + error.what_without_backtrace() + ")",
               "nvidia-smi says what the driver sees; or use --engine cpu");
    }
}

at::Tensor TorchDevice::toDevice(const at::Tensor& onHost) const {
    if (!m_cuda) return onHost;
    // A blocking copy: a pinned buffer of an asynchronous copy would be freed through a call that throws inside a
    // destructor when the device is lost meanwhile.
    return pinned(onHost).to(deviceOf(true), /*non_blocking=*/false);
}

at::Tensor TorchDevice::upload(HostTensor numbers) const { return toDevice(cpuTensorOf(std::move(numbers))); }

at::Tensor TorchDevice::uploadAsStored(HostTensor numbers) const {
    const StoredType type = m_cuda || m_runsKernels ? numbers.stored : StoredType::Float32;
    const at::Tensor onHost = cpuTensorOf(std::move(numbers));
    if (type == StoredType::Float32) return toDevice(onHost);
    return toDevice(onHost.to(type == StoredType::Bfloat16 ? at::kBFloat16 : at::kHalf));
}

at::Tensor TorchDevice::listOf(std::span<const double> numbers) const { return copied(numbers, at::kDouble, m_cuda); }

at::Tensor TorchDevice::listOf(std::span<const std::int64_t> numbers) const {
    return copied(numbers, at::kLong, m_cuda);
}

at::Tensor TorchDevice::listOf(std::span<const std::int32_t> numbers) const {
    return copied(numbers, at::kInt, m_cuda);
}

bool TorchDevice::shrink() const {
    if (m_batchBytes <= kSmallestBatchBytes) return false;
    m_batchBytes = std::max(kSmallestBatchBytes, m_batchBytes / 2);
    if (m_cuda) c10::getDeviceAllocator(at::kCUDA)->emptyCache();
    return true;
}

DeviceFailure classified(const std::exception& failure) {
    using Cause = DeviceError::Cause;
    const auto causeOf = [&] {
        if (const auto* kernel = dynamic_cast<const DeviceError*>(&failure)) return kernel->cause();
        if (const auto* coded = dynamic_cast<const c10::AcceleratorError*>(&failure))
            return causeOfCode(coded->get_error_code());
        if (dynamic_cast<const c10::OutOfMemoryError*>(&failure)) return Cause::OutOfMemory;
        if (dynamic_cast<const c10::LinAlgError*>(&failure)) return Cause::Other; // e.g. no convergence
        const auto* error = dynamic_cast<const c10::Error*>(&failure);
        return error ? causeOfText(error->what_without_backtrace()) : Cause::Ours;
    };
    switch (causeOf()) {
    case Cause::OutOfMemory: return DeviceFailure::OutOfMemory;
    case Cause::NoDevice:
    case Cause::Lost: // sticky: every later call on the device fails until the process ends
        return DeviceFailure::Lost;
    case Cause::Other: return DeviceFailure::Refused;
    case Cause::Ours: break;
    }
    return DeviceFailure::Ours;
}

void TorchDevice::enterThread() const {
    thread_local bool hasStream = false;
    if (!m_cuda || std::exchange(hasStream, true)) return;
    const c10::impl::VirtualGuardImpl guard(at::kCUDA);
    guard.exchangeStream(guard.getStreamFromGlobalPool(deviceOf(true)));
}

void* TorchDevice::stream() const {
    if (!m_cuda) return nullptr;
    const c10::impl::VirtualGuardImpl guard(at::kCUDA);
    return guard.getStream(deviceOf(true)).native_handle();
}

bool TorchDevice::isIdle() const {
    if (!m_cuda) return true;
    const c10::impl::VirtualGuardImpl guard(at::kCUDA);
    return guard.queryStream(guard.getStream(deviceOf(true)));
}

void TorchDevice::finish() const {
    if (!m_cuda) return;
    const c10::impl::VirtualGuardImpl guard(at::kCUDA);
    guard.synchronizeStream(guard.getStream(deviceOf(true)));
}

} // namespace kvscope::gpu
