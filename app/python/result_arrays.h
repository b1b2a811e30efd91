#pragma once

#include "core/run/run.h"

#include <pybind11/pybind11.h>

#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// Numbers of the program under Python's buffer protocol: numpy views them without a copy and keeps their owner alive.
/// numpy's own structures are not touched, because they differ between its versions 1 and 2.
struct ArrayMemory {
    std::shared_ptr<const void> owner;
    const void* data = nullptr;
    pybind11::ssize_t itemBytes = 4;
    std::string format = "f"; ///< of Python's struct: f float32, d float64, i int32, ? bool
    std::vector<pybind11::ssize_t> shape;
    bool readOnly = true;

    pybind11::object array() const; ///< the numpy array
};

void addArrayMemory(pybind11::module_& module);

/// A layer's kept tokens for Python. Arrays view the result's memory and keep it alive; they are read-only.
class LayerSelection {
public:
    explicit LayerSelection(std::shared_ptr<const RunResult> result) : m_result(std::move(result)) {}

    const RunResult& result() const { return *m_result; }
    pybind11::list kept() const;                    ///< [KV heads] of int32 arrays, rising
    pybind11::object weights(bool numerator) const; ///< [KV heads] of float32 arrays, or None where all are 1
    pybind11::object scores() const;                ///< [KV heads, tokens before the cut], or None
    pybind11::object queryHeadScores() const; ///< [query heads, tokens before the cut], or None where queryHeads() is
    pybind11::object mask() const;            ///< [KV heads, tokens before the cut] of bool
    pybind11::object queryHeads() const; ///< [query heads] of int32 arrays, or None where those of a group share a set
    pybind11::list margins() const;
    double retention() const;
    std::string text() const; ///< of repr()

private:
    pybind11::object viewed(const HostTensor& table) const; ///< of the result; None where it is empty

    std::shared_ptr<const RunResult> m_result;
};

/// A tensor or a list of numbers moved into an array, without a copy.
pybind11::object arrayOf(HostTensor tensor);
pybind11::object arrayOf(std::vector<double> numbers);

} // namespace kvscope
