// Results as numpy arrays. An array that views memory of the program holds a reference to what owns it.
#include "app/python/result_arrays.h"

#include "core/run/head_means.h"

#include <fmt/format.h>

#include <cstdint>

namespace py = pybind11;

namespace kvscope {

namespace {

std::vector<py::ssize_t> axes(const Shape& shape) {
    std::vector<py::ssize_t> sizes;
    for (int axis = 0; axis < shape.rank(); ++axis) sizes.push_back(shape[axis]);
    return sizes;
}

py::ssize_t sizeOf(const auto& list) { return static_cast<py::ssize_t>(list.size()); }

} // namespace

py::object ArrayMemory::array() const { return py::module_::import("numpy").attr("asarray")(py::cast(*this)); }

void addArrayMemory(py::module_& module) {
    py::class_<ArrayMemory>(module, "_Memory", py::buffer_protocol()).def_buffer([](ArrayMemory& m) {
        std::vector<py::ssize_t> strides(m.shape.size(), m.itemBytes);
        for (std::size_t axis = m.shape.size(); axis-- > 1;) strides[axis - 1] = strides[axis] * m.shape[axis];
        return py::buffer_info(const_cast<void*>(m.data), m.itemBytes, m.format, sizeOf(m.shape), m.shape, strides,
                               m.readOnly);
    });
}

py::object arrayOf(HostTensor tensor) {
    const auto held = std::make_shared<HostTensor>(std::move(tensor));
    return ArrayMemory{held, held->data.data(), 4, "f", axes(held->shape), false}.array();
}

py::object arrayOf(std::vector<double> numbers) {
    const auto held = std::make_shared<std::vector<double>>(std::move(numbers));
    return ArrayMemory{held, held->data(), 8, "d", {sizeOf(*held)}, false}.array();
}

py::list LayerSelection::kept() const {
    py::list heads;
    for (const HeadSelection& head : m_result->selection.heads)
        heads.append(ArrayMemory{m_result, head.kept.data(), 4, "i", {sizeOf(head.kept)}}.array());
    return heads;
}

py::object LayerSelection::weights(bool numerator) const {
    py::list heads;
    bool any = false;
    for (const HeadSelection& head : m_result->selection.heads) {
        const std::vector<float>& weights = numerator ? head.numeratorWeights : head.denominatorWeights;
        any = any || !weights.empty();
        if (weights.empty()) {
            const auto ones = std::make_shared<std::vector<float>>(head.kept.size(), 1.0f);
            heads.append(ArrayMemory{ones, ones->data(), 4, "f", {sizeOf(*ones)}}.array());
        } else {
            heads.append(ArrayMemory{m_result, weights.data(), 4, "f", {sizeOf(weights)}}.array());
        }
    }
    return any ? py::object(heads) : py::none();
}

py::object LayerSelection::scores() const { return viewed(m_result->scores); }

py::object LayerSelection::queryHeadScores() const { return viewed(m_result->queryHeadScores); }

py::object LayerSelection::viewed(const HostTensor& table) const {
    if (table.empty()) return py::none();
    return ArrayMemory{m_result, table.data.data(), 4, "f", axes(table.shape)}.array();
}

py::object LayerSelection::mask() const {
    const auto& heads = m_result->selection.heads;
    const auto mask =
        std::make_shared<std::vector<std::uint8_t>>(heads.size() * static_cast<std::size_t>(m_result->visible), 0);
    for (std::size_t head = 0; head < heads.size(); ++head)
        for (const TokenIndex token : heads[head].kept)
            (*mask)[head * static_cast<std::size_t>(m_result->visible) + static_cast<std::size_t>(token)] = 1;
    return ArrayMemory{mask, mask->data(), 1, "?", {sizeOf(heads), m_result->visible}, false}.array();
}

py::object LayerSelection::queryHeads() const {
    if (!m_result->selection.perQueryHead()) return py::none();
    py::list sets;
    const std::vector<std::int32_t>& gqaGroupOf =
        m_result->request.capture->info().layerInfo(m_result->request.layer).gqaGroupOf;
    for (std::size_t head = 0; head < gqaGroupOf.size(); ++head) {
        const auto& kept = m_result->selection.heads[static_cast<std::size_t>(gqaGroupOf[head])].attendedBy(
            static_cast<std::int32_t>(head));
        sets.append(ArrayMemory{m_result, kept.data(), 4, "i", {sizeOf(kept)}}.array());
    }
    return sets;
}

py::list LayerSelection::margins() const {
    py::list margins;
    for (const HeadSelection& head : m_result->selection.heads) margins.append(static_cast<double>(head.margin));
    return margins;
}

double LayerSelection::retention() const { return keptShareOf(*m_result); }

std::string LayerSelection::text() const {
    return fmt::format("<kvscope.Selection {} layer {}: {:.1f} % of {} tokens kept in {} KV heads>",
                       m_result->request.policy.text(), m_result->request.layer.value, 100 * retention(),
                       m_result->visible, m_result->selection.heads.size());
}

} // namespace kvscope
