#pragma once

#include "app/study/regenerating_command.h"
#include "app/study/session.h"

#include <string>

namespace kvscope {

/// A session on its open capture as views see it, without the data of any view: every pane is run. An Error of a pane
/// that the figure leaves out is kept with the pane, as in the window. `random`: instead of drawn numbers. Throws Error
/// or Cancelled.
ViewInput headlessInput(const Session& session, std::shared_ptr<const CaptureReader> capture,
                        std::optional<std::size_t> onlyPane, const LayerRunner& runner, const Checkpoint& checkpoint,
                        std::shared_ptr<const RandomSource> random = {});

/// The data of the figure's view for that input; empty for a view that shows results only. Throws Error or Cancelled.
DataState headlessData(const Session& session, const FigureRequest& figure, const ViewInput& input,
                       const LayerRunner& runner, const Checkpoint& checkpoint,
                       const std::shared_ptr<const RandomSource>& random = {});

/// Both of them for one figure. Needs neither Qt nor a display, so a worker can do it.
ViewInput figureInput(const Session& session, std::shared_ptr<const CaptureReader> capture, const FigureRequest& figure,
                      const LayerRunner& runner, const Checkpoint& checkpoint,
                      const std::shared_ptr<const RandomSource>& random = {});

struct SessionFigure {
    Scene scene;
    std::string finding;
    std::string title; ///< "Token strip. A keeps 14 of 16 needle tokens": of the file, and for screen readers
};

Viewport figureViewport(const Session& session, const FigureRequest& figure, const TextService& text);
/// The one way from a session to a figure: the window's export, `kvscope plot` and the report draw with it. Nothing is
/// pointed at in a figure. Throws Error for a per-pane view of a session without panes.
SessionFigure drawFigure(const Session& session, const FigureRequest& figure, ViewInput input, const TextService& text);

} // namespace kvscope
