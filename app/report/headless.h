#pragma once

#include "app/study/regenerating_command.h"
#include "app/study/session.h"

#include <string>
#include <vector>

namespace kvscope {

class LayerRunner;
class RandomSource;

/// A session's panes on its open capture, computed, as views see them, without any view's data. An Error of a pane that
/// the figure leaves out is kept with the pane, as in the window. `random`: in place of the generator. Throws Error or
/// Cancelled.
ViewInput headlessInput(const Session& session, std::shared_ptr<const CaptureReader> capture,
                        std::optional<std::size_t> onlyPane, const LayerRunner& runner, const Checkpoint& checkpoint,
                        std::shared_ptr<const RandomSource> random = {});

/// The data of the figure's view for that input; empty for a view without data. Throws Error or Cancelled.
DataState headlessData(const Session& session, const FigureRequest& figure, const ViewInput& input,
                       const LayerRunner& runner, const Checkpoint& checkpoint,
                       const std::shared_ptr<const RandomSource>& random = {});

/// Both for one figure. Needs neither Qt nor a display, so a worker can call it.
ViewInput figureInput(const Session& session, std::shared_ptr<const CaptureReader> capture, const FigureRequest& figure,
                      const LayerRunner& runner, const Checkpoint& checkpoint,
                      const std::shared_ptr<const RandomSource>& random = {});

struct SessionFigure {
    Scene scene;
    std::string finding;
    std::string title; ///< "Token strip. A keeps 14 of 16 needle tokens": title of the file, and for screen readers
};

Viewport figureViewport(const Session& session, const FigureRequest& figure, const TextService& text);
/// Draws a figure of a session: used by the window's export, `kvscope plot` and the report. Figures have no hovered
/// token. Throws Error for a session without panes.
SessionFigure drawFigure(const Session& session, const FigureRequest& figure, ViewInput input, const TextService& text);
/// The figure of the session's capture and that of its second one in one figure: side by side where it is wide, else
/// one below the other. Throws as the functions above do.
SessionFigure drawBothCaptures(const Session& session, const std::shared_ptr<const CaptureReader>& capture,
                               const std::shared_ptr<const CaptureReader>& other, const FigureRequest& figure,
                               const LayerRunner& runner, const Checkpoint& checkpoint, const TextService& text);

/// Gives sessions whose figures of a view stand side by side one range of colours or of an axis
/// (views/common/colour_scale.h).
void shareRange(const View& view, const std::vector<Session*>& sessions, const std::vector<const ViewInput*>& inputs);
/// The view for all heads of the layer (`headsOf`) under their names; of a view per pane the figure's pane, or the
/// active one. Throws Error for a view that is not about one head.
SessionFigure drawAllHeads(const Session& session, std::shared_ptr<const CaptureReader> capture, FigureRequest figure,
                           const LayerRunner& runner, const Checkpoint& checkpoint, const TextService& text,
                           const std::shared_ptr<const RandomSource>& random = {});

} // namespace kvscope
