#pragma once

#include "core/base/index.h"
#include "core/policies/selection.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

// What a view answers when it is asked about its picture.

/// The table behind a canvas: the same facts for screen readers and for "Copy data".
struct ViewTable {
    std::vector<std::string> columns;
    std::int64_t rowCount = 0;
    std::function<std::string(std::int64_t row, int column)> cell;
};

/// The part of the data that a plot shows.
struct ShownRange {
    double xMin, xMax, yMin, yMax;
    friend bool operator==(const ShownRange&, const ShownRange&) = default;
};

/// A setting that a mark of a picture stands for, and that a click on it or dragging it gives to a pane or to the view.
struct SettingChange {
    int pane = -1; ///< index, which becomes the active pane; -1: the active one
    std::vector<std::pair<std::string, std::string>> values = {}; ///< parameter id, text; taken where the policy has it
    std::optional<Budget> budget = {};
    std::vector<std::pair<std::string, std::string>> options = {}; ///< of the view: option id, text
    std::string cut = {};                                          ///< as it is typed; empty: stays
    std::string step = "Set value";                                ///< what undo calls it
    std::optional<ShownRange> range = {};                          ///< of the view; like `top` no step of undo
    std::optional<TokenIndex> top = {};                            ///< as `Viewport::top`
};

/// What would give an empty view its picture: a policy in a further pane, or a setting of a pane that is there.
struct PaneOffer {
    std::string spec = {};            ///< of the policy (`PolicySpec`); empty: `settingChange` is offered
    SettingChange settingChange = {}; ///< pane to activate, and its values
    std::string label = {};           ///< what `settingChange` does: "Show pane B"
};

/// Facts about a point of a picture, as names and values; empty: nothing to tell.
struct PointFacts {
    std::vector<std::pair<std::string, std::string>> rows; ///< of a token: what the view adds to the common read-out
    TokenIndex token = -1;                                 ///< that the other views should ring
    int layer = -1, kvHead = -1, queryHead = -1;           ///< what a click opens; -1: nothing
    std::optional<SettingChange> settingChange;            ///< what a click sets
};

/// A step log as events: something happens once so many tokens of the stream have been read.
struct StepSequence {
    std::string title;
    std::vector<TokenIndex> events;     ///< tokens read, ascending; empty: the view has no steps
    std::vector<TokenIndex> milestones; ///< the more important of the events (merges)
};

} // namespace kvscope
