// Options of views that name files. They are texts, so that a figure's command and a session hold them as typed.
#include "views/common/file_option.h"

#include "views/common/view_options.h"

#include <algorithm>
#include <utility>

namespace kvscope {

ParameterSpec fileOption(std::string id, std::string label, std::string help, std::string source, const char* unit) {
    ParameterSpec spec =
        textOption(std::move(id), std::move(label), std::move(help), std::move(source), {}, nullptr, Stage::Features);
    spec.unit = unit;
    return spec;
}

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

} // namespace kvscope
