// Controls for a view's options, from the same kind of table as a policy's parameters.
#include "app/window/canvas/view_options.h"

#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "core/base/error.h"
#include "views/common/view_options.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QInputDialog>
#include <QLineEdit>
#include <QMenu>
#include <QTimer>
#include <QWidgetAction>

#include <algorithm>
#include <cmath>

namespace kvscope {

namespace {

constexpr int kMostChips = 2, kMostModelChips = 4; // other options are in the menu
constexpr std::size_t kLongMenu = 12;              // a menu with more choices has headings and a search
constexpr double kMostNumbers = 16;                // more are not listed one by one

void addEntry(QMenu* menu, Workbench& workbench, const View& view, const ParameterSpec& spec, const QString& label,
              const std::string& text, bool checked) {
    QAction* action = menu->addAction(label);
    action->setCheckable(true);
    action->setChecked(checked);
    QObject::connect(action, &QAction::triggered, menu,
                     [&workbench, viewId = view.card().id, id = spec.id, text, step = spec.label] {
                         workbench.change([&](Session& s) { setViewOption(s, viewId, id, text); }, fromUtf8(step));
                     });
}

/// The label of a choice that names a pane, such as "A KeyDiff"; empty if there is no such pane.
QString paneLabel(const Workbench& workbench, const ParameterChoice& choice) {
    for (const PaneData& pane : workbench.viewInput().panes)
        if (choice.id == std::string(1, pane.letter)) return fromUtf8(choice.id + " " + pane.policyName);
    return {};
}

QString labelOf(const Workbench& workbench, const ParameterSpec& spec, const ParameterChoice& choice) {
    return spec.unit == kPaneUnit ? paneLabel(workbench, choice) : fromUtf8(choice.label);
}

/// Shows the entries with the text in their name, and the headings over them. An action that is hidden leaves its label
/// in the menu, over the entries: the label is hidden, too.
void showFound(const QList<QAction*>& actions, const QString& text) {
    bool any = false; // entries between this action and the next heading
    for (auto action = actions.rbegin(); action != actions.rend(); ++action) {
        auto* heading = qobject_cast<QWidgetAction*>(*action);
        if (!heading) {
            (*action)->setVisible((*action)->text().contains(text, Qt::CaseInsensitive));
            any = any || (*action)->isVisible();
        } else if (auto* label = qobject_cast<QLabel*>(heading->defaultWidget())) { // not the field
            heading->setVisible(any);
            label->setVisible(any);
            any = false;
        }
    }
}

/// Lists the choices under the headings of their groups; a field on top finds choices by a part of their name.
void fillLongMenu(QMenu* menu, Workbench& workbench, const View& view, const ParameterSpec& spec) {
    const std::string chosen = viewOptions(workbench.session(), view).choice(spec.id);
    menu->setProperty("long", true);
    auto* search = named("menuSearch", new QLineEdit(menu));
    search->setPlaceholderText(QObject::tr("Find"));
    auto* field = new QWidgetAction(menu);
    field->setDefaultWidget(search);
    menu->addAction(field);
    std::string group;
    for (const ParameterChoice& choice : spec.choices) {
        if (choice.group != group) {
            auto* heading = new QWidgetAction(menu);
            heading->setDefaultWidget(roleLabel(fromUtf8(group = choice.group).toUpper(), "menuHeading", menu));
            menu->addAction(heading);
        }
        addEntry(menu, workbench, view, spec, fromUtf8(choice.label), choice.id, chosen == choice.id);
    }
    QObject::connect(search, &QLineEdit::textChanged, menu, [menu](const QString& text) {
        showFound(menu->actions(), text);
        menu->resize(menu->sizeHint()); // else it keeps too low a height, with a scroller
    });
    QObject::connect(search, &QLineEdit::returnPressed, menu, [menu] {
        for (QAction* action : menu->actions())
            if (action->isCheckable() && action->isVisible()) {
                menu->close();
                return action->trigger();
            }
    });
    QTimer::singleShot(0, search, [search] { search->setFocus(); });
}

void fillChoices(QMenu* menu, Workbench& workbench, const View& view, const ParameterSpec& spec) {
    const ParameterValues values = viewOptions(workbench.session(), view);
    menu->clear();
    if (spec.choices.size() > kLongMenu) return fillLongMenu(menu, workbench, view, spec);
    if (spec.kind == ParameterKind::Choice) {
        for (const ParameterChoice& choice : spec.choices)
            if (const QString label = labelOf(workbench, spec, choice); !label.isEmpty())
                addEntry(menu, workbench, view, spec, label, choice.id, values.choice(spec.id) == choice.id);
    } else
        for (auto number = std::llround(spec.min); number <= std::llround(spec.max);
             number += std::max(1LL, std::llround(spec.step)))
            addEntry(menu, workbench, view, spec, QString::number(number), std::to_string(number),
                     values.integer(spec.id) == number);
}

/// Asks for a value that has too many choices for a list; after an invalid answer asks again and shows its error.
void askFor(QWidget* parent, Workbench& workbench, const View& view, const ParameterSpec& spec) {
    const QString label = fromUtf8(spec.label), help = fromUtf8(spec.help);
    QString text = fromUtf8(viewOptions(workbench.session(), view).text(spec.id)), wrong;
    for (bool accepted = false;;) {
        text = QInputDialog::getText(parent, label, wrong.isEmpty() ? help : help + "\n\n" + wrong, QLineEdit::Normal,
                                     text, &accepted)
                   .trimmed();
        if (!accepted) return;
        try {
            ParameterValues(view.card().options).setText(spec.id, text.toStdString());
            return workbench.change([&](Session& s) { setViewOption(s, view.card().id, spec.id, text.toStdString()); },
                                    label);
        } catch (const Error& error) {
            wrong = fromUtf8(error.what());
        }
    }
}

void addQuestion(QMenu* menu, Workbench& workbench, const View& view, const ParameterSpec& spec) {
    const ParameterValues values = viewOptions(workbench.session(), view);
    const QString value = fromUtf8(values.text(spec.id));
    QAction* action = menu->addAction(value.isEmpty() ? fromUtf8(spec.label) + "…"
                                                      : QString("%1: %2…").arg(fromUtf8(spec.label), value));
    QObject::connect(action, &QAction::triggered, menu,
                     [menu, &workbench, &view, spec] { askFor(menu->parentWidget(), workbench, view, spec); });
}

/// The active pane's parameters by name; the values of the chosen one are typed.
void fillParameters(QMenu* menu, Workbench& workbench, const View& view, const ParameterSpec& spec) {
    const Session& now = workbench.session();
    const std::string chosen = viewOptions(now, view).text(spec.id);
    menu->clear();
    const bool any = spec.unit == kParameterUnit;
    addEntry(menu, workbench, view, spec, any ? QObject::tr("Automatic") : QObject::tr("Budget"), {}, chosen.empty());
    if (any) addEntry(menu, workbench, view, spec, QObject::tr("Budget"), "budget", chosen == "budget");
    const auto pane = static_cast<std::size_t>(now.activePane);
    if (pane < now.panes.size() && now.panes[pane].recordedPath.empty())
        for (const ParameterSpec& one : now.panes[pane].policy.values.table()) {
            const bool number = one.kind == ParameterKind::Real || one.kind == ParameterKind::Integer;
            if (number || (one.kind != ParameterKind::Text && any))
                addEntry(menu, workbench, view, spec, fromUtf8(one.label), one.id, chosen == one.id);
        }
    menu->addSeparator();
    addQuestion(menu, workbench, view, spec);
}

std::vector<std::string> chosenFiles(Workbench& workbench, const View& view, const ParameterSpec& spec) {
    const std::string text = viewOptions(workbench.session(), view).text(spec.id);
    if (spec.unit == kCaptureFilesUnit) return filesOf(text);
    return text.empty() ? std::vector<std::string>{} : std::vector{text}; // one table
}

/// Asks for files: a table replaces the previous one, captures are added to the list.
void chooseFiles(QWidget* parent, Workbench& workbench, const View& view, const ParameterSpec& spec) {
    const bool captures = spec.unit == kCaptureFilesUnit;
    const QString label = fromUtf8(spec.label), folder = QFileInfo(fromUtf8(workbench.session().capturePath)).path();
    QStringList chosen =
        captures
            ? QFileDialog::getOpenFileNames(parent, label, folder, QObject::tr("Captures (*.h5 *.hdf5);;All files (*)"))
            : QStringList(
                  QFileDialog::getOpenFileName(parent, label, folder, QObject::tr("Tables (*.csv);;All files (*)")));
    chosen.removeAll(QString());
    if (chosen.isEmpty()) return;
    std::string text = chosen.first().toStdString();
    if (captures) {
        std::vector<std::string> files = chosenFiles(workbench, view, spec);
        for (const QString& file : chosen)
            if (const std::string path = file.toStdString(); std::ranges::find(files, path) == files.end())
                files.push_back(path);
        text = filesText(files);
    }
    workbench.change([&](Session& s) { setViewOption(s, view.card().id, spec.id, text); }, label);
}

/// The chosen files, each removable, and an entry to choose others.
void fillFiles(QMenu* menu, Workbench& workbench, const View& view, const ParameterSpec& spec) {
    const std::vector<std::string> files = chosenFiles(workbench, view, spec);
    menu->clear();
    addEntry(menu, workbench, view, spec, QObject::tr("None"), {}, files.empty());
    for (const std::string& file : files) {
        std::vector<std::string> others = files;
        others.erase(std::ranges::find(others, file));
        addEntry(menu, workbench, view, spec, QFileInfo(fromUtf8(file)).fileName(), filesText(others), true);
    }
    menu->addSeparator();
    QAction* choose = menu->addAction(QObject::tr("Choose…"));
    QObject::connect(choose, &QAction::triggered, menu,
                     [menu, &workbench, &view, spec] { chooseFiles(menu->parentWidget(), workbench, view, spec); });
    addQuestion(menu, workbench, view, spec);
}

QString chipText(const Workbench& workbench, const ParameterSpec& spec, const ParameterValues& values) {
    for (const ParameterChoice& choice : spec.choices)
        if (choice.id == values.choice(spec.id)) {
            const QString label = labelOf(workbench, spec, choice);
            return (label.isEmpty() ? fromUtf8(choice.label) : label) + " ▾";
        }
    return {};
}

/// Disables the entry or chip of an option that another option's value makes ineffective; the tool tip names that
/// value. False: the option is disabled.
bool greyIfIdle(auto* control, const View& view, const ParameterValues& values, const ParameterSpec& spec) {
    const std::string why = whyIdle(view, values, spec.id);
    control->setEnabled(why.empty());
    control->setToolTip(fromUtf8(why.empty() ? spec.help : why));
    return why.empty();
}

} // namespace

void addOptionEntries(QMenu* menu, Workbench& workbench, const View& view) {
    const ParameterValues values = viewOptions(workbench.session(), view);
    for (const ParameterSpec& spec : *view.card().options) {
        if (spec.kind == ParameterKind::Flag)
            addEntry(menu, workbench, view, spec, fromUtf8(spec.label), values.flag(spec.id) ? "false" : "true",
                     values.flag(spec.id));
        else if (spec.kind == ParameterKind::Choice ||
                 (spec.kind == ParameterKind::Integer && spec.max - spec.min < kMostNumbers))
            fillChoices(menu->addMenu(fromUtf8(spec.label)), workbench, view, spec);
        else if (spec.unit == kParameterUnit || spec.unit == kNumberUnit)
            fillParameters(menu->addMenu(fromUtf8(spec.label)), workbench, view, spec);
        else if (spec.unit == kCaptureFilesUnit || spec.unit == kTableFileUnit)
            fillFiles(menu->addMenu(fromUtf8(spec.label)), workbench, view, spec);
        else
            addQuestion(menu, workbench, view, spec);
        greyIfIdle(menu->actions().constLast(), view, values, spec);
    }
    menu->setToolTipsVisible(true);
}

void addOptionChips(Workbench& workbench, const View& view, QHBoxLayout* row, QWidget* parent) {
    std::vector<std::pair<const ParameterSpec*, QPushButton*>> chips; // only options that have an effect now are shown
    for (const ParameterSpec& spec : *view.card().options) {
        if (spec.kind != ParameterKind::Choice) continue;
        QPushButton* chip = added(row, chipButton({}, "plain", parent));
        chip->setAccessibleName(fromUtf8(spec.label));
        auto* menu = new QMenu(chip);
        chip->setMenu(menu);
        menu->setProperty("long", spec.choices.size() > kLongMenu); // before the style sheet is applied
        QObject::connect(menu, &QMenu::aboutToShow, chip,
                         [menu, &workbench, &view, spec] { fillChoices(menu, workbench, view, spec); });
        chips.emplace_back(&spec, chip);
    }
    const auto follow = [chips, &workbench, &view] {
        const ParameterValues values = viewOptions(workbench.session(), view);
        int room = view.card().place == ViewPlace::Model ? kMostModelChips : kMostChips;
        for (const auto& [spec, chip] : chips) {
            chip->setText(chipText(workbench, *spec, values));
            const bool acts = greyIfIdle(chip, view, values, *spec);
            chip->setVisible(acts && room-- > 0);
        }
    };
    QObject::connect(&workbench, &Workbench::sessionChanged, parent, follow);
    follow();
}

} // namespace kvscope
