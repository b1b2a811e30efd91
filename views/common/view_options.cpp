// What the options of several views have in common.
#include "views/common/view_options.h"

#include "core/parameters/parameter_rows.h"

#include <algorithm>

namespace kvscope {

std::vector<std::string> filesOf(std::string_view text) {
    std::vector<std::string> files;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(';'), text.size());
        std::string_view name = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const std::size_t first = name.find_first_not_of(' ');
        if (first != std::string_view::npos)
            files.emplace_back(name.substr(first, name.find_last_not_of(' ') + 1 - first));
    }
    return files;
}

ParameterSpec colourMapOption(std::string id) {
    return choiceRow(std::move(id), "Colours",
                     {{"viridis", "viridis", "even steps of lightness"},
                      {"cividis", "cividis", "the same for most kinds of colour vision"},
                      {"magma", "magma", "dark ground"},
                      {"greys", "greys", "for print"}},
                     Stage::Select, "Sequential colour map.", "viridis is even in lightness");
}

} // namespace kvscope
