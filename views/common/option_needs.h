#pragma once

#include "views/view.h"

#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

/// That an option of a view has one of some values, as they are typed; without values: that it is not at its default.
struct OptionIs {
    std::string id;
    std::vector<std::string> values;
};

/// An option of a view changes nothing unless one of the terms holds. Of several rows for one option all must hold.
struct OptionNeed {
    std::string id;
    std::vector<OptionIs> anyOf;
};

/// What a view can say beside being drawn, when some of its options wait for others: hosts grey them and say why.
class OptionNeedsView {
public:
    virtual ~OptionNeedsView() = default;
    virtual std::vector<OptionNeed> optionNeeds() const = 0;
};

/// Empty where no option waits for another.
std::vector<OptionNeed> needsOf(const View& view);
/// "Map is Chunks, or Minus is Chunks": in the words of the view's options.
std::string needWords(const View& view, const OptionNeed& need);
/// Why an option changes nothing now: "Matters only while Scale is Logarithmic". Empty: it does. An option that another
/// waits for counts only while it matters itself.
std::string whyIdle(const View& view, const ParameterValues& options, std::string_view id);
/// The choices of an option but some, for a row that names what it does not go with.
std::vector<std::string> choicesBut(const ParameterTable& options, std::string_view id,
                                    const std::vector<std::string>& left);

} // namespace kvscope
