#pragma once

#include "core/run/run.h"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace kvscope {

/// A numpy array that views `data` and keeps `owner` alive; read-only where `Number` is const.
template <class Number>
nanobind::object viewOf(std::shared_ptr<const void> owner, Number* data, const std::vector<std::size_t>& shape) {
    auto held = std::make_unique<std::shared_ptr<const void>>(std::move(owner));
    const nanobind::capsule keeper(held.get(), [](void* p) noexcept {
        delete static_cast<std::shared_ptr<const void>*>(p); // NOLINT: the capsule owns it
    });
    held.release();
    return nanobind::cast(nanobind::ndarray<nanobind::numpy, Number>(data, shape.size(), shape.data(), keeper));
}

/// A layer's kept tokens for Python. Arrays view the result's memory and keep it alive; they are read-only.
class LayerSelection {
public:
    explicit LayerSelection(std::shared_ptr<const RunResult> result) : m_result(std::move(result)) {}

    const RunResult& result() const { return *m_result; }
    nanobind::list kept() const;                    ///< [KV heads] of int32 arrays, ascending
    nanobind::object weights(bool numerator) const; ///< [KV heads] of float32 arrays, or None where all are 1
    nanobind::object scores() const;                ///< [KV heads, tokens before the cut], or None
    nanobind::object queryHeadScores() const; ///< [query heads, tokens before the cut], or None where queryHeads() is
    nanobind::object mask() const;            ///< [KV heads, tokens before the cut] of bool
    nanobind::object queryHeads() const; ///< [query heads] of int32 arrays, or None where those of a group share a set
    std::vector<double> margins() const;
    double retention() const;
    std::string text() const; ///< of repr()

private:
    nanobind::object viewed(const HostTensor& table) const; ///< of the result; None where it is empty

    std::shared_ptr<const RunResult> m_result;
};

/// A tensor or a list of numbers moved into an array, without a copy.
nanobind::object arrayOf(HostTensor tensor);
nanobind::object arrayOf(std::vector<double> numbers);

} // namespace kvscope
