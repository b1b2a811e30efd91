// Conversion between host numbers and LibTorch's tensors.
#include "gpu/torch/torch_tensor.h"

#include <ATen/core/Tensor.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <cassert>

namespace kvscope::gpu {

namespace {

struct TorchStorage : TensorStorage {
    at::Tensor numbers;
};

const TorchStorage& storageOf(const Tensor& tensor) {
    assert(!tensor.empty());
    return static_cast<const TorchStorage&>(*tensor.storage());
}

Shape shapeOf(const at::Tensor& numbers) {
    switch (numbers.dim()) {
    case 1: return {numbers.size(0)};
    case 2: return {numbers.size(0), numbers.size(1)};
    default: assert(numbers.dim() == 3); return {numbers.size(0), numbers.size(1), numbers.size(2)};
    }
}

template <class Number> std::vector<Number> listOf(const at::Tensor& numbers, at::ScalarType type) {
    const at::Tensor here = numbers.to(at::kCPU, type).contiguous();
    const Number* first = here.const_data_ptr<Number>();
    return {first, first + here.numel()};
}

} // namespace

at::Tensor storedNumbersOf(const Tensor& tensor) {
    at::Tensor numbers = storageOf(tensor).numbers;
    if (numbers.is_cuda()) { // another thread may evict it: its memory stays until this thread's stream has read it
        const c10::impl::VirtualGuardImpl guard(at::kCUDA);
        guard.recordDataPtrOnStream(numbers.storage().data_ptr(), guard.getStream(numbers.device()));
    }
    return numbers;
}

at::Tensor numbersOf(const Tensor& tensor) { return storedNumbersOf(tensor).to(at::kFloat); }

Tensor storedTensorOf(const at::Tensor& numbers) {
    auto storage = std::make_shared<TorchStorage>();
    storage->numbers = numbers;
    return {shapeOf(numbers), std::move(storage)};
}

HostTensor hostTensorOf(const at::Tensor& numbers) { return {shapeOf(numbers), listOf<float>(numbers, at::kFloat)}; }

std::vector<double> doublesOf(const at::Tensor& numbers) { return listOf<double>(numbers, at::kDouble); }

} // namespace kvscope::gpu
