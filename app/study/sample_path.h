#pragma once

#include <string>

namespace kvscope {

/// The sample capture for the first start: beside the program, in the source tree it was built from, or where it is
/// installed (../share/kvscope). Empty when there is none.
std::string findSampleCapture(const std::string& programFolder);
/// The folder of the written lessons, likewise.
std::string findLessonFolder(const std::string& programFolder);

} // namespace kvscope
