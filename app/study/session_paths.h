#pragma once

#include "core/policies/policy_spec.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>
#include <functional>
#include <string>

namespace kvscope {

/// Session and lesson files name the files beside them by paths from their own folder, so that a folder with a session
/// and its captures, lists, scores and tables can be moved as a whole. In memory all paths are absolute.

std::filesystem::path folderOf(const std::string& path); ///< absolute; empty for an empty path
std::string relativeTo(const std::filesystem::path& folder, const std::string& path);
std::string absoluteFrom(const std::filesystem::path& folder, const std::string& path);

/// Changes the files of a text: FILE, FILE.h5:/DATASET, or several of them separated by ';'. Other texts stay.
std::string changeFiles(const std::string& text,
                        const std::function<std::string(const std::filesystem::path&)>& change);
/// For a text that may name a file: its absolute path where such a file lies in the folder, else the text itself.
std::string fileTextFrom(const std::filesystem::path& folder, const std::string& text);
/// The text as a file in `folder` stores it: a relative path where fileTextFrom turns that into the same text again.
std::string fileTextTo(const std::filesystem::path& folder, const std::string& text);

/// One of the two functions above with its folder.
using FileTextChange = std::function<std::string(const std::string&)>;

/// The policy with the texts of its parameters (imported scores) and the curve of its budget changed.
PolicySpec withFiles(PolicySpec spec, const FileTextChange& change);
Budget withFiles(Budget budget, const FileTextChange& change);

/// A lesson as its file in `folder` stores it, and back.
nlohmann::ordered_json lessonTo(const std::filesystem::path& folder, nlohmann::ordered_json lesson);
nlohmann::ordered_json lessonFrom(const std::filesystem::path& folder, nlohmann::ordered_json lesson);

} // namespace kvscope
