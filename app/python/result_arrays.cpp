// Results as numpy arrays. An array that views memory of the program holds a reference to what owns it.
#include "app/python/result_arrays.h"

#include "core/capture/capture.h"
#include "core/run/head_means.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace nb = nanobind;

namespace kvscope {

namespace {

std::vector<std::size_t> axes(const Shape& shape) {
    std::vector<std::size_t> sizes;
    for (int axis = 0; axis < shape.rank(); ++axis) sizes.push_back(static_cast<std::size_t>(shape[axis]));
    return sizes;
}

} // namespace

nb::object arrayOf(HostTensor tensor) {
    const auto held = std::make_shared<HostTensor>(std::move(tensor));
    return viewOf(held, held->data.data(), axes(held->shape));
}

nb::object arrayOf(std::vector<double> numbers) {
    const auto held = std::make_shared<std::vector<double>>(std::move(numbers));
    return viewOf(held, held->data(), {held->size()});
}

nb::list LayerSelection::kept() const {
    nb::list heads;
    for (const HeadSelection& head : m_result->selection.heads)
        heads.append(viewOf(m_result, head.kept.data(), {head.kept.size()}));
    return heads;
}

nb::object LayerSelection::weights(bool numerator) const {
    nb::list heads;
    bool any = false;
    for (const HeadSelection& head : m_result->selection.heads) {
        const std::vector<float>& weights = numerator ? head.numeratorWeights : head.denominatorWeights;
        any = any || !weights.empty();
        const auto ones = std::make_shared<const std::vector<float>>(weights.empty() ? head.kept.size() : 0, 1.0f);
        heads.append(weights.empty() ? viewOf(ones, ones->data(), {ones->size()})
                                     : viewOf(m_result, weights.data(), {weights.size()}));
    }
    return any ? nb::object(heads) : nb::none();
}

nb::object LayerSelection::scores() const { return viewed(m_result->scores); }

nb::object LayerSelection::queryHeadScores() const { return viewed(m_result->queryHeadScores); }

nb::object LayerSelection::viewed(const HostTensor& table) const {
    return table.empty() ? nb::none() : viewOf(m_result, table.data.data(), axes(table.shape));
}

nb::object LayerSelection::mask() const {
    const auto& heads = m_result->selection.heads;
    const auto tokens = static_cast<std::size_t>(m_result->visible);
    const std::shared_ptr<bool[]> mask(new bool[heads.size() * tokens]());
    for (std::size_t head = 0; head < heads.size(); ++head)
        for (const TokenIndex token : heads[head].kept) mask[head * tokens + static_cast<std::size_t>(token)] = true;
    return viewOf(mask, mask.get(), {heads.size(), tokens});
}

nb::object LayerSelection::queryHeads() const {
    if (!m_result->selection.perQueryHead()) return nb::none();
    nb::list sets;
    const std::vector<std::int32_t>& gqaGroupOf =
        m_result->request.capture->info().layerInfo(m_result->request.layer).gqaGroupOf;
    for (std::size_t head = 0; head < gqaGroupOf.size(); ++head) {
        const auto& kept = m_result->selection.heads[static_cast<std::size_t>(gqaGroupOf[head])].attendedBy(
            static_cast<std::int32_t>(head));
        sets.append(viewOf(m_result, kept.data(), {kept.size()}));
    }
    return sets;
}

std::vector<double> LayerSelection::margins() const {
    std::vector<double> margins;
    for (const HeadSelection& head : m_result->selection.heads) margins.push_back(static_cast<double>(head.margin));
    return margins;
}

double LayerSelection::retention() const { return keptShareOf(*m_result); }

std::string LayerSelection::text() const {
    return fmt::format("<kvscope.Selection {} layer {}: {:.1f} % of {} tokens kept in {} KV heads>",
                       m_result->request.policy.text(), m_result->request.layer.value, 100 * retention(),
                       m_result->visible, m_result->selection.heads.size());
}

} // namespace kvscope
