// The step log of a leverage run as JSON: lists by KV head; what was not computed is left out.
#include "core/policies/compactor/compactor_log.h"

#include "core/base/json/json_text.h"

#include <nlohmann/json.hpp>

#include <utility>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json; // writes null for numbers that are not finite

Json rowsOf(const HostTensor& table) {
    Json rows = Json::array();
    for (std::int64_t h = 0; h < table.shape[0]; ++h) {
        const auto head = table.data.begin() + h * table.shape[1];
        rows.push_back(std::vector<float>(head, head + table.shape[1]));
    }
    return rows;
}

} // namespace

std::string LeverageLog::json() const {
    Json all = {{"lambda", lambda}, {"rank", rank}};
    for (const auto& [name, table] :
         {std::pair{"spectrum", &spectrum}, std::pair{"leverage", &leverage}, std::pair{"attention", &attention},
          std::pair{"z_leverage", &zLeverage}, std::pair{"z_attention", &zAttention}})
        if (!table->empty()) all[name] = rowsOf(*table);
    if (!draws.empty()) {
        all["draws"] = draws;
        all["distortion"] = distortion;
        all["top_distortion"] = topDistortion;
    }
    return jsonLine(all);
}

} // namespace kvscope
