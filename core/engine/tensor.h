#pragma once

#include "core/base/host_tensor.h"

#include <memory>
#include <utility>

namespace kvscope {

/// Storage of an engine's numbers. Only the engine that made it looks inside.
struct TensorStorage {
    virtual ~TensorStorage() = default;
    /// Whether the numbers stay in their file and are read when they are needed.
    virtual bool isOnDemand() const { return false; }
};

/// An immutable block of float numbers in the memory of its engine. Copies share the numbers.
class Tensor {
public:
    Tensor() = default;
    Tensor(Shape shape, std::shared_ptr<const TensorStorage> storage) : m_shape(shape), m_storage(std::move(storage)) {}

    const Shape& shape() const { return m_shape; }
    std::int64_t size(int axis) const { return m_shape[axis]; }
    bool empty() const { return m_storage == nullptr; }
    const std::shared_ptr<const TensorStorage>& storage() const { return m_storage; }

private:
    Shape m_shape;
    std::shared_ptr<const TensorStorage> m_storage;
};

} // namespace kvscope
