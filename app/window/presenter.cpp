// Pictures are canvases of their own on the same workbench: the docks below stay as they are.
#include "app/window/presenter.h"

#include "app/window/canvas/capture_caption.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QScrollArea>
#include <QVBoxLayout>

namespace kvscope {

constexpr int kSideWidth = 250; // design pixels: about forty letters in a line
constexpr std::size_t kMostPictures = 2;
constexpr int kMostLines = 3, kAnyLines = 99; // of a finding: beside another picture, of the only picture

namespace {

/// A finding that wraps. Of one that needs more lines, the last clauses are left out: the picture keeps its room.
class FindingLabel : public QLabel {
public:
    FindingLabel(int mostLines, QWidget* parent) : QLabel(parent), m_mostLines(mostLines) {
        setProperty("role", "quiet");
        setTextFormat(Qt::PlainText);
        setWordWrap(true);
    }
    void say(const QString& whole) {
        m_whole = whole;
        setToolTip(whole);
        fit();
    }

protected:
    void resizeEvent(QResizeEvent* event) override {
        QLabel::resizeEvent(event);
        fit();
    }

private:
    void fit() {
        QString text = m_whole;
        const auto isLong = [&] {
            const QRect room(0, 0, width(), QWIDGETSIZE_MAX);
            return fontMetrics().boundingRect(room, Qt::TextWordWrap, text).height() >
                   (m_mostLines + 0.5) * fontMetrics().lineSpacing(); // a sign of another font may be higher
        };
        while (isLong() && text.contains("; ")) text.truncate(text.lastIndexOf("; "));
        showText(this, text);
    }

    QString m_whole;
    int m_mostLines;
};

} // namespace

Presenter::Presenter(Workbench& workbench, StepDriver& steps, const TextService& text,
                     const std::vector<LessonFile>& lessons, LessonProgress& progress, Picture current, QWidget* window)
    : QWidget(window), m_workbench(workbench), m_steps(steps), m_text(text), m_current(current),
      m_pictures(new QVBoxLayout), m_stepTitle(named("presenterStep", roleLabel({}, "section", this))),
      m_caption(named("presenterCaption", wrappedLabel({}, "caption", this))),
      m_place(named("presenterPlace", roleLabel({}, "quiet", this))), m_area(named("panelScroll", scrollArea(this))),
      m_lesson(new LessonPanel(workbench, lessons, progress)), m_side(named("panelBody", new QWidget(this))) {
    setObjectName("presenter");
    setAttribute(Qt::WA_StyledBackground);
    setFocusPolicy(Qt::StrongFocus);
    m_caption->setStyleSheet(QString("font-size: %1px;").arg(px(13)));
    auto* row = makeLayout<QHBoxLayout>(this, {0, 0, 0, 0}, 0);
    auto* left = innerLayout<QVBoxLayout>(row, {6, 6, 6, 6}, 4, 1);
    row->addWidget(m_side);
    m_pictures->setSpacing(px(4));
    left->addLayout(m_pictures, 1);
    left->addWidget(m_stepTitle);
    left->addWidget(m_caption);
    m_side->setAttribute(Qt::WA_StyledBackground);
    m_side->setFixedWidth(px(kSideWidth));
    auto* column = makeLayout<QVBoxLayout>(m_side, {0, 0, 0, 8}, 0);
    m_area->setWidget(m_lesson);
    m_area->installEventFilter(this);
    column->addWidget(m_area, 1);
    m_place->setAlignment(Qt::AlignRight);
    m_place->setContentsMargins(0, 0, px(12), 0);
    column->addWidget(m_place);
    connect(m_lesson, &LessonPanel::opened, this, &Presenter::follow);
    connect(m_lesson, &LessonPanel::answered, this, &Presenter::followPart);
    connect(m_lesson, &LessonPanel::viewsWanted, this, &Presenter::showViews);
    connect(&m_steps, &StepDriver::changed, this, &Presenter::followSteps);
    connect(&m_workbench, &Workbench::sessionChanged, this, [this] {
        if (m_lesson->lesson().has_value() == m_side->isHidden()) follow(); // a lesson was opened or left
    });
    m_lesson->present();
    follow();
}

void Presenter::follow() {
    const auto& lesson = m_lesson->lesson();
    m_side->setVisible(lesson.has_value());
    if (lesson) {
        if (m_lesson->part() < 0) m_lesson->present();
        showViews(m_lesson->viewsOfPart());
    } else {
        showPictures({m_current});
    }
    followPart();
}

void Presenter::showViews(const std::vector<std::string>& views) {
    std::vector<Picture> pictures;
    for (const std::string& id : views)
        if (pictures.size() < kMostPictures) pictures.push_back({&viewById(id), 0, &m_workbench});
    showPictures(pictures.empty() ? std::vector{m_current} : pictures);
}

void Presenter::showPictures(const std::vector<Picture>& pictures) {
    std::string shown;
    for (const Picture& picture : pictures)
        shown.append(picture.view->card().id)
            .append(std::to_string(picture.pane))
            .append(picture.workbench == &m_workbench ? " " : ", second ");
    if (shown == m_shown) return;
    m_shown = shown;
    while (QLayoutItem* item = m_pictures->takeAt(0)) {
        discard(item->widget()); // which hides it, so that it computes nothing any more
        delete item;
    }
    for (const Picture& picture : pictures) m_pictures->addWidget(frameOf(picture, pictures.size() == 1), 1);
    m_steps.prefer(*pictures.front().view);
}

/// A view with its name and its finding.
QWidget* Presenter::frameOf(Picture picture, bool alone) {
    auto* frame = named("viewDock", new QFrame(this));
    auto* column = makeLayout<QVBoxLayout>(frame, {1, 4, 1, 1}, 2);
    auto* head = innerLayout<QHBoxLayout>(column, {8, 0, 8, 0}, 8);
    QLabel* title = added(head, named("presenterTitle", roleLabel({}, "dockTitle", frame)), 0, Qt::AlignTop);
    const auto name = [title, picture] { title->setText(pictureName(*picture.workbench, *picture.view)); };
    connect(picture.workbench, &Workbench::sessionChanged, title, name); // a second capture may be opened or closed
    name();
    auto* finding = new FindingLabel(alone ? kAnyLines : kMostLines, frame);
    head->addWidget(named("presenterFinding", finding), 1);
    auto* canvas = added(column, new ViewCanvas(*picture.workbench, *picture.view, picture.pane, m_text, frame), 1);
    const auto say = [canvas, finding] { finding->say(canvas->headerFinding()); };
    connect(canvas, &ViewCanvas::drawnChanged, frame, say);
    say();
    return frame;
}

void Presenter::followSteps() {
    const int steps = m_steps.steps();
    const bool isSaid = steps > 0 && !m_workbench.isWithheld(*m_steps.view(), true); // else what the lesson asks
    m_stepTitle->setVisible(isSaid);
    m_caption->setVisible(isSaid);
    if (!isSaid) return;
    m_stepTitle->setText(tr("STEP %1 OF %2").arg(m_steps.step()).arg(steps) + " · " +
                         fromUtf8(m_steps.stepSequence().title).toUpper());
    const QString caption = m_steps.caption();
    m_caption->setText(caption.isEmpty() ? tr("Nothing has happened yet.") : caption);
}

void Presenter::step(int by) {
    const int next = m_lesson->part() + by;
    if (!m_lesson->lesson() || next < 0 || next >= m_lesson->parts()) {
        emit lessonWanted(by);
        return;
    }
    m_lesson->showPart(next);
    followPart();
}

void Presenter::goToLast() {
    m_lesson->goToLast();
    followPart();
}

void Presenter::followPart() {
    followSteps();
    fitText();
}

/// The largest type in which the part needs no scroll bar.
void Presenter::fitText() {
    m_place->setText(tr("%1 of %2").arg(m_lesson->part() + 1).arg(m_lesson->parts()));
    const int width = px(kSideWidth);
    for (const int size : {20, 18, 16, 15, 14, 13, 12, 11}) {
        m_lesson->setStyleSheet(
            QString("QLabel[role=\"fact\"], QLabel[role=\"label\"], QRadioButton { font-size: %1px; }"
                    "QWidget#lessonParameters QLabel { font-size: %2px; }")
                .arg(px(size))
                .arg(px(11)));
        if (m_lesson->heightFor(width) <= m_area->height() && m_lesson->leastWidth() <= width) break;
    }
}

bool Presenter::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::Resize) QMetaObject::invokeMethod(this, &Presenter::fitText, Qt::QueuedConnection);
    return QWidget::eventFilter(watched, event);
}

bool Presenter::focusNextPrevChild(bool next) {
    QWidget* from = window()->focusWidget();
    if (!from || !isAncestorOf(from)) from = this;
    const auto after = [next](QWidget* one) { return next ? one->nextInFocusChain() : one->previousInFocusChain(); };
    for (QWidget* to = after(from); to != from; to = after(to))
        if (isAncestorOf(to) && to->isVisible() && to->isEnabled() && (to->focusPolicy() & Qt::TabFocus)) {
            to->setFocus(next ? Qt::TabFocusReason : Qt::BacktabFocusReason);
            break;
        }
    return true;
}

} // namespace kvscope
