// Absolute paths in memory, relative ones in files: for captures and lists, options of views, policies, budgets and the
// settings of a lesson's stops.
#include "app/study/session_paths.h"

#include "core/base/error.h"
#include "views/common/view_options.h"

#include <nlohmann/json.hpp>

namespace kvscope {

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

/// Changes a policy or a budget. What does not parse stays, and is refused where it is used.
template <class Value> void changeSpec(Json& text, const FileTextChange& change) {
    if (!text.is_string()) return;
    try {
        const Value value = Value::parse(text.get<std::string>());
        if (const Value changed = withFiles(value, change); !(changed == value)) text = changed.text();
    } catch (const Error&) {
    }
}

void changePane(Json& pane, const FileTextChange& change) {
    if (pane.is_string()) return changeSpec<PolicySpec>(pane, change);
    if (!pane.is_object()) return;
    if (pane.contains("recorded")) pane["recorded"] = change(pane["recorded"].get<std::string>());
    if (pane.contains("policy")) changeSpec<PolicySpec>(pane["policy"], change);
}

void changeSetting(Json& setting, const FileTextChange& change) {
    if (setting.contains("panes"))
        for (Json& pane : setting["panes"]) changePane(pane, change);
    if (setting.contains("budget")) changeSpec<Budget>(setting["budget"], change);
    if (setting.contains("view_options"))
        for (Json& options : setting["view_options"])
            for (Json& text : options)
                if (text.is_string()) text = change(text.get<std::string>());
}

void changeSettings(Json& lesson, const FileTextChange& change) {
    for (const char* one : {"start", "question"})
        if (lesson.contains(one)) changeSetting(lesson[one], change);
    if (lesson.contains("stops"))
        for (Json& stop : lesson["stops"]) changeSetting(stop, change);
}

/// Changes the folder of a lesson's model; names of models in the Hub stay.
void changeModel(Json& lesson, const FileTextChange& change) {
    if (Json* model = lesson.contains("live") ? &lesson["live"].at("model") : nullptr)
        *model = change(model->get<std::string>());
}

} // namespace

fs::path folderOf(const std::string& path) {
    return path.empty() ? fs::path() : fs::absolute(path).lexically_normal().parent_path();
}

std::string relativeTo(const fs::path& folder, const std::string& path) {
    if (path.empty()) return {};
    const fs::path relative = fs::path(path).lexically_relative(folder);
    return relative.empty() ? path : relative.generic_string();
}

std::string absoluteFrom(const fs::path& folder, const std::string& path) {
    if (path.empty() || fs::path(path).is_absolute()) return path;
    return (folder / path).lexically_normal().string();
}

std::string changeFiles(const std::string& text, const std::function<std::string(const fs::path&)>& change) {
    std::vector<std::string> files = filesOf(text);
    bool isChanged = false;
    for (std::string& one : files) {
        const std::string file = one.substr(0, one.rfind(":/")), now = change(file);
        isChanged = isChanged || now != file;
        one = now + one.substr(file.size());
    }
    return isChanged ? filesText(files) : text;
}

std::string fileTextFrom(const fs::path& folder, const std::string& text) {
    return changeFiles(text, [&](const fs::path& file) {
        std::error_code none;
        const fs::path beside = (folder / file).lexically_normal();
        return file.is_relative() && file.has_extension() && fs::is_regular_file(beside, none) ? beside.string()
                                                                                               : file.string();
    });
}

std::string fileTextTo(const fs::path& folder, const std::string& text) {
    const std::string relative = changeFiles(text, [&](const fs::path& file) {
        return file.is_absolute() ? relativeTo(folder, file.string()) : file.string();
    });
    return fileTextFrom(folder, relative) == text ? relative : text;
}

PolicySpec withFiles(PolicySpec spec, const FileTextChange& change) {
    for (const ParameterSpec& parameter : spec.values.table())
        if (parameter.kind == ParameterKind::Text)
            spec.values.setText(parameter.id, change(spec.values.text(parameter.id)));
    if (spec.budget) spec.budget->curve = change(spec.budget->curve);
    return spec;
}

Budget withFiles(Budget budget, const FileTextChange& change) {
    budget.curve = change(budget.curve);
    return budget;
}

Json lessonTo(const fs::path& folder, Json lesson) {
    changeModel(lesson, [&](const std::string& path) {
        return fs::path(path).is_absolute() ? relativeTo(folder, path) : path;
    });
    changeSettings(lesson, [&](const std::string& path) { return fileTextTo(folder, path); });
    return lesson;
}

Json lessonFrom(const fs::path& folder, Json lesson) {
    changeSettings(lesson, [&](const std::string& path) { return fileTextFrom(folder, path); });
    changeModel(lesson, [&](const std::string& path) {
        std::error_code none;
        return fs::is_directory(folder / path, none) ? absoluteFrom(folder, path) : path;
    });
    return lesson;
}

} // namespace kvscope
