#pragma once

#include "core/run/run.h"

#include <pybind11/numpy.h>

#include <memory>

namespace kvscope {

/// A layer's kept tokens for Python. Arrays view the result's memory and keep it alive; they are read-only.
class LayerSelection {
public:
    explicit LayerSelection(std::shared_ptr<const RunResult> result) : m_result(std::move(result)) {}

    const RunResult& result() const { return *m_result; }
    pybind11::list kept() const;                    ///< [KV heads] of int32 arrays, rising
    pybind11::object weights(bool numerator) const; ///< [KV heads] of float32 arrays, or None where all are 1
    pybind11::object scores() const;                ///< [KV heads, tokens before the cut], or None
    pybind11::array mask() const;                   ///< [KV heads, tokens before the cut] of bool
    pybind11::list margins() const;
    double retention() const;
    std::string text() const; ///< of repr()

private:
    std::shared_ptr<const RunResult> m_result;
};

/// A tensor moved into an array of its shape, without a copy.
pybind11::array arrayOf(HostTensor tensor);

} // namespace kvscope
