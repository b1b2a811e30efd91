// `kvscope plot`: figures without a window. Options are turned into a session, so that options and saved sessions share
// one path.
#include "app/command_line/command.h"
#include "app/command_line/random_options.h"
#include "app/export/headless_application.h"
#include "app/export/scene_export.h"
#include "app/report/headless.h"
#include "app/study/compared_capture.h"
#include "app/study/live_cut.h"
#include "app/study/makers/view_data_maker.h"
#include "app/study/session_file.h"
#include "app/study/session_source.h"
#include "app/text/qt_text_service.h"
#include "core/base/error.h"
#include "core/base/number_text.h"
#include "core/capture/open_capture.h"
#include "views/common/view_facts.h"
#include "views/view.h"

#include <CLI/App.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace kvscope {

namespace {

struct FigureOptions {
    std::string size = "900x700", theme = "light", text = "fonts", out, select = "default", selectName, range;
    double scale = 1;
    TokenIndex top = -1; ///< of the text; -1: not given
    std::string cursor;
    bool footer = false;
    std::vector<std::string> viewSet;
};

std::pair<double, double> parseSize(const std::string& text) {
    int width = 0, height = 0;
    char rest = 0;
    if (std::sscanf(text.c_str(), "%5dx%5d%c", &width, &height, &rest) != 2 || width < 120 || height < 90 ||
        width > 20000 || height > 20000)
        throw Error({"'" + text + "' is no size of a figure", "--size", "Write it like 900x700; the least is 120x90"});
    return {width, height};
}

Viewport::Range parseRange(const std::string& text) {
    Viewport::Range range{};
    char rest = 0;
    if (std::sscanf(text.c_str(), "%lf,%lf,%lf,%lf%c", &range.xMin, &range.xMax, &range.yMin, &range.yMax, &rest) !=
            4 ||
        !(range.xMin < range.xMax) || !(range.yMin < range.yMax) || !std::isfinite(range.xMax - range.xMin) ||
        !std::isfinite(range.yMax - range.yMin))
        throw Error({"'" + text + "' is no range", "--range", "Write it like -5,5,-4,4 (xmin,xmax,ymin,ymax)"});
    return range;
}

/// Throws Error, naming the option, for a number outside the range and for a NaN, which the option parser accepts.
void checkNumber(double value, double least, double most, const std::string& option) {
    if (!(value >= least && value <= most))
        throw Error({fmt::format("{} is no value of this option", value), option,
                     fmt::format("Give a number from {} to {}", least, most)});
}

std::vector<TokenIndex> parseTokens(const std::string& text, const CaptureReader& capture) {
    std::vector<TokenIndex> tokens = parseRangeList(text, "--select");
    if (!tokens.empty() && tokens.back() >= capture.info().numTokens)
        throw Error({fmt::format("token {} is outside the capture", tokens.back()), "--select",
                     fmt::format("The capture has tokens 0 to {}", capture.info().numTokens - 1)});
    return tokens;
}

class PlotCommand final : public Command {
public:
    void addTo(CLI::App& app) override {
        m_command = app.add_subcommand("plot", "draw a view into PNG, SVG or PDF; needs no display");
        m_command->add_option("view", m_view, "what to draw; `kvscope views` lists them");
        m_command->add_option("capture", m_capture, "capture file");
        m_options.addTo(*m_command);
        m_random.addTo(*m_command, false);
        m_command->add_option("--layer", m_layer, "layer, 0-based")->check(CLI::NonNegativeNumber);
        m_command->add_option("--kv-head", m_kvHead, "KV head, 0-based")->check(CLI::NonNegativeNumber);
        m_command->add_option("--q-head", m_queryHead, "query head, 0-based; the first of the KV head by default")
            ->check(CLI::NonNegativeNumber);
        m_command->add_flag("--all-heads", m_allHeads, "the view for all heads of the layer, side by side")
            ->excludes("--kv-head")
            ->excludes("--q-head");
        m_command
            ->add_option("--selection", m_selections,
                         "a recorded list as a pane, beside those of --policy in the order given; may be repeated")
            ->allow_extra_args(false);
        m_command->add_option(
            "--select", m_figure.select,
            "tokens to highlight, like 611-626; by default the needle, of several the one asked for, as in the window; "
            "needles: all; none");
        m_command->add_option("--select-name", m_figure.selectName, "what the highlighted tokens are called");
        m_command->add_option("--range", m_figure.range, "xmin,xmax,ymin,ymax of the data shown, or all (the default)");
        m_command->add_option("--first-token", m_figure.top, "the text begins with the line of this token")
            ->check(CLI::NonNegativeNumber);
        m_command->add_option("--cursor", m_figure.cursor,
                              "tokens read, for views with a step sequence, or all (the default)");
        m_command->add_option("--view-set", m_figure.viewSet, "id=value of a view's option; may be repeated")
            ->allow_extra_args(false);
        m_command->add_option("--compare-with", m_compareWith,
                              "a second capture of the same model: its figure stands beside the first, with its own "
                              "needle highlighted; the view two_captures shows the difference");
        m_command->add_option("--session", m_session,
                              "a saved session instead of a capture; policies, lists, cut and seed that are given "
                              "replace its own");
        m_command->add_option("--pane", m_pane, "only this pane, 0-based")->check(CLI::NonNegativeNumber);
        m_command->add_option("--active", m_active, "the pane that a view of one policy shows, 0-based")
            ->check(CLI::NonNegativeNumber);
        m_command->add_option("--size", m_figure.size, "logical pixels, like 900x700");
        m_command->add_option("--scale", m_figure.scale, "device pixels per logical pixel (PNG)")
            ->check(CLI::Range(0.25, 16.0));
        m_command->add_option("--theme", m_figure.theme, "light, dark or paper")->type_name("{light,dark,paper}");
        m_command
            ->add_option("--text", m_figure.text,
                         "SVG and PDF: fonts (text, with the parts of the fonts that it needs) or outlines (shapes)")
            ->type_name("{fonts,outlines}");
        m_command->add_flag("--footer", m_figure.footer, "print the command below the figure");
        m_command->add_option("--out", m_figure.out, "FILE.png, FILE.svg or FILE.pdf")->required();
    }

    void run(const CommandContext& context) override {
        checkOptions();
        Session session = m_session.empty() ? sessionFromOptions() : sessionFromFile();
        const View& view = m_view.empty() ? *allViews().front() : viewById(m_view);
        const auto capture = openSource(sourceOf(session));
        aim(session, *capture);
        const auto other = compared(session, *capture);
        applyLook(session, view);
        activate(session);
        const FigureRequest figure = figureOf(session, view);

        const HeadlessApplication application; // text is measured by Qt
        const QtTextService text;
        const auto runner = m_options.makeRunner(session.arithmetic);
        const ViewDataMaker* maker = makerFor(view);
        if (m_allHeads && other)
            throw Error({"all heads are shown of one capture", "--all-heads", "Plot the two captures one by one"});
        SessionFigure drawn;
        if (m_allHeads)
            drawn = drawAllHeads(session, capture, figure, *runner, context.checkpoint("plot"), text,
                                 m_random.sourceFor(capture->info()));
        else if (other && !(maker && maker->dependsOn(DataScope::Compared)))
            drawn = drawBothCaptures(session, capture, other, figure, *runner, context.checkpoint("plot"), text);
        else
            drawn = drawOne(session, capture, figure, *runner, context, text);
        exportScene(drawn.scene, figure.outPath,
                    {.scale = figure.scale,
                     .command = context.commandLine(),
                     .title = drawn.title,
                     .footer = m_figure.footer,
                     .outlines = figure.outlines});
        context.clearProgress();
        fmt::print("{}\n", drawn.finding);
    }

private:
    SessionFigure drawOne(Session& session, const std::shared_ptr<const CaptureReader>& capture,
                          const FigureRequest& figure, const LayerRunner& runner, const CommandContext& context,
                          const TextService& text) {
        const View& view = viewById(figure.viewId);
        const ViewInput input = figureInput(session, capture, figure, runner, context.checkpoint("plot"),
                                            m_random.sourceFor(capture->info()));
        if (m_figure.top < 0 && m_session.empty() && view.card().place == ViewPlace::Text &&
            !session.selected.empty()) // the strip scrolls to the selected tokens
            session.look.stripTop =
                view.scrollTo(input, figureViewport(session, figure, text), session.selected.front()).value_or(0);
        return drawFigure(session, figure, input, text);
    }

    /// The second capture; null without one.
    std::shared_ptr<const CaptureReader> compared(Session& session, const CaptureReader& capture) const {
        if (!m_compareWith.empty()) compareWith(session, *openCapture(m_compareWith));
        if (m_figure.select == "none") session.compared.selected.clear();
        auto other = openCompared(session, capture);
        if (other && m_random.replays())
            throw Error({"given random numbers belong to one capture", "--compare-with",
                         "Draw them, or plot the two captures one by one"});
        return other;
    }

    /// Throws Error before any work.
    void checkOptions() const {
        const auto [width, height] = parseSize(m_figure.size);
        themeByName(m_figure.theme);
        if (m_figure.text != "fonts" && m_figure.text != "outlines")
            throw Error({"there is no text '" + m_figure.text + "'", "--text", "Choose fonts or outlines"});
        checkNumber(m_figure.scale, 0.25, 16, "--scale");
        if (m_figure.out.ends_with(".png")) checkImageSize(width, height, m_figure.scale);
        if (!m_session.empty() && !m_capture.empty())
            throw Error({.sentence = "a session names its own capture, and " + m_capture + " is another one",
                         .place = "--session",
                         .remedy = "Leave one of the two out"});
    }

    /// Options that are given replace what the session holds.
    Session sessionFromFile() const {
        Session session = readSession(m_session);
        if (m_options.policies.empty() && m_selections.empty())
            m_options.refuseBudgetAlone();
        else
            givePanes(session);
        if (m_command->count("--cut") > 0) session.cut = m_options.cut;
        readAtShownCut(session);
        if (m_command->count("--seed") > 0) session.seed = m_options.seed;
        return session;
    }

    Session sessionFromOptions() const {
        if (m_view.empty() || m_capture.empty())
            throw Error({"plot needs a view and a capture, or a session", "",
                         "Write kvscope plot VIEW CAPTURE ... or kvscope plot --session FILE ..."});
        Session session;
        session.capturePath = m_capture;
        session.cut = m_options.cut;
        session.seed = m_options.seed;
        givePanes(session);
        return session;
    }

    void givePanes(Session& session) const {
        session.panes.clear();
        session.panesLinked = false;
        session.activePane = 0;
        const bool onlyLists = m_options.policies.empty() && !m_selections.empty();
        if (onlyLists) m_options.refuseBudgetAlone();
        const std::vector<PolicySpec> specs = onlyLists ? std::vector<PolicySpec>{} : m_options.specs();
        // Policies and recorded lists in the order of the command line: the panes' letters follow it.
        auto spec = specs.begin();
        auto path = m_selections.begin();
        for (const CLI::Option* option : m_command->parse_order())
            if (option->check_name("--policy"))
                session.panes.push_back({*spec++, {}, {}});
            else if (option->check_name("--selection"))
                session.panes.push_back({{}, *path++, {}});
    }

    void select(Session& session, const CaptureReader& capture) const {
        if (m_figure.select == "none") {
            kvscope::select(session, {});
        } else if (m_figure.select == "needle" || (m_figure.select == "default" && m_session.empty())) {
            const Session first = firstSession(capture); // as a window shows it
            kvscope::select(session, first.selected, first.selectionName);
        } else if (m_figure.select == "needles") {
            kvscope::select(session, tokensOfKind(capture, SegmentKind::Needle), "needles");
        } else if (m_figure.select != "default") {
            kvscope::select(session, parseTokens(m_figure.select, capture), m_figure.selectName);
        }
    }

    FigureRequest figureOf(const Session& session, const View& view) const {
        const std::size_t panes = session.panes.size();
        if (panes == 0) throw Error({"the session has no pane to draw", "panes", "Add a policy to it", m_session});
        if (m_pane >= 0 && static_cast<std::size_t>(m_pane) >= panes)
            throw Error({fmt::format("there is no pane {}", m_pane), "--pane",
                         fmt::format("There are {} panes, counted from 0", panes)});
        FigureRequest figure;
        figure.viewId = view.card().id;
        if (m_pane >= 0) figure.pane = static_cast<std::size_t>(m_pane);
        std::tie(figure.width, figure.height) = parseSize(m_figure.size);
        figure.scale = m_figure.scale;
        figure.theme = m_figure.theme;
        figure.outlines = m_figure.text == "outlines";
        figure.outPath = m_figure.out;
        return figure;
    }

    void aim(Session& session, const CaptureReader& capture) const {
        const CaptureInfo& info = capture.info();
        if (m_layer >= 0 || m_session.empty()) session.layer = LayerIndex(std::max(0, m_layer));
        info.layerInfo(session.layer); // throws for a missing layer
        if (m_kvHead >= 0 || m_queryHead < 0)
            checkHead(m_kvHead >= 0 ? m_kvHead : session.kvHead.value, info.numKvHeads, "KV head", "--kv-head", info);
        if (m_kvHead >= 0) chooseKvHead(session, KvHeadIndex(m_kvHead), capture);
        if (m_queryHead >= 0) {
            checkHead(m_queryHead, info.numQueryHeads, "query head", "--q-head", info);
            chooseQueryHead(session, QueryHeadIndex(m_queryHead), capture);
        }
        if (m_kvHead >= 0 && session.kvHead.value != m_kvHead)
            throw Error(
                {fmt::format("query head {} reads KV head {}, not {}", m_queryHead, session.kvHead.value, m_kvHead),
                 "--kv-head, --q-head", "Leave one of the two out"});
        fitToCapture(session, capture);
        select(session, capture);
        if (m_figure.top >= info.numTokens)
            throw Error({fmt::format("there is no token {}", m_figure.top), "--first-token",
                         fmt::format("The capture has {} tokens: give 0 to {}", info.numTokens, info.numTokens - 1)});
        if (m_figure.cursor == "all") session.look.cursor.reset();
        if (m_figure.cursor.empty() || m_figure.cursor == "all") return;
        const auto cursor = parseNumber<TokenIndex>(m_figure.cursor);
        if (!cursor || *cursor < 0 || *cursor > info.numTokens)
            throw Error(
                {fmt::format("'{}' is no number of tokens that were read", m_figure.cursor), "--cursor",
                 fmt::format("The capture has {} tokens: give 0 to {}, or all", info.numTokens, info.numTokens)});
        session.look.cursor = *cursor;
    }

    void activate(Session& session) const {
        if (m_active >= static_cast<int>(session.panes.size()))
            throw Error({fmt::format("there is no pane {}", m_active), "--active",
                         fmt::format("Panes are counted from 0 to {}", session.panes.size() - 1)});
        if (m_active >= 0) session.activePane = m_active;
    }

    void applyLook(Session& session, const View& view) const {
        if (m_figure.range == "all") {
            session.look.ranges.erase(view.card().id);
            session.look.comparedRanges.erase(view.card().id);
        } else if (!m_figure.range.empty())
            session.look.ranges[view.card().id] = session.look.comparedRanges[view.card().id] =
                parseRange(m_figure.range);
        if (m_figure.top >= 0) session.look.stripTop = session.look.comparedTop = m_figure.top;
        ParameterValues checked(view.card().options); // refuses unknown values before anything is stored
        std::set<std::string> named;
        for (const std::string& set : m_figure.viewSet) {
            const std::size_t equals = std::min(set.find('='), set.size());
            const std::string id = set.substr(0, equals), value = equals < set.size() ? set.substr(equals + 1) : "";
            checked.setText(id, value);
            if (!named.insert(id).second)
                throw Error({"the option " + id + " is set twice", "--view-set", "Leave one of them out"});
            setViewOption(session, view.card().id, id, value);
        }
    }

    RunOptions m_options;
    RandomOptions m_random;
    FigureOptions m_figure;
    std::vector<std::string> m_selections;
    std::string m_view, m_capture, m_session, m_compareWith;
    bool m_allHeads = false;
    int m_layer = -1, m_kvHead = -1, m_queryHead = -1, m_pane = -1, m_active = -1;
};

} // namespace

std::unique_ptr<Command> makePlotCommand() { return std::make_unique<PlotCommand>(); }

} // namespace kvscope
