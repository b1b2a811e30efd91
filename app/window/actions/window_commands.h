#pragma once

#include <vector>

namespace kvscope {

class DockLayout;
class StepDriver;
class ViewCanvas;
struct LessonFile;

/// The commands of the window as an interface, so that actions do not depend on the window.
class WindowCommands {
public:
    virtual DockLayout* docks() const = 0;
    virtual StepDriver* steps() const = 0;
    virtual const std::vector<LessonFile>& lessons() const = 0;
    virtual ViewCanvas* currentCanvas() const = 0; ///< the canvas that commands apply to; may be null
    virtual void stepLesson(int by) = 0; ///< to the next stop or the one before, past the ends to other lessons
    virtual void newFromText() = 0;
    virtual void saveCapture() = 0; ///< of the live context that is open
    virtual void tryLive() = 0;
    virtual void togglePresenter() = 0;
    virtual void focusFind() = 0;
    virtual void findNext(int by) = 0; ///< -1: the place before
    virtual void showGoTo() = 0;
    virtual void showViews() = 0;
    virtual void exportReport() = 0;
    virtual void exportHandout() = 0; ///< of the open lesson
    virtual void makeLesson() = 0;
    virtual void startTour() = 0;
    virtual void escape() = 0;
    virtual void saveScreenshot() = 0;
    virtual void showKeys() = 0;
    virtual void showManual() = 0;
    virtual void showAbout() = 0;

protected:
    ~WindowCommands() = default;
};

} // namespace kvscope
