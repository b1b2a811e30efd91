// A page of commands is read where its files lie, which may be another machine: a path from the folder of the capture
// is right there too, as long as the files moved together.
#include "app/report/report.h"

#include "app/study/session_paths.h"
#include "views/common/view_options.h"

#include <string>
#include <utility>

namespace kvscope {

namespace {

namespace fs = std::filesystem;

std::string pathFrom(const fs::path& folder, const std::string& path) {
    if (path.empty()) return {};
    const fs::path name = fs::path(path).filename();
    if (folder.empty()) return name.string();
    std::error_code none; // links are resolved: ".." after a linked folder is not the folder of the link
    const fs::path relative = fs::relative(fs::absolute(path).parent_path(), folder, none);
    if (none || relative.empty()) return path;
    const std::string found = (relative / name).lexically_normal().generic_string();
    return found.starts_with('-') ? "./" + found : found; // else a command takes it for an option
}

/// Text that names no file stays.
std::string textFrom(const fs::path& folder, const std::string& text) {
    const std::size_t dataset = text.rfind(":/"); // as in FILE.h5:/path
    const std::string file = text.substr(0, dataset);
    std::error_code none;
    if (!fs::is_regular_file(file, none)) return text;
    return pathFrom(folder, file) + (dataset == std::string::npos ? "" : text.substr(dataset));
}

std::string listFrom(const fs::path& folder, const std::string& text) {
    std::vector<std::string> files = filesOf(text);
    for (std::string& file : files) file = textFrom(folder, file);
    return files.empty() ? text : filesText(files);
}

} // namespace

Session withPathsFrom(const fs::path& folder, Session session) {
    session.capturePath = pathFrom(folder, session.capturePath);
    session.compared.path = pathFrom(folder, session.compared.path);
    const auto change = [&](const std::string& text) { return textFrom(folder, text); };
    session.budget = withFiles(std::move(session.budget), change);
    for (SessionPane& pane : session.panes) {
        pane.recordedPath = pathFrom(folder, pane.recordedPath);
        if (!pane.policy.policy.empty()) pane.policy = withFiles(std::move(pane.policy), change);
    }
    for (auto& [view, options] : session.viewOptions)
        for (auto& [option, text] : options) text = listFrom(folder, text);
    return session;
}

} // namespace kvscope
