#pragma once

#include "views/view.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// An option has one of some values, as typed; without values: it is not at its default.
struct OptionIs {
    std::string id;
    std::vector<std::string> values;
};

/// An option has no effect unless one of the terms holds. Of several rows for one option all must hold.
struct OptionNeed {
    std::string id;
    std::vector<OptionIs> anyOf;
};

/// Interface of views in which some options depend on others: hosts grey those and give the reason.
class OptionNeedsView {
public:
    virtual ~OptionNeedsView() = default;
    virtual std::vector<OptionNeed> optionNeeds() const = 0;
};

/// Empty if no option depends on another.
std::vector<OptionNeed> needsOf(const View& view);
/// "Map is Chunks, or Minus is Chunks": in the words of the view's options.
std::string needWords(const View& view, const OptionNeed& need);
/// Why an option has no effect now: "Matters only while Scale is Logarithmic". Empty: it has one. An option on which
/// another depends counts only while it has an effect itself.
std::string whyIdle(const View& view, const ParameterValues& options, std::string_view id);
/// The choices of an option except some, for a row that names incompatible ones.
std::vector<std::string> choicesBut(const ParameterTable& options, std::string_view id,
                                    const std::vector<std::string>& left);

} // namespace kvscope
