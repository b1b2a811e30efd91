// The table of file formats: a further one is one more line.
#include "core/capture/open_capture.h"

#include "core/base/error.h"
#include "core/capture/hdf5_capture.h"
#include "core/capture/import/imported_capture.h"

#include <filesystem>

namespace kvscope {

namespace {

struct Format {
    bool (*matches)(const std::string& path);
    std::shared_ptr<const CaptureReader> (*open)(const std::string& path);
};

// A new format is one more line. HDF5 comes last, because its reader reports what is wrong with unknown files.
constexpr Format kFormats[] = {
    {isTensorFile, [](const std::string& path) { return openImported(path); }},
    {[](const std::string&) { return true; }, openHdf5Capture},
};

} // namespace

std::shared_ptr<const CaptureReader> openCapture(const std::string& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored))
        throw Error({.sentence = "there is no such file", .remedy = "Check the name", .path = path});
    if (std::filesystem::is_directory(path, ignored) && !isTensorFile(path))
        throw Error({.sentence = "this is a folder without .safetensors files, not a capture",
                     .remedy = "Name a file in it",
                     .path = path});
    for (const Format& format : kFormats)
        if (format.matches(path)) return format.open(path);
    return {};
}

} // namespace kvscope
