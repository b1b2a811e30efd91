// Figures are light by default and have a chosen size, because they are made for paper. A figure is drawn as the
// command in its metadata draws it, and by the same functions.
#include "app/window/dialogs/export_dialog.h"

#include "app/export/scene_export.h"
#include "app/report/headless.h"
#include "app/study/pane_request.h"
#include "app/study/session_source.h"
#include "app/text/qt_text_service.h"
#include "app/window/canvas/capture_caption.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/notice_strip.h"
#include "app/window/widgets/small_widgets.h"
#include "app/window/widgets/write_aside.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/run/record_results.h"
#include "views/common/value_range.h"

#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDir>
#include <QFileInfo>
#include <QFormLayout>
#include <QGuiApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPointer>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>
#include <QVBoxLayout>

#include <memory>
#include <utility>

namespace kvscope {

namespace {

struct Choices {
    QComboBox *what, *size;
    QSpinBox *width, *height;
    QDoubleSpinBox* scale;
    QComboBox* theme;
    QCheckBox *footer, *outlines;
};

QSpinBox* pixelBox(int least, int value) {
    auto* box = new QSpinBox;
    box->setRange(least, 8000);
    box->setValue(value);
    box->setSuffix(" px");
    return box;
}

/// The pane that the view shows, else the active one.
int paneOf(const Workbench& workbench, const ViewCanvas& canvas) {
    return canvas.view().card().perPane ? canvas.pane() : workbench.session().activePane;
}

Choices buildForm(QDialog& dialog, const Workbench& workbench, const ViewCanvas& canvas) {
    Choices choices{new QComboBox,
                    new QComboBox,
                    pixelBox(120, static_cast<int>(canvas.width() / appearance().scale)),
                    pixelBox(90, static_cast<int>(canvas.height() / appearance().scale)),
                    new QDoubleSpinBox,
                    new QComboBox,
                    new QCheckBox(QObject::tr("Print the command below the figure")),
                    new QCheckBox(QObject::tr("Text as outlines, for editors without the fonts (SVG, PDF)"))};
    choices.what->addItem(QObject::tr("Figure: PNG, SVG or PDF"));
    const QChar letter('A' + paneOf(workbench, canvas));
    choices.what->addItem(QObject::tr("Kept list of pane %1, all layers: JSON, CSV or HDF5").arg(letter));
    choices.what->addItem(
        QObject::tr("Kept list of pane %1, layer %2 alone").arg(letter).arg(workbench.session().layer.value));
    choices.scale->setRange(1, 8);
    choices.scale->setValue(2);
    choices.theme->addItems({"light", "dark", "paper"});
    choices.size->addItem(QObject::tr("As in the window"), QSize(choices.width->value(), choices.height->value()));
    choices.size->addItem(QObject::tr("One column of a paper, 3.3 x 2.5 in"), QSize(317, 240)); // 96 pixels per inch
    choices.size->addItem(QObject::tr("Two columns of a paper, 7.0 x 2.75 in"), QSize(672, 264));
    auto* form = new QFormLayout(&dialog);
    form->addRow(QObject::tr("What"), choices.what);
    form->addRow(QObject::tr("Size"), choices.size);
    form->addRow(QObject::tr("Width"), choices.width);
    form->addRow(QObject::tr("Height"), choices.height);
    form->addRow(QObject::tr("PNG scale"), choices.scale);
    form->addRow(QObject::tr("Theme"), choices.theme);
    form->addRow(choices.outlines);
    form->addRow(choices.footer);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Save | QDialogButtonBox::Cancel);
    form->addRow(buttons);
    QObject::connect(buttons, &QDialogButtonBox::accepted, &dialog, &QDialog::accept);
    QObject::connect(buttons, &QDialogButtonBox::rejected, &dialog, &QDialog::reject);
    QObject::connect(choices.what, &QComboBox::currentIndexChanged, &dialog, [choices](int index) {
        for (QWidget* widget :
             std::initializer_list<QWidget*>{choices.size, choices.width, choices.height, choices.scale, choices.theme,
                                             choices.outlines, choices.footer})
            widget->setEnabled(index == 0);
    });
    QObject::connect(choices.size, &QComboBox::currentIndexChanged, &dialog, [choices](int index) {
        const QSize size = choices.size->itemData(index).toSize();
        choices.width->setValue(size.width());
        choices.height->setValue(size.height());
        choices.theme->setCurrentText(index == 0 ? "light" : "paper");
    });
    return choices;
}

FigureRequest figureOf(const ViewCanvas& canvas, const Choices& choices, const std::string& path) {
    FigureRequest figure;
    figure.viewId = canvas.view().card().id;
    if (canvas.view().card().perPane) figure.pane = static_cast<std::size_t>(canvas.pane());
    figure.width = choices.width->value();
    figure.height = choices.height->value();
    figure.scale = choices.scale->value();
    figure.theme = choices.theme->currentText().toStdString();
    figure.outlines = choices.outlines->isChecked();
    figure.outPath = path;
    return figure;
}

/// The session with the range of colours or of an axis that a view shares with another capture, so that the figures of
/// both share it.
Session asDrawn(const Workbench& workbench, const FigureRequest& figure) {
    Session session = workbench.session();
    const int pane = figure.pane ? static_cast<int>(*figure.pane) : -1;
    const ParameterValues options = workbench.drawn(viewById(figure.viewId), pane).options;
    if (options.has(kValueRangeOption) && !options.isDefault(kValueRangeOption))
        setViewOption(session, figure.viewId, kValueRangeOption, options.text(kValueRangeOption));
    return session;
}

/// Does what the command in the metadata does, on the session as it is now; known results come from the caches.
void writeFigure(QWidget& window, Workbench& first, const Workbench& workbench, const FigureRequest& figure,
                 bool footer, NoticeStrip& notices, const SavedLive& saved) {
    submitWriting(
        first, notices, fromUtf8(figure.outPath),
        [&window, session = asDrawn(workbench, figure), capture = workbench.capture(),
         runner = workbench.sharedRunner(), figure, footer, saved](const Checkpoint& checkpoint) {
            return [&window, session, figure, footer, saved,
                    input = figureInput(session, capture, figure, *runner, checkpoint)] { // text needs the GUI thread
                const SessionFigure drawn = drawFigure(session, figure, input, QtTextService());
                const std::string content = figureFile(drawn.scene, figure.outPath,
                                                       {.scale = figure.scale,
                                                        .command = plotCommand(session, figure, saved),
                                                        .title = drawn.title,
                                                        .footer = footer,
                                                        .outlines = figure.outlines});
                writeAside(&window, fromUtf8(figure.outPath),
                           [path = figure.outPath, content] { writeFileAtomically(path, content); });
            };
        });
}

/// The layers of a pane's list: those that a recorded list names, else all of the capture.
std::vector<LayerIndex> layersOf(const RunRequest& run) {
    std::vector<LayerIndex> layers;
    for (const LayerInfo& layer : run.capture->info().layers)
        if (!run.recorded || std::ranges::count(run.recorded->heads, layer.layer.value, &RecordedHead::layer) > 0)
            layers.push_back(layer.layer);
    return layers;
}

/// Does what the command in the list does, on the session as it is now; known results come from the caches.
void writeList(QWidget& window, Workbench& first, Workbench& workbench, const ViewCanvas& canvas,
               const std::string& path, bool allLayers, NoticeStrip& notices, const SavedLive& saved) {
    const Session& session = workbench.session();
    const auto pane = static_cast<std::size_t>(paneOf(workbench, canvas)); // -1 is beyond all panes
    const auto request = workbench.request();
    if (!request || pane >= request->panes.size())
        return notices.show("export", NoticeStrip::Tone::Error,
                            QObject::tr("There is no pane whose list could be written. Add a pane."));
    RecordFilter filter;
    filter.withScores = true;
    if (session.panes[pane].recordedPath.empty()) // no command makes a recorded list
        filter.command = evictCommand(session, pane, path, saved, allLayers);
    submitWriting(first, notices, fromUtf8(path),
                  [&window, path, allLayers, filter, asked = request->panes[pane],
                   runner = workbench.sharedRunner()](const Checkpoint& checkpoint) {
                      RunRequest run = resolvePane(asked);
                      run.measure = false;
                      const auto layers = allLayers ? layersOf(run) : std::vector{run.layer};
                      std::vector<std::shared_ptr<const RunResult>> results;
                      for (const LayerIndex layer : layers) {
                          run.layer = layer;
                          results.push_back(runner->run(run, checkpoint.step(results.size(), layers.size())));
                      }
                      return [&window, path, filter, results, capture = run.capture] {
                          writeAside(&window, fromUtf8(path), [path, filter, results, capture] {
                              writeSelection(path, recordSelection(results, filter), capture->tokens());
                          });
                      };
                  });
}

/// In this table Ctrl+C copies all selected cells; Qt's own table copies one of them.
class DataTable : public QTableView {
public:
    DataTable(ViewTableModel& model, QWidget* parent) : QTableView(parent), m_model(model) {
        setModel(&model);
        setTabKeyNavigation(false); // Tab goes to the button below
    }

protected:
    void keyPressEvent(QKeyEvent* event) override {
        if (!event->matches(QKeySequence::Copy)) return QTableView::keyPressEvent(event);
        const QItemSelection chosen = selectionModel()->selection();
        if (!chosen.isEmpty()) QGuiApplication::clipboard()->setText(selectionAsTsv(m_model, chosen));
    }

private:
    ViewTableModel& m_model;
};

} // namespace

void showExportDialog(QWidget& window, Workbench& first, ViewCanvas& canvas, NoticeStrip& notices,
                      const SavedLive& saved) {
    Workbench& workbench = canvas.workbench();
    QDialog dialog(&window);
    const bool perPane = canvas.view().card().perPane;
    const QChar letter('A' + paneOf(workbench, canvas));
    const QString name = fromUtf8(canvas.view().card().name);
    dialog.setWindowTitle(perPane ? QObject::tr("Export %1 of pane %2").arg(name, letter)
                                  : QObject::tr("Export %1").arg(name));
    const Choices choices = buildForm(dialog, workbench, canvas);
    const QPointer<ViewCanvas> there(&canvas); // a source that opens meanwhile may have fewer panes
    if (dialog.exec() != QDialog::Accepted || !there) return;
    const bool list = choices.what->currentIndex() > 0;
    const QFileInfo capture(fromUtf8(workbench.session().capturePath));
    const QString proposed = capture.dir().filePath(
        fromUtf8(stemOf(workbench.session())) + (list || perPane ? QString("-") + letter : QString()) +
        (list ? "-kept.json" : "-" + fromUtf8(canvas.view().card().id) + ".png"));
    const QString path =
        fileToWrite(&window, QObject::tr("Export"), proposed,
                    list ? QObject::tr("Lists (*.json *.csv *.h5)") : QObject::tr("Figures (*.png *.svg *.pdf)"));
    if (path.isEmpty() || !there) return;
    if (!list)
        return writeFigure(window, first, workbench, figureOf(canvas, choices, path.toStdString()),
                           choices.footer->isChecked(), notices, saved);
    writeList(window, first, workbench, canvas, path.toStdString(), choices.what->currentIndex() == 1, notices, saved);
}

DataDialog::DataDialog(Workbench& workbench, ViewCanvas& canvas, QWidget* parent) : QDialog(parent) {
    setAttribute(Qt::WA_DeleteOnClose);
    resize(px(760), px(520));
    auto* column = new QVBoxLayout(this);
    auto* table = added(column, new DataTable(m_model, this));
    table->setAlternatingRowColors(true);
    table->setFont(numberFont(12));
    table->verticalHeader()->setVisible(false);
    table->verticalHeader()->setDefaultSectionSize(px(22));
    auto* buttons = added(column, new QDialogButtonBox(this));
    QPushButton* copy = buttons->addButton(tr("Copy all as TSV"), QDialogButtonBox::ActionRole);
    buttons->addButton(QDialogButtonBox::Close);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);

    const QPointer<ViewCanvas> source(&canvas);
    const auto follow = [this, source, table, &workbench] {
        if (!source) return;
        QString title = tr("Data: %1").arg(pictureName(workbench, source->view()));
        if (source->view().card().perPane) title += tr(", pane %1").arg(QChar('A' + source->pane()));
        setWindowTitle(title);
        table->setAccessibleName(title);
        m_model.renew(source->table());
    };
    connect(copy, &QPushButton::clicked, this, [source] {
        if (source) QGuiApplication::clipboard()->setText(tableAsTsv(source->table()));
    });
    connect(&canvas, &QObject::destroyed, this, &QDialog::reject);
    workbench.tell(this, follow, &Workbench::panesChanged, &Workbench::sessionChanged);
    connect(&workbench, &Workbench::cursorChanged, this, [follow, &workbench, &view = canvas.view()] {
        // A view without steps has the same table at every step.
        const ParameterValues options = viewOptions(workbench.session(), view);
        if (!view.stepSequence(workbench.viewInput(view), options).events.empty()) follow();
    });
    // Progress alone is ignored: it does not change the table.
    connect(&workbench, &Workbench::dataChanged, this,
            [follow, &workbench, &view = canvas.view(),
             seen = std::shared_ptr<const ViewData>()](const QString& viewId) mutable {
                if (viewId != fromUtf8(view.card().id)) return;
                const auto now = workbench.viewInput(view).data.value;
                if (std::exchange(seen, now) == now) return;
                follow();
            });
    follow();
    table->resizeColumnsToContents();
}

} // namespace kvscope
