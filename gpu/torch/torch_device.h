#pragma once

#include "core/base/checkpoint.h"
#include "core/base/host_tensor.h"
#include "gpu/engine_module.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

namespace at {
class Tensor;
}

namespace kvscope::gpu {

/// The device of an engine's tensors: LibTorch's CPU or the first CUDA device. Loads LibTorch's CUDA library where
/// there is a driver for it. Throws Error when the device cannot be used.
class TorchDevice {
public:
    explicit TorchDevice(const EngineModuleRequest& request);

    bool isCuda() const { return m_cuda; }
    /// Whether hand-written kernels replace LibTorch's operations where a kernel exists.
    bool runsKernels() const { return m_runsKernels; }
    /// This thread's stream (cudaStream_t); null on the CPU.
    void* stream() const;
    const std::string& description() const { return m_description; }
    /// Memory budget for resident tensors; 0: no bound.
    std::size_t residentBytes() const { return m_residentBytes; }

    /// Uploads as float.
    at::Tensor upload(HostTensor numbers) const;
    /// What is stored in 16 bits is uploaded as 16 bits, unless LibTorch computes on the CPU.
    at::Tensor uploadAsStored(HostTensor numbers) const;
    /// A list of the host as a one-dimensional device tensor.
    at::Tensor listOf(std::span<const double> numbers) const;
    at::Tensor listOf(std::span<const std::int64_t> numbers) const;
    at::Tensor listOf(std::span<const std::int32_t> numbers) const; ///< as 64-bit integers

    /// Bytes for one batch of intermediate results.
    std::int64_t batchBytes() const { return m_batchBytes; }
    bool shrink() const;
    /// Gives a thread that has none a stream of its own, so that it waits for no other thread's work.
    void enterThread() const;

    /// Whether the work enqueued so far has ended.
    bool isIdle() const;
    /// Waits for the work enqueued so far, so that a stop acts soon and the reported progress is real.
    void finish() const;

private:
    void openCuda(const std::string& gpu);
    at::Tensor toDevice(const at::Tensor& onHost) const;

    bool m_cuda = false, m_runsKernels = false;
    std::string m_description;
    std::size_t m_residentBytes = 0;
    mutable std::atomic<std::int64_t> m_batchBytes;
};

/// What a failure of LibTorch or of a kernel means.
DeviceFailure classified(const std::exception& failure);

/// True in tests, where an emulated device in host memory runs the kernels. Tests link their own definition.
bool kernelsRunOnTheCpu();

/// Progress of one primitive, with a checkpoint between batches.
class Steps {
public:
    Steps(const TorchDevice& device, const Checkpoint& checkpoint, double total)
        : m_device(device), m_checkpoint(checkpoint), m_total(total) {
        m_checkpoint.at(0, m_total);
    }

    /// Cuts `count` items of `bytesEach` into batches that fit into batchBytes and calls work(begin, count of the
    /// batch).
    template <class Work> void batches(std::int64_t count, double bytesEach, double unitsEach, const Work& work) {
        const double most = static_cast<double>(m_device.batchBytes()) / (bytesEach + 1);
        slices(count, static_cast<std::int64_t>(most), unitsEach, work);
    }

    /// Cuts `count` items into slices of `most`, where memory does not bound the time.
    template <class Work> void slices(std::int64_t count, std::int64_t most, double unitsEach, const Work& work) {
        for (std::int64_t begin = 0; begin < count;) {
            const std::int64_t size = std::min(count - begin, std::max<std::int64_t>(1, most));
            work(begin, size);
            begin += size;
            advance(unitsEach * static_cast<double>(size));
        }
    }

    void advance(double units) {
        m_device.finish();
        m_done += units;
        m_checkpoint.at(std::min(m_done, m_total), m_total);
    }

private:
    const TorchDevice& m_device;
    const Checkpoint& m_checkpoint;
    double m_total, m_done = 0;
};

} // namespace kvscope::gpu
