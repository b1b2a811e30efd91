// Blocks are set from top to bottom; a block that does not fit goes to the next page, together with its picture.
#include "app/report/handout.h"

#include "app/export/painter_scene.h"
#include "app/export/scene_export.h"
#include "app/lessons/lesson_answer.h"
#include "app/report/headless.h"
#include "app/study/session_file.h"
#include "app/study/session_requests.h"
#include "app/study/session_source.h"
#include "app/text/qt_text_service.h"
#include "core/base/error.h"

#include <QBuffer>
#include <QPainter>
#include <QPdfWriter>
#include <QTextBlock>
#include <QTextCursor>
#include <QTextDocument>

#include <fmt/format.h>

#include <algorithm>

namespace kvscope {

namespace {

// Logical pixels, 96 to the inch: A4 is 794 by 1,123.
constexpr double kDotsPerInch = 96, kPageWidth = 794, kPageHeight = 1123, kMargin = 64;
constexpr double kWidth = kPageWidth - 2 * kMargin, kPicture = 230;

enum class Style { Title, Head, Text, Label, Quiet };

/// A PDF that is written from top to bottom.
class Pages {
public:
    Pages() : m_writer(&m_buffer) {
        m_buffer.open(QIODevice::WriteOnly);
        m_writer.setResolution(1200);
        m_writer.setPageSize(QPageSize(QPageSize::A4));
        m_writer.setPageMargins(QMarginsF(0, 0, 0, 0));
        m_writer.setCreator("KVScope");
        m_writer.setTitle("Handout");
        m_writer.setDocumentXmpMetadata(pdfMetadata({.title = "Handout"}));
        if (!m_painter.begin(&m_writer)) fail();
        m_painter.scale(1200 / kDotsPerInch, 1200 / kDotsPerInch);
    }

    void newPage() {
        if (m_y > kMargin) turn();
    }
    void space(double height) { m_y += height; }
    /// Keeps what follows together: begins a new page unless this height fits on the page.
    void need(double height) {
        if (m_y + height > kPageHeight - kMargin) newPage();
    }

    double heightOf(const std::string& markdown, Style style) { return document(markdown, style)->size().height(); }

    void text(const std::string& markdown, Style style) {
        const auto page = document(markdown, style);
        if (page->size().height() > kPageHeight - 2 * kMargin) return paragraphs(markdown, style);
        need(page->size().height());
        m_painter.save();
        m_painter.translate(kMargin, m_y);
        page->drawContents(&m_painter);
        m_painter.restore();
        m_y += page->size().height();
    }

    void picture(const Scene& scene) {
        m_painter.save();
        m_painter.translate(kMargin, m_y);
        paintScene(m_painter, scene, {.rasteriseAbove = ExportOptions().rasteriseAbove});
        m_painter.restore();
        m_y += scene.height;
    }

    std::string finish() {
        number();
        if (!m_painter.end()) fail();
        return withoutDates(m_buffer.data()).toStdString();
    }

private:
    [[noreturn]] static void fail() { throw Error({"Qt could not make the PDF", "", "Choose fewer lessons"}); }

    /// Sets a text that is longer than a page paragraph by paragraph.
    void paragraphs(const std::string& markdown, Style style) {
        const std::size_t end = markdown.find("\n\n");
        if (end == std::string::npos)
            throw Error({"a paragraph of a lesson is longer than a page of the handout", markdown.substr(0, 60),
                         "Break it with an empty line"});
        text(markdown.substr(0, end), style);
        if (const std::size_t next = markdown.find_first_not_of('\n', end); next != std::string::npos)
            text(markdown.substr(next), style);
    }

    void turn() {
        number();
        if (!m_writer.newPage()) fail();
        m_y = kMargin;
    }

    void number() {
        m_painter.setFont(fontOf({.size = 9}));
        m_painter.drawText(QRectF(kMargin, kPageHeight - 44, kWidth, 16), Qt::AlignRight, QString::number(++m_page));
    }

    static std::unique_ptr<QTextDocument> document(const std::string& markdown, Style style) {
        const auto fontFor = [](Style of) {
            switch (of) {
            case Style::Title: return fontOf({.size = 19, .weight = FontWeight::SemiBold});
            case Style::Head: return fontOf({.size = 13, .weight = FontWeight::SemiBold});
            case Style::Label: return fontOf({.size = 11.5, .weight = FontWeight::Medium});
            case Style::Quiet: return fontOf({.size = 9.5});
            default: return fontOf({.size = 11.5});
            }
        };
        auto page = std::make_unique<QTextDocument>();
        page->setDocumentMargin(0);
        page->setDefaultFont(fontFor(style));
        page->setMarkdown(QString::fromStdString(markdown));
        for (QTextBlock block = page->begin(); block.isValid(); block = block.next()) {
            QTextBlockFormat format;
            format.setTopMargin(0);
            format.setBottomMargin(6);
            QTextCursor(block).mergeBlockFormat(format);
        }
        page->setTextWidth(kWidth);
        return page;
    }

    QBuffer m_buffer;
    QPdfWriter m_writer;
    QPainter m_painter;
    double m_y = kMargin;
    int m_page = 0;
};

/// The text, escaped so that Markdown shows it as it is, with its line breaks and the blanks before its lines.
std::string plain(const std::string& text) {
    constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"; // any may begin markup
    std::string out;
    bool atBegin = true; // of a line
    for (std::size_t i = text.find_first_not_of(" \t\r\n"); i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\r') continue;
        const bool isBlank = c == ' ' || c == '\t';
        if (c == '\n')
            out += out.ends_with('\n') || text.substr(i + 1, 1) == "\n" ? "\n" : "  \n";
        else if (isBlank && atBegin)
            out += c == '\t' ? "\u00a0\u00a0\u00a0\u00a0" : "\u00a0";
        else
            out.append(kPunctuation.find(c) != std::string_view::npos ? "\\" : "").append(1, c);
        atBegin = c == '\n' || (atBegin && isBlank);
    }
    return out;
}

class Handout {
public:
    explicit Handout(const Checkpoint& checkpoint) : m_checkpoint(checkpoint) {}

    void add(const HandoutLesson& of) {
        const Lesson& lesson = of.lesson;
        m_pages.newPage();
        m_pages.text(plain(titleOf(lesson)), Style::Title);
        if (!lesson.paper.empty()) m_pages.text(plain(lesson.paper), Style::Quiet);
        m_pages.text(lesson.text, Style::Text);
        if (lesson.stops.empty()) showPicture(of, lesson.start, lesson.views, "");
        for (std::size_t i = 0; i < lesson.stops.size(); ++i) {
            const LessonStop& stop = lesson.stops[i];
            const std::string title = stop.title.empty() ? "" : "**" + plain(stop.title) + ".** ";
            const std::string text = fmt::format("**{}.** {}{}", i + 1, title, plain(stop.text));
            m_pages.space(8);
            showPicture(of, stop.setting, stop.views.empty() ? lesson.views : stop.views, text);
        }
        ask(lesson);
    }

    void answers(const std::vector<HandoutLesson>& lessons) {
        m_pages.newPage();
        m_pages.text("Answers", Style::Title);
        for (const HandoutLesson& of : lessons) {
            if (of.lesson.question.empty()) continue;
            const Session& asked = of.lesson.asked;
            const ViewDataRequest request = dataRequestOf(asked, of.capture, Cut::resolve(asked.cut, *of.capture));
            const LessonAnswer answer = answerOf(of.lesson, *of.runner, request, m_checkpoint);
            const std::string text = explanation(of.lesson, answer);
            const std::string verdict =
                fmt::format("{}{}: {}", answer.valueText, answer.isRecorded ? " (recorded from the model)" : "",
                            of.lesson.choices[static_cast<std::size_t>(answer.choice)].text);
            m_pages.space(6);
            m_pages.need(m_pages.heightOf(text, Style::Text) + 48);
            m_pages.text(plain(titleOf(of.lesson)), Style::Head);
            m_pages.text(plain(verdict), Style::Label);
            m_pages.text(text, Style::Text);
        }
    }

    std::string finish() { return m_pages.finish(); }

private:
    static std::string titleOf(const Lesson& lesson) {
        return lesson.number > 0 ? fmt::format("{}  {}", lesson.number, lesson.title) : lesson.title;
    }

    /// The lesson's answer explains the choice that the lesson claims; for another choice it says nothing.
    static std::string explanation(const Lesson& lesson, const LessonAnswer& answer) {
        if (answer.choice == lesson.claim) return plain(answer.text);
        const LessonChoice& claimed = lesson.choices[static_cast<std::size_t>(lesson.claim)];
        return plain("The lesson explains another choice: " + claimed.text);
    }

    void ask(const Lesson& lesson) {
        if (lesson.question.empty()) return;
        m_pages.space(8);
        m_pages.need(m_pages.heightOf(plain(lesson.question), Style::Label) +
                     20.0 * static_cast<double>(lesson.choices.size()) + 24);
        m_pages.text("Predict", Style::Head);
        m_pages.text(plain(lesson.question), Style::Label);
        for (const LessonChoice& choice : lesson.choices) m_pages.text("☐  " + plain(choice.text), Style::Text);
    }

    /// The text, and on the same page the first view, and its finding unless that is what the lesson asks.
    void showPicture(const HandoutLesson& of, const Session& setting, const std::vector<std::string>& views,
                     const std::string& text) {
        if (views.empty()) {
            if (!text.empty()) m_pages.text(text, Style::Text);
            return;
        }
        FigureRequest figure;
        figure.viewId = views.front();
        figure.width = kWidth;
        figure.height = kPicture;
        figure.theme = "paper";
        figure.scale = 2; // of images inside the picture
        const View& view = viewById(figure.viewId);
        const ViewInput input = figureInput(setting, of.capture, figure, *of.runner, m_checkpoint);
        const SessionFigure drawn = drawFigure(setting, figure, input, m_text);
        const bool tells = std::ranges::find(of.lesson.withheld, figure.viewId) == of.lesson.withheld.end();
        std::string said = tells ? view.card().name + ". " + drawn.finding : view.card().name;
        if (setting.look.cursor) // the words of the step
            said += ". " + view.caption(input, viewOptions(setting, view));
        m_pages.need((text.empty() ? 0 : m_pages.heightOf(text, Style::Text)) + drawn.scene.height +
                     m_pages.heightOf(plain(said), Style::Quiet));
        if (!text.empty()) m_pages.text(text, Style::Text);
        m_pages.picture(drawn.scene);
        m_pages.text(plain(said), Style::Quiet);
    }

    Pages m_pages;
    QtTextService m_text;
    const Checkpoint& m_checkpoint;
};

} // namespace

std::string handoutPdf(const std::vector<HandoutLesson>& lessons, const Checkpoint& checkpoint) {
    Handout handout(checkpoint);
    for (const HandoutLesson& lesson : lessons) handout.add(lesson);
    if (std::ranges::any_of(lessons, [](const HandoutLesson& of) { return !of.lesson.question.empty(); }))
        handout.answers(lessons);
    return handout.finish();
}

HandoutLesson readHandoutLesson(const std::string& path, std::shared_ptr<const LayerRunner> runner) {
    const Session session = readSession(path);
    auto capture = openSource(sourceOf(session));
    auto lesson = lessonOf(session);
    if (!lesson)
        throw Error(
            {"the session is no lesson", "lesson", "Make one of it: File, Make a lesson of this session", path});
    // Each setting names a layer and a head of its own. A missing one is refused, as fitToCapture would replace it.
    const auto fit = [&](Session& setting) {
        const CaptureInfo& info = capture->info();
        info.layerInfo(setting.layer);
        if (setting.kvHead.value < 0 || setting.kvHead.value >= info.numKvHeads)
            throw Error({fmt::format("the capture has no KV head {}", setting.kvHead.value), "lesson",
                         fmt::format("It holds KV heads 0 to {}", info.numKvHeads - 1), path});
        fitToCapture(setting, *capture);
    };
    fit(lesson->start);
    for (LessonStop& stop : lesson->stops) fit(stop.setting);
    if (!lesson->question.empty()) fit(lesson->asked);
    return {std::move(*lesson), std::move(capture), std::move(runner)};
}

} // namespace kvscope
