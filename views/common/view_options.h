#pragma once

#include "core/parameters/parameters.h"
#include "views/view.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// Units of text options that name something outside the view and change what is computed. The unit tells a host what
/// to offer: one table, any number of captures, a policy's parameter as "id" or "id=v1,v2" (any, or numbers only).
inline constexpr const char *kTableFileUnit = "CSV file", *kCaptureFilesUnit = "capture files",
                            *kParameterUnit = "parameter", *kNumberUnit = "number";
/// Unit of a choice of a pane, "A" to "D", which a host shows by the pane's policy.
inline constexpr const char* kPaneUnit = "pane";
ParameterSpec paneOption(std::string id, std::string label, char standard, Stage stage, std::string help,
                         std::string source);
/// The option kValueRangeOption of a view whose pictures side by side share their vertical axis; `check` as for
/// `valueRangeOption`.
ParameterSpec axisRangeOption(std::string source, void (*check)(std::string_view));
/// The files of a text "FILE;FILE", without blanks about the names and without empty names. In a name "\;" is a
/// semicolon, "\\" a backslash, and "\ " a blank that stays.
std::vector<std::string> filesOf(std::string_view text);
std::string filesText(const std::vector<std::string>& files); ///< filesOf reads it back
/// The sequential colour maps.
ParameterSpec colourMapOption(std::string id = "colours");

/// "Map is Chunks, or Minus is Chunks": in the words of the view's options.
std::string needWords(const View& view, const OptionNeed& need);
/// Why an option has no effect now: "Matters only while Scale is Logarithmic". Empty: it has an effect. An option on
/// which another depends counts only while it has an effect itself.
std::string whyIdle(const View& view, const ParameterValues& options, std::string_view id);
/// The choices of an option except some, for a row that names incompatible ones.
std::vector<std::string> choicesBut(const ParameterTable& options, std::string_view id,
                                    const std::vector<std::string>& left);

} // namespace kvscope
