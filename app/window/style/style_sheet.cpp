// The rules as one text with token names in braces ({panel}, {12px}), so that it holds no literal colour.
#include "app/window/style/appearance.h"

#include <QHash>
#include <QRegularExpression>

#include <cmath>

namespace kvscope {

namespace {

constexpr const char* kSurfaces = R"(
QMainWindow, QWidget#canvasArea, QWidget#presenter { background: {window}; }
QWidget#topBar, QWidget#budgetBar { background: {panel}; border-bottom: 1px solid {border}; }
QToolBar#leftRail { background: {panel}; border: none; border-right: 1px solid {border}; padding: {8px} {8px};
    spacing: {4px}; }
QFrame#railPanels { background: {panel}; border: none; border-right: 1px solid {control}; }
QStatusBar { background: {panel}; border-top: 1px solid {border}; }
QStatusBar::item { border: none; }
QMainWindow::separator { background: {window}; width: {6px}; height: {6px}; }
QMainWindow::separator:hover { background: {border}; }
QDockWidget { color: {text1}; }
QTabBar { background: {window}; }
QTabBar::tab { background: {window}; color: {text2}; font-size: {11px}; padding: 0 {10px}; height: {24px};
    border: none; border-top: {2px} solid transparent; }
QTabBar::tab:hover { background: {hover}; color: {text1}; }
QTabBar::tab:selected { background: {panel}; color: {text1}; border-top-color: {ink}; }
QTabBar::tab:focus { color: {text1}; }
QWidget#panelBody, QScrollArea, QScrollArea > QWidget > QWidget#panelBody { background: {panel}; border: none; }
QWidget#viewDock { background: {canvas}; border: 1px solid {border}; }
QWidget#dockHeader { background: {panel}; border: none; border-bottom: 1px solid {border}; }
QWidget#dockHeader[active="true"] { border-top: 2px solid {ink}; }
QScrollArea#panelScroll { background: {panel}; }
QDialog, QMessageBox, QWidget#manualWindow { background: {panel}; }
QFrame#separator { background: {border}; border: none; max-height: 1px; min-height: 1px; }
QFrame#readOut { background: {raised}; border: 1px solid {control}; border-radius: {4px}; }
QFrame[tone] { background: {raised}; border: 1px solid {control}; border-left: {4px} solid {text2};
    border-radius: {4px}; }
QFrame[tone="success"] { border-left-color: {ok}; }
QFrame[tone="warning"] { background: {warningGround}; border-color: {warningLine}; }
QFrame[tone="error"] { background: {errorGround}; border-color: {errorLine}; }
QFrame[tone] > QLabel { border: none; background: transparent; border-radius: 0; }
QFrame#tour { background: {raised}; border: 1px solid {control}; border-radius: {6px}; }
QToolTip { background: {raised}; color: {text1}; border: 1px solid {control}; padding: {6px}; font-size: {12px}; }
)";

constexpr const char* kText = R"(
QLabel { color: {text1}; background: transparent; font-size: {12px}; }
QLabel[role="section"] { color: {text3}; font-size: {11px}; font-weight: 600; }
QLabel[role="quiet"] { color: {text3}; font-size: {11px}; }
QLabel[role="fact"] { color: {text2}; font-size: {12px}; }
QLabel[role="title"], QLabel[role="strong"] { font-size: {13px}; font-weight: 600; }
QLabel[role="warningTitle"] { color: {warning}; font-size: {12px}; font-weight: 600; }
QLabel[role="policyTitle"] { font-size: {15px}; font-weight: 600; }
QLabel[role="dockTitle"] { font-size: {12px}; font-weight: 600; }
QLabel[role="label"] { font-size: {12px}; font-weight: 500; }
QLabel[role="status"] { color: {text2}; font-size: {11px}; }
QLabel[role="caption"] { font-size: {15px}; }
QLabel[role="note"] { background: {raised}; border: 1px solid {border}; border-radius: {4px}; padding: {3px} {8px};
    font-size: {11px}; }
QLabel[role="error"] { color: {error}; font-size: {11px}; }
QLabel:disabled { color: {off}; }
QTextBrowser { background: {panel}; color: {text1}; border: none; font-size: {12px};
    selection-background-color: {ink}; selection-color: {paper}; }
)";

constexpr const char* kControls = R"(
QPushButton { background: {raised}; color: {text1}; border: 1px solid {control}; border-radius: {4px};
    padding: 0 {10px};
  min-height: {24px}; font-size: {12px}; font-weight: 500; icon-size: {16px}; }
QPushButton:hover { background: {hover}; }
QPushButton:pressed, QPushButton[primary="true"] { background: {ink}; color: {paper}; border-color: {ink}; }
QPushButton:focus { border: 2px solid {ink}; padding: 0 {9px}; }
QPushButton:disabled { color: {off}; border-color: {border}; }
QPushButton[look="link"] { border: none; background: transparent; color: {text2}; padding: 0 {4px}; }
QPushButton[look="link"]:hover { color: {text1}; background: {hover}; }
QPushButton[look="link"]:focus { border: 2px solid {ink}; }
QPushButton[look="link"]:checked { color: {text1}; }
QPushButton[look="link"]:disabled { color: {off}; }
QPushButton[look="fold"] { border: none; border-top: 1px solid {border}; border-radius: 0; background: transparent;
    color: {text2}; font-weight: 600; text-align: left; padding: 0 {9px}; min-height: {28px}; }
QPushButton[look="fold"]:hover { background: {hover}; color: {text1}; }
QPushButton[look="fold"]:focus { border: 2px solid {ink}; padding: 0 {7px}; }
QPushButton[look="fold"]:disabled { color: {text3}; }
QPushButton[look="row"] { border: 1px solid transparent; background: transparent; }
QPushButton[look="row"]:hover { background: {hover}; }
QPushButton[look="row"]:checked { background: {hover}; border-left: {3px} solid {ink}; border-radius: 0; }
QPushButton[look="row"][chosen="true"] { background: {ink}; }
QPushButton[look="row"]:focus { border: 2px solid {ink}; }
QPushButton[look="row"][chosen="true"]:focus { border: 2px solid {control}; }
QPushButton[chip="plain"], QPushButton[chip="warning"], QPushButton[chip="error"] { border-radius: {9px};
    padding: 0 {7px}; min-height: {18px}; max-height: {18px}; font-size: {11px}; }
QPushButton[chip="plain"] { background: transparent; color: {text2}; border: 1px solid {border}; }
QPushButton[chip="plain"]:hover { background: {hover}; color: {text1}; }
QPushButton[chip="warning"] { background: {warningGround}; color: {warning}; border: 1px solid {warningLine}; }
QFrame#budgetWarning { background: {warningGround}; border: 1px solid {warningLine}; border-radius: {4px}; }
QPushButton[chip="error"] { background: {errorGround}; color: {error}; border: 1px solid {errorLine}; }
QPushButton[chip="plain"]:focus, QPushButton[chip="warning"]:focus { border: 2px solid {ink}; padding: 0 {6px}; }
QPushButton::menu-indicator { image: none; width: 0; }
QToolButton { background: transparent; border: none; border-radius: {4px}; min-width: {24px}; min-height: {24px}; }
QToolButton:hover { background: {hover}; }
QToolButton:pressed, QToolButton:checked { background: {border}; }
QToolButton:focus { border: 2px solid {ink}; }
QToolButton::menu-indicator { image: none; }
QToolButton[look="status"] { color: {text2}; font-size: {11px}; padding: 0 {18px} 0 {6px}; min-height: {20px};
    max-height: {20px}; }
QToolButton[look="status"][tone="warning"] { color: {warning}; }
QToolButton[look="status"]:hover { color: {text1}; }
QToolButton[look="status"]:disabled { color: {text3}; }
QToolButton[look="status"]::menu-indicator { image: url(:/icons/{chevron}.svg); width: {10px}; height: {10px};
    subcontrol-position: center right; right: {5px}; }
QToolButton[look="transport"] { background: {raised}; border: 1px solid {control}; }
QToolButton[look="transport"]:hover { background: {hover}; }
QToolButton[look="transport"]:focus { border: 2px solid {ink}; }
QToolButton[look="transport"]:disabled { border-color: {border}; background: {panel}; }
QToolButton[look="play"] { background: {ink}; border: 1px solid {ink}; }
QToolButton[look="play"]:hover { background: {text2}; }
QToolButton[look="play"]:focus { border: 2px solid {control}; }
QToolButton[look="play"]:disabled { background: {border}; border-color: {border}; }
QLineEdit, QAbstractSpinBox, QPlainTextEdit { background: {canvas}; border: 1px solid {control}; border-radius: {4px};
  padding: 0 {6px}; min-height: {22px}; font-size: {12px}; selection-background-color: {ink};
  selection-color: {paper}; }
QAbstractSpinBox QLineEdit, QAbstractSpinBox QLineEdit:focus { background: transparent; border: none; padding: 0;
  min-height: 0; }
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { border: none; width: {18px}; }
QAbstractSpinBox::up-arrow { image: url(:/icons/{chevronUp}.svg); width: {10px}; height: {10px}; }
QAbstractSpinBox::down-arrow { image: url(:/icons/{chevron}.svg); width: {10px}; height: {10px}; }
QLineEdit[number="true"] { font-family: "Noto Sans Mono", "DejaVu Sans Mono"; }
QLineEdit:focus, QAbstractSpinBox:focus, QPlainTextEdit:focus { border: 2px solid {ink}; padding: 0 {5px}; }
QLineEdit[wrong="true"] { color: {error}; border-color: {errorLine}; }
QLineEdit:disabled, QAbstractSpinBox:disabled { background: {panel}; color: {off}; border-color: {border}; }
QComboBox { background: {raised}; color: {text1}; border: 1px solid {control}; border-radius: {4px}; padding: 0 {8px};
  min-height: {22px}; font-size: {12px}; }
QComboBox:focus { border: 2px solid {ink}; padding: 0 {7px}; }
QComboBox:disabled { color: {off}; border-color: {border}; }
QComboBox::drop-down { border: none; width: {18px}; }
QComboBox::down-arrow { image: url(:/icons/{chevron}.svg); width: {12px}; height: {12px}; }
QComboBox QAbstractItemView { background: {raised}; color: {text1}; border: 1px solid {control}; outline: none;
  selection-background-color: {ink}; selection-color: {paper}; font-size: {12px}; }
QRadioButton { color: {text1}; font-size: {12px}; spacing: {7px}; background: transparent; min-height: {24px}; }
QRadioButton::indicator { width: {12px}; height: {12px}; border: 1px solid {control}; border-radius: {6px};
    background: {raised}; }
QRadioButton::indicator:checked { background: qradialgradient(cx: 0.5, cy: 0.5, radius: 0.5, fx: 0.5, fy: 0.5,
    stop: 0 {ink}, stop: 0.55 {ink}, stop: 0.65 {raised}, stop: 1 {raised}); border-color: {ink}; }
QRadioButton:focus { outline: none; }
QRadioButton::indicator:focus { border: 2px solid {ink}; }
QCheckBox { color: {text1}; font-size: {12px}; spacing: {7px}; background: transparent; }
QCheckBox::indicator { width: {13px}; height: {13px}; border: 1px solid {control}; border-radius: {3px};
    background: {raised}; }
QCheckBox::indicator:checked { background: {ink}; border-color: {ink}; image: url(:/icons/{tick}.svg); }
QCheckBox:focus { outline: none; }
QCheckBox::indicator:focus { border: 2px solid {ink}; }
)";

constexpr const char* kLists = R"(
QMenuBar { background: transparent; color: {text1}; font-size: {13px}; spacing: 0; border: none; }
QMenuBar::item { background: transparent; padding: {5px} {8px}; border-radius: {4px}; }
QMenuBar::item:selected { background: {hover}; }
QMenuBar::item:pressed { background: {ink}; color: {paper}; }
QMenu { background: {raised}; color: {text1}; border: 1px solid {control}; padding: {4px}; font-size: {12px}; }
QMenu::item { padding: {5px} {24px} {5px} {20px}; border-radius: {3px}; }
QMenu::item:selected { background: {ink}; color: {paper}; }
QMenu::item:disabled { color: {off}; background: transparent; }
QMenu::separator { height: 1px; background: {border}; margin: {4px} {6px}; }
QTableView, QTableWidget { background: {canvas}; alternate-background-color: {panel}; color: {text1};
    border: 1px solid {border};
  gridline-color: {grid}; selection-background-color: {ink}; selection-color: {paper}; font-size: {12px}; }
QLabel[role="menuHeading"] { color: {text2}; font-size: {10px}; font-weight: 600; padding: {6px} {20px} {2px} {20px}; }
QMenu[long="true"] { menu-scrollable: 1; }
QMenu[long="true"]::item { padding: {2px} {24px} {2px} {20px}; }
QLineEdit#menuSearch { margin: {2px} {6px}; }
QTableView#worstHeads::item:selected { background: {hover}; color: {text1}; }
QHeaderView::section { background: {panel}; color: {text2}; border: none; border-bottom: 1px solid {border};
    padding: {3px} {6px}; font-size: {11px}; font-weight: 600; }
QTableCornerButton::section { background: {panel}; border: none; }
QSplitter::handle { background: {window}; }
QScrollBar:vertical { background: transparent; width: {10px}; margin: 0; }
QScrollBar:horizontal { background: transparent; height: {10px}; margin: 0; }
QScrollBar::handle { background: {control}; border-radius: {3px}; margin: {2px}; }
QScrollBar::handle:vertical { min-height: {28px}; }
QScrollBar::handle:horizontal { min-width: {28px}; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
)";

QHash<QString, QString> tokensOf(const Theme& theme) {
    const auto name = [](Colour colour) { return qColor(colour).name(); };
    return {{"window", name(theme.window)},
            {"panel", name(theme.panel)},
            {"canvas", name(theme.canvas)},
            {"raised", name(theme.raised)},
            {"hover", name(theme.hover)},
            {"border", name(theme.border)},
            {"control", name(theme.control)},
            {"grid", name(theme.grid)},
            {"text1", name(theme.text1)},
            {"text2", name(theme.text2)},
            {"text3", name(theme.text3)},
            {"tick", theme.id == ThemeId::Dark ? "tick" : "tick_light"},
            {"chevron", theme.id == ThemeId::Dark ? "chevron_down_light" : "chevron_down"},
            {"chevronUp", theme.id == ThemeId::Dark ? "chevron_up_light" : "chevron_up"},
            {"off", name(theme.off)},
            {"ink", name(theme.ink)},
            {"paper", name(theme.paper)},
            {"ok", name(theme.ok)},
            {"warning", name(theme.warning)},
            {"warningGround", name(theme.warningGround)},
            {"warningLine", name(theme.warningLine)},
            {"error", name(theme.error)},
            {"errorGround", name(theme.errorGround)},
            {"errorLine", name(theme.errorLine)}};
}

} // namespace

QString styleSheetOf(const Theme& theme, double scale) {
    const QString rules = QString::fromUtf8(kSurfaces) + kText + kControls + kLists;
    const QHash<QString, QString> tokens = tokensOf(theme);
    static const QRegularExpression placeholder(R"(\{(\w+)\})");
    QString sheet;
    qsizetype end = 0;
    for (auto matches = placeholder.globalMatch(rules); matches.hasNext();) {
        const QRegularExpressionMatch match = matches.next();
        const QString name = match.captured(1);
        sheet += rules.mid(end, match.capturedStart() - end);
        sheet += name.endsWith("px") ? QString("%1px").arg(std::lround(name.chopped(2).toDouble() * scale))
                                     : tokens.value(name, "/* " + name + " */");
        end = match.capturedEnd();
    }
    return sheet + rules.mid(end);
}

} // namespace kvscope
