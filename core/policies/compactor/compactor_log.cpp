// The step log of a leverage run as JSON: lists by KV head; what was not computed is left out.
#include "core/policies/compactor/compactor_log.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace kvscope {

namespace {

std::string number(double x) {
    return std::isfinite(x) ? fmt::format("{}", x) : "null"; // JSON has no other numbers
}

template <class List> std::string listOf(const List& items) {
    std::string text;
    for (const auto& item : items) text += (text.empty() ? "" : ",") + number(static_cast<double>(item));
    return "[" + text + "]";
}

std::string tableOf(const HostTensor& table) {
    std::string text;
    const std::int64_t width = table.shape[1];
    for (std::int64_t h = 0; h < table.shape[0]; ++h) {
        const auto head = table.data.begin() + h * width;
        text += (h == 0 ? "" : ",") + listOf(std::vector<float>(head, head + width));
    }
    return "[" + text + "]";
}

} // namespace

std::string LeverageLog::json() const {
    std::string text = fmt::format("{{\"lambda\":{},\"rank\":{}", number(lambda), listOf(rank));
    for (const auto& [name, table] :
         {std::pair{"spectrum", &spectrum}, std::pair{"leverage", &leverage}, std::pair{"attention", &attention},
          std::pair{"z_leverage", &zLeverage}, std::pair{"z_attention", &zAttention}})
        if (!table->empty()) text += fmt::format(",\"{}\":{}", name, tableOf(*table));
    if (!draws.empty()) {
        text += ",\"draws\":[";
        for (std::size_t h = 0; h < draws.size(); ++h) text += (h == 0 ? "" : ",") + listOf(draws[h]);
        text += fmt::format("],\"distortion\":{},\"top_distortion\":{}", listOf(distortion), listOf(topDistortion));
    }
    return text + "}";
}

} // namespace kvscope
