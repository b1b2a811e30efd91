#pragma once

#include "core/base/checkpoint.h"
#include "core/base/host_tensor.h"
#include "gpu/engine_module.h"
#include "gpu/primitives/slices.h"

#include <atomic>
#include <cstdint>
#include <exception>
#include <span>
#include <string>

namespace at {
class Tensor;
}

namespace kvscope::gpu {

/// The device that all tensors of an engine lie on: LibTorch's CPU or the first CUDA device. Opens LibTorch's CUDA part
/// when it is wanted. Throws Error when the device cannot be used.
class TorchDevice {
public:
    explicit TorchDevice(const EngineModuleRequest& request);

    bool isCuda() const { return m_cuda; }
    /// Hand-written kernels take the place of LibTorch's operations where there is one.
    bool runsKernels() const { return m_runsKernels; }
    /// How exact kernels add up products of 16-bit rows where the rows leave the choice.
    ExactSums exactSums() const { return m_exactSums; }
    /// LibTorch's current stream (cudaStream_t); null on the CPU.
    void* stream() const;
    const std::string& description() const { return m_description; }
    /// What resident tensors should take; 0: no bound.
    std::size_t residentBytes() const { return m_residentBytes; }

    /// In floats.
    at::Tensor upload(HostTensor numbers) const;
    /// Rows [H, n, d] that 16 bits hold exactly are stored so where kernels read them; all else is floats.
    at::Tensor uploadExact(HostTensor numbers) const;
    /// As uploadExact, on a stream of its own beside what the current stream computes; complete when it returns.
    at::Tensor uploadOnCopyStream(HostTensor numbers) const;
    /// Lists of the host on the device, one axis.
    at::Tensor listOf(std::span<const double> numbers) const;
    at::Tensor listOf(std::span<const std::int64_t> numbers) const;
    at::Tensor listOf(std::span<const std::int32_t> numbers) const; ///< as 64-bit integers

    /// Memory for one batch of intermediate results.
    std::int64_t batchBytes() const { return m_batchBytes; }
    bool shrink() const;
    DeviceFailure classify(const std::exception& failure) const;

    /// Waits until the work enqueued so far is done, so that a stop acts soon and progress is true.
    void finish() const;

private:
    void openCuda();
    at::Tensor exactOnHost(HostTensor numbers) const;
    at::Tensor toDevice(const at::Tensor& onHost) const;

    bool m_cuda = false, m_runsKernels = false;
    ExactSums m_exactSums = ExactSums::Double;
    std::string m_description;
    std::size_t m_residentBytes = 0;
    mutable std::atomic<std::int64_t> m_batchBytes;
};

/// True in tests, where the kernels are run by an emulated device in host memory. Replaced when the library is linked.
bool kernelsRunOnTheCpu();

/// Progress of one primitive and its stop point between batches.
class Steps {
public:
    Steps(const TorchDevice& device, const Checkpoint& checkpoint, double total)
        : m_device(device), m_checkpoint(checkpoint), m_total(total) {
        m_checkpoint.at(0, m_total);
    }

    /// Cuts `count` items that take `bytesEach` of memory into batches and calls work(begin, count of the batch).
    template <class Work> void batches(std::int64_t count, double bytesEach, double unitsEach, const Work& work) {
        const auto most = static_cast<std::int64_t>(static_cast<double>(m_device.batchBytes()) / (bytesEach + 1));
        for (std::int64_t begin = 0; begin < count;) {
            const std::int64_t size = std::min(count - begin, std::max<std::int64_t>(1, most));
            work(begin, size);
            begin += size;
            advance(unitsEach * static_cast<double>(size));
        }
    }

    /// Cuts `count` items whose time their memory does not tell into slices of some tens of milliseconds, the first of
    /// `first` items. The clock decides: results must not depend on the cut.
    template <class Work> void slices(std::int64_t count, std::int64_t first, double unitsEach, const Work& work) {
        SliceLength length(first);
        for (std::int64_t begin = 0; begin < count;) {
            const std::int64_t size = std::min(count - begin, length.pieces());
            length.timed([&] {
                work(begin, size);
                m_device.finish();
            });
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
