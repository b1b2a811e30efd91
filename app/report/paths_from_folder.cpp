// A page of commands is read where its files lie, which may be another machine: a path from the folder of the capture
// is right there too, as long as the files moved together.
#include "app/report/report.h"

#include "app/study/session_paths.h"

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

} // namespace

Session withPathsFrom(const fs::path& folder, Session session) {
    session.capturePath = pathFrom(folder, session.capturePath);
    session.compared.path = pathFrom(folder, session.compared.path);
    const auto change = [&](const std::string& text) {
        return changeFiles(text, [&](const fs::path& file) {
            std::error_code none;
            return fs::is_regular_file(file, none) ? pathFrom(folder, file.string()) : file.string();
        });
    };
    session.budget = withFiles(std::move(session.budget), change);
    for (SessionPane& pane : session.panes) {
        pane.recordedPath = pathFrom(folder, pane.recordedPath);
        if (!pane.policy.policy.empty()) pane.policy = withFiles(std::move(pane.policy), change);
    }
    for (auto& [view, options] : session.viewOptions)
        for (auto& [option, text] : options) text = change(text);
    return session;
}

} // namespace kvscope
