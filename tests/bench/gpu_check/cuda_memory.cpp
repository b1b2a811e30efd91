// The CUDA calls of the checker: memory, and time taken by events around a graph launch, so that what the host does in
// between is not measured.
#include "tests/bench/gpu_check/cuda_memory.h"

#include "gpu/kernels/device_error.h"
#include "tests/bench/gpu_check/rate_kernels.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <vector>

namespace kvscope::check {

namespace {

constexpr std::size_t kCopyBytes = std::size_t{1} << 30;
constexpr std::size_t kFlushBytes = std::size_t{512} << 20; ///< more than any second-level cache
constexpr int kRuns = 15;

void check(cudaError_t error, const char* during) {
    if (error != cudaSuccess) throw gpu::DeviceError(static_cast<int>(error), cudaGetErrorString(error), during);
}

class CudaMemory final : public gpu::DeviceMemory {
public:
    CudaMemory() { check(cudaStreamCreate(&m_stream), "creating a stream"); }
    ~CudaMemory() override { cudaStreamDestroy(m_stream); }
    CudaMemory(const CudaMemory&) = delete;
    CudaMemory& operator=(const CudaMemory&) = delete;

    std::shared_ptr<void> allocate(std::size_t bytes) const override {
        void* memory = nullptr;
        check(cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)), "allocating memory");
        std::shared_ptr<void> owner(memory, [](void* p) { cudaFree(p); });
        check(cudaMemsetAsync(memory, 0xff, bytes, m_stream), "poisoning memory"); // NaN: nothing may rely on zeros
        return owner;
    }
    void copyIn(void* to, const void* from, std::size_t bytes) const override {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, m_stream), "copying to the device");
        finish(); // the caller may free its memory at once
    }
    void copyOut(void* to, const void* from, std::size_t bytes) const override {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, m_stream), "copying from the device");
        finish();
    }
    std::shared_ptr<void> allocateShared(std::size_t bytes) const override {
        void* data = nullptr;
        check(cudaHostAlloc(&data, std::max<std::size_t>(bytes, 1), cudaHostAllocDefault), "allocating host memory");
        return {data, [](void* memory) { cudaFreeHost(memory); }};
    }
    bool isIdle() const override {
        const cudaError_t state = cudaStreamQuery(m_stream);
        if (state == cudaErrorNotReady)
            cudaGetLastError(); // no failure, but kept as one: the next launch would report it
        else
            check(state, "asking the device");
        return state == cudaSuccess;
    }
    void finish() const override { check(cudaStreamSynchronize(m_stream), "waiting for the device"); }
    gpu::Stream stream() const override { return m_stream; }

private:
    cudaStream_t m_stream = nullptr;
};

/// What `work` enqueues on a stream, ready to be launched again.
class Graph {
public:
    Graph(const std::function<void(gpu::Stream)>& work, cudaStream_t stream) {
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing launches");
        work(stream);
        check(cudaStreamEndCapture(stream, &m_graph), "capturing launches");
        check(cudaGraphInstantiate(&m_exec, m_graph, 0), "making a graph");
    }
    ~Graph() {
        cudaGraphExecDestroy(m_exec);
        cudaGraphDestroy(m_graph);
    }
    Graph(const Graph&) = delete;
    Graph& operator=(const Graph&) = delete;

    void launch(cudaStream_t stream) const { check(cudaGraphLaunch(m_exec, stream), "launching a graph"); }

private:
    cudaGraph_t m_graph = nullptr;
    cudaGraphExec_t m_exec = nullptr;
};

/// Median milliseconds between two events around `launch`, after `before`.
double medianMilliseconds(cudaStream_t stream, const std::function<void()>& before,
                          const std::function<void()>& launch) {
    cudaEvent_t start = nullptr, end = nullptr;
    check(cudaEventCreate(&start), "timing");
    check(cudaEventCreate(&end), "timing");
    std::vector<float> times;
    for (int run = 0; run < kRuns + 2; ++run) {
        before();
        check(cudaEventRecord(start, stream), "timing");
        launch();
        check(cudaEventRecord(end, stream), "timing");
        check(cudaEventSynchronize(end), "timing");
        float milliseconds = 0;
        check(cudaEventElapsedTime(&milliseconds, start, end), "timing");
        if (run >= 2) // the first two warm up
            times.push_back(milliseconds);
    }
    cudaEventDestroy(start);
    cudaEventDestroy(end);
    std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
    return double{times[kRuns / 2]};
}

} // namespace

std::optional<std::string> missingDevice() {
    int count = 0;
    const cudaError_t error = cudaGetDeviceCount(&count);
    if (error == cudaSuccess && count > 0) return {};
    cudaGetLastError(); // the failure has been heard of
    return error == cudaSuccess ? std::string("the driver sees none") : std::string(cudaGetErrorString(error));
}

std::string describeDevice() {
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0), "asking for the device");
    return std::string(properties.name) + ", " + std::to_string(properties.totalGlobalMem >> 20) +
           " MiB, compute capability " + std::to_string(properties.major) + "." + std::to_string(properties.minor);
}

std::shared_ptr<const gpu::DeviceMemory> makeCudaMemory() { return std::make_shared<CudaMemory>(); }

double secondsOf(const std::function<void(gpu::Stream)>& work) {
    const CudaMemory memory;
    cudaStream_t stream = memory.stream();
    const auto flush = memory.allocate(kFlushBytes);
    work(stream); // loads the kernels, which a recorded stream must not do
    memory.finish();
    const Graph graph(work, stream);
    return medianMilliseconds(
               stream, [&] { readBytes(flush.get(), kFlushBytes, stream); }, [&] { graph.launch(stream); }) /
           1e3;
}

DeviceRates measureRates() {
    const CudaMemory memory;
    const auto from = memory.allocate(kCopyBytes), to = memory.allocate(kCopyBytes);
    const auto secondsFor = [&](const std::function<void()>& launch) {
        return medianMilliseconds(
                   memory.stream(), [] {}, launch) /
               1e3;
    };
    const double copying = secondsFor([&] {
        check(cudaMemcpyAsync(to.get(), from.get(), kCopyBytes, cudaMemcpyDeviceToDevice, memory.stream()),
              "copying inside the device");
    });
    int processors = 0;
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0), "asking for the device");
    const double tensor = secondsFor([&] { multiplyMatrices(processors, to.get(), memory.stream()); });
    const double doubles = secondsFor([&] { multiplyDoubles(processors, to.get(), memory.stream()); });
    const double floats = secondsFor([&] { multiplyFloats(processors, to.get(), memory.stream()); });
    return {2.0 * static_cast<double>(kCopyBytes) / copying, matrixOperations(processors) / tensor,
            scalarOperations(processors) / doubles, scalarOperations(processors) / floats};
}

} // namespace kvscope::check
