#pragma once

#include "views/clustering/clustering_data.h"
#include "views/clustering/stream_state.h"
#include "views/common/chart.h"

#include <string>
#include <vector>

namespace kvscope {

/// Draws the plots of the view; each returns the frame that it used. Plots of a stream show it at the input's cursor.
class ClusteringPainter {
public:
    ClusteringPainter(SceneBuilder& builder, const ViewInput& input, const ParameterValues& options,
                      const Viewport& viewport, const ClusteringData& data);

    PlotFrame plane(const Box& area);     ///< keys, representatives and balls, or k-centres, on two principal axes
    PlotFrame births(const Box& area);    ///< m over time
    PlotFrame sizes(const Box& area);     ///< tokens per cluster, largest first
    PlotFrame radii(const Box& area);     ///< radius over size, one mark a cluster
    PlotFrame delta(const Box& area);     ///< m against the radius, for keys, keys before RoPE, values
    PlotFrame reservoir(const Box& area); ///< what every slot holds, cluster by cluster, and the value reservoir
    PlotFrame sampling(const Box& area);  ///< realised against ideal counts of the value reservoir
    PlotFrame cover(const Box& area);     ///< radius against k of the greedy centres
    std::vector<LegendEntry> legend(const std::string& picture) const;

private:
    void tint(const PlotFrame& frame);
    void balls(const PlotFrame& frame);
    Colour ballColour() const;
    std::vector<double> ballRadii() const; ///< [clusters] in the units of the keys, as the option says
    void representatives(const PlotFrame& frame);
    void centreMarks(const PlotFrame& frame);
    void ring(const PlotFrame& frame, TokenIndex token);
    void note(const PlotFrame& frame, const std::string& text, bool top);
    void cursorLine(const PlotFrame& frame);
    Point keyPlace(TokenIndex token) const;
    std::vector<std::int64_t> clusterSizes() const; ///< of clusters or cells, in the order of birth

    SceneBuilder& m_builder;
    const ViewInput& m_input;
    const ParameterValues& m_options;
    const Viewport& m_viewport;
    const ClusteringData& m_data;
    StreamState m_state; ///< of the stream, if there is one
    const Theme& m_theme;
    Colour m_colour; ///< SubGen's
};

} // namespace kvscope
