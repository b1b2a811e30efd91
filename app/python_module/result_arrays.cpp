// Results as numpy arrays. An array that views memory of the program holds a reference to what owns it.
#include "app/python_module/result_arrays.h"

#include <fmt/format.h>

#include <algorithm>

namespace py = pybind11;

namespace kvscope {

namespace {

template <class Owner> py::capsule ownerOf(Owner owner) {
    return py::capsule(new Owner(std::move(owner)), [](void* held) { delete static_cast<Owner*>(held); });
}

template <class Number> py::array viewOf(const Number* data, std::vector<py::ssize_t> shape, const py::capsule& owner) {
    py::array view(py::dtype::of<Number>(), std::move(shape), data, owner);
    view.attr("setflags")(py::arg("write") = false);
    return view;
}

py::array ones(std::size_t count) {
    py::array_t<float> numbers(static_cast<py::ssize_t>(count));
    std::fill_n(numbers.mutable_data(), count, 1.0f);
    return numbers;
}

std::vector<py::ssize_t> axes(const Shape& shape) {
    std::vector<py::ssize_t> sizes;
    for (int axis = 0; axis < shape.rank(); ++axis)
        sizes.push_back(shape[axis]);
    return sizes;
}

} // namespace

py::array arrayOf(HostTensor tensor) {
    auto* held = new HostTensor(std::move(tensor));
    const py::capsule owner(held, [](void* memory) { delete static_cast<HostTensor*>(memory); });
    return py::array(py::dtype::of<float>(), axes(held->shape), held->data.data(), owner);
}

py::list LayerSelection::kept() const {
    py::list heads;
    for (const HeadSelection& head : m_result->selection.heads)
        heads.append(viewOf(head.kept.data(), {static_cast<py::ssize_t>(head.kept.size())}, ownerOf(m_result)));
    return heads;
}

py::object LayerSelection::weights(bool numerator) const {
    py::list heads;
    bool any = false;
    for (const HeadSelection& head : m_result->selection.heads) {
        const std::vector<float>& weights = numerator ? head.numeratorWeights : head.denominatorWeights;
        any = any || !weights.empty();
        if (weights.empty())
            heads.append(ones(head.kept.size()));
        else
            heads.append(viewOf(weights.data(), {static_cast<py::ssize_t>(weights.size())}, ownerOf(m_result)));
    }
    return any ? py::object(heads) : py::none();
}

py::object LayerSelection::scores() const {
    if (m_result->scores.empty())
        return py::none();
    return viewOf(m_result->scores.data.data(), axes(m_result->scores.shape), ownerOf(m_result));
}

py::array LayerSelection::mask() const {
    const auto& heads = m_result->selection.heads;
    py::array_t<bool> mask({static_cast<py::ssize_t>(heads.size()), static_cast<py::ssize_t>(m_result->visible)});
    std::fill_n(mask.mutable_data(), mask.size(), false);
    for (std::size_t head = 0; head < heads.size(); ++head)
        for (const TokenIndex token : heads[head].kept)
            mask.mutable_at(static_cast<py::ssize_t>(head), token) = true;
    return mask;
}

py::list LayerSelection::margins() const {
    py::list margins;
    for (const HeadSelection& head : m_result->selection.heads)
        margins.append(static_cast<double>(head.margin));
    return margins;
}

double LayerSelection::retention() const {
    double kept = 0;
    for (const HeadSelection& head : m_result->selection.heads)
        kept += static_cast<double>(head.kept.size());
    return kept / static_cast<double>(m_result->selection.heads.size()) / static_cast<double>(m_result->visible);
}

std::string LayerSelection::text() const {
    return fmt::format("<kvscope.Selection {} layer {}: {:.1f} % of {} tokens kept in {} KV heads>",
                       m_result->request.policy.text(), m_result->request.layer.value, 100 * retention(),
                       m_result->visible, m_result->selection.heads.size());
}

} // namespace kvscope
