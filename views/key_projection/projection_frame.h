#pragma once

#include "views/key_projection/projection_marks.h"
#include "views/scene/scene_builder.h"

#include <string>
#include <vector>

namespace kvscope {

/// Everything around the marks: axes, legend, colour column, notes and a figure's caption. Panes side by side in the
/// window share plane and range, so legend and axes are named once, in a row below the plots.
class ProjectionFrame {
public:
    /// All arguments must outlive the frame; `input` must hold the projection.
    ProjectionFrame(const ViewInput& input, const PaneData& pane, const ProjectionMarks& marks,
                    const Viewport& viewport, SceneBuilder& builder);

    const PlotFrame& plot() const { return m_frame; }
    void drawBehind();
    void drawAround();

private:
    /// What is dropped in a small dock, in this order: titles, legend, tick labels; never data. A low and wide picture
    /// has its legend in a column on the left, where equal scales leave room.
    struct Room {
        AxesStyle axes;
        bool legend = true, column = false, caption = false, shared = false;
    };
    Room room() const;
    int sharedRows() const;
    std::vector<std::string> sharedAxes() const;
    void setAxes(const Viewport::Range& range);
    std::vector<std::string> notes() const;
    void drawSharedRow();

    const ViewInput& m_input;
    const PaneData& m_pane;
    const ProjectionMarks& m_marks;
    const Viewport& m_viewport;
    SceneBuilder& m_builder;
    const Theme& m_theme;
    Room m_room;
    PlotFrame m_frame;
    std::vector<LegendEntry> m_legend;
    std::vector<std::string> m_caption;
    bool m_scale = false; ///< there is a colour column
};

/// "perplexity 30, seed 0": without these nobody could reproduce an embedding.
std::string tsneLabel(const TsneRun& run);
/// How far an embedding has come.
std::string tsneNote(const TsneRun& run);

} // namespace kvscope
