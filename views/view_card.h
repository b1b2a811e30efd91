#pragma once

#include "core/parameters/parameters.h"

#include <memory>
#include <string>
#include <vector>

namespace kvscope {

/// The condition that an option has one of these values, as typed; without values: that it is not at its default.
struct OptionIs {
    std::string id;
    std::vector<std::string> values;
};

/// An option of a view changes nothing unless one of the terms holds: the window greys it and says why. Of several
/// rows for one option all must hold.
struct OptionNeed {
    std::string id;
    std::vector<OptionIs> anyOf;
};

/// Where the window's default arrangements put a view. All but Tabs are for one view each.
enum class ViewPlace {
    Tabs,       ///< behind the other views below the panes, where the View menu finds it
    BesidePane, ///< beside the pane while one head is explored
    BelowPanes, ///< in the row below the panes, in front
    BesideRow,  ///< at the right end of that row, in front
    Text,       ///< in the row of the prompt's text
    Model,      ///< in the layout of the whole model: all heads
    ModelSide,  ///< beside the view at Model
};

/// The role of a view in the layout for teaching. Of the views of a role, the one named First is in front at the start.
enum class TeachingRole { None, Steps, StepsFirst, Detail, DetailFirst };

/// The question that a view answers, under which it is offered.
enum class ViewGroup { Kept, Why, Cost, Algorithm, Model };
inline constexpr const char* kViewGroups[] = {"What is kept", "Why", "What does it cost", "How does the algorithm work",
                                              "Whole model"}; ///< in the order of ViewGroup

/// What a view says about itself. The program offers, draws and explains a view by its card alone.
struct ViewCard {
    std::string id, name, summary;
    std::string paper; ///< which figures it reproduces
    ViewGroup group;
    std::string help = {}; ///< Markdown, set from the view's .md
    /// Set by the view. Rows of stage Features make other data, rows of stage Combine look at the same data elsewhere
    /// (the old data stay until the new ones are there); all others change only the drawing, unless the maker of the
    /// data names them.
    std::shared_ptr<const ParameterTable> options = {};
    std::vector<OptionNeed> needs = {}; ///< options that depend on others
    bool perPane = false;               ///< drawn once per pane (pane index in the input) or once for all
    std::string data = {};              ///< kind of ViewData that it shows ("projection"); empty: none
    std::string waiting = {};           ///< what is said until the first data are there
    bool needsPane = false;             ///< there is no picture without a pane
    ViewPlace place = ViewPlace::Tabs;
    TeachingRole teaching = TeachingRole::None;
    int leastHeight = 128; ///< design pixels in which the view can still be read
};

} // namespace kvscope
