// Checks run on a worker. The newest one wins: the scheduler drops those asked for earlier.
#include "app/window/dialogs/from_text_dialog.h"

#include "app/live/live_client.h"
#include "app/study/live_example.h"
#include "app/window/style/appearance.h"
#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "core/base/atomic_file.h"
#include "core/base/error.h"
#include "core/base/one_line.h"
#include "views/common/view_facts.h"

#include <QCheckBox>
#include <QComboBox>
#include <QCompleter>
#include <QDialogButtonBox>
#include <QFileDialog>
#include <QGridLayout>
#include <QPlainTextEdit>
#include <QSettings>
#include <QSpinBox>

#include <algorithm>
#include <utility>

namespace kvscope {

namespace {

constexpr const char *kLastKey = "live/last", *kSlot = "live check";
constexpr int kMostRemembered = 1 << 20;
constexpr std::chrono::milliseconds kPause{500}; // of typing

QString contextText(const std::vector<live::TextPart>& parts) {
    std::string text;
    for (const live::TextPart& part : parts) text += part.text;
    return fromUtf8(text);
}

QString sentence(const std::string& message) {
    return message.empty() ? QString() : fromUtf8(withFullStop(asSentence(message)));
}

} // namespace

struct FromTextDialog::Worker {
    std::string command;
    std::shared_ptr<live::LiveClient> client;
    std::optional<std::vector<std::string>> models; ///< in the Hub's cache, as `client` has told

    live::LiveClient& runFor(const std::string& wanted, const Checkpoint& checkpoint,
                             std::function<void(const std::string&)> startSays) {
        if (!client || command != wanted || !client->lost().empty()) {
            client.reset();
            models.reset();
            command = wanted;
            live::WorkerOptions options;
            options.command = wanted;
            options.startSays = std::move(startSays);
            client = std::make_shared<live::LiveClient>(options, checkpoint);
        }
        return *client;
    }
};

struct FromTextDialog::Found {
    std::optional<live::Json> versions;
    std::vector<live::Device> devices;
    std::optional<live::ModelFacts> model;
    std::optional<TokenTable> tokens;
    std::optional<TokenIndex> cut;
    std::vector<std::string> cached; ///< models
    std::string pythonError, modelError, textError, cutError;
};

FromTextDialog::FromTextDialog(Workbench& workbench, const live::LiveDescription& first, QWidget* parent)
    : QDialog(parent), m_workbench(workbench), m_worker(std::make_shared<Worker>()),
      m_soon(workbench.clock().makeTimer([this] { check(); })) {
    setObjectName("fromText");
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("New from text"));
    m_grid = makeLayout<QGridLayout>(this, {16, 12, 16, 12}, 6);
    m_grid->setColumnStretch(1, 1);
    m_model = named("liveModel", new QComboBox(this));
    m_model->setEditable(true);
    m_model->setInsertPolicy(QComboBox::NoInsert);
    m_model->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    m_model->completer()->setCompletionMode(QCompleter::PopupCompletion); // a part of a name finds it
    m_model->completer()->setFilterMode(Qt::MatchContains);
    offerModels({});
    auto* folder = new QPushButton(tr("Folder…"), this);
    connect(folder, &QPushButton::clicked, this, [this] {
        const QString chosen = QFileDialog::getExistingDirectory(this, tr("Folder of a model"), m_model->currentText());
        if (!chosen.isEmpty()) m_model->setEditText(chosen);
    });
    m_modelSays = addRow(tr("Model"), m_model, folder, "modelSays");
    m_model->setToolTip(
        tr("A folder, or the name of a model in the Hub's cache of the worker's machine, which the list "
           "holds; nothing is downloaded."));
    m_python = named("livePython", new QLineEdit(this));
    auto* again = named("checkPython", new QPushButton(tr("Check"), this));
    connect(again, &QPushButton::clicked, this, &FromTextDialog::check);
    connect(&m_workbench, &Workbench::captureChanged, this, [this] {
        if (m_isChecking) check(); // opening another capture has cancelled the job
    });
    m_pythonSays = addRow(tr("Python"), m_python, again, "pythonSays");
    m_python->setToolTip(tr("A Python that has kvscope-tools, or a command that runs one: ssh -T gpu7 python3"));
    addRow({}, buildRun());
    m_textSays = addRow(tr("Text"), buildText(), nullptr, "textSays");
    m_grid->setRowStretch(m_grid->rowCount() - 2, 1);
    addRow(tr("Question"), m_question = named("liveQuestion", new QLineEdit(this)));
    addRow(tr("Expected answer"), m_answer = named("liveAnswer", new QLineEdit(this)));
    m_answer->setToolTip(tr("Its loss behind every pane's context is measured; may be empty."));
    m_cutSays = addRow(tr("Cut"), buildCut(), nullptr, "cutSays");
    m_cutSays->setTextFormat(Qt::RichText);
    m_cutSays->setTextInteractionFlags(Qt::LinksAccessibleByMouse | Qt::LinksAccessibleByKeyboard);
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Open | QDialogButtonBox::Cancel, this);
    buttons->setObjectName("fromTextButtons");
    m_grid->addWidget(buttons, m_grid->rowCount(), 0, 1, 3);
    connect(buttons, &QDialogButtonBox::accepted, this, &FromTextDialog::openContext);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    fill(first);
    connect(m_model, &QComboBox::currentTextChanged, this, [this](const QString& model) {
        if (model.toStdString() == shippedModel()) m_bos->setChecked(true); // it was trained with BOS
    });
    connect(m_cutSays, &QLabel::linkActivated, this, [this] { m_cut->setCurrentIndex(0); });
    for (QComboBox* box : {m_model, m_device, m_dtype, m_cut})
        connect(box, &QComboBox::currentTextChanged, this, &FromTextDialog::checkSoon);
    for (QLineEdit* line : {m_python, m_question, m_answer})
        connect(line, &QLineEdit::textChanged, this, &FromTextDialog::checkSoon);
    for (QCheckBox* box : {m_chat, m_bos}) connect(box, &QCheckBox::toggled, this, &FromTextDialog::checkSoon);
    connect(m_text, &QPlainTextEdit::textChanged, this, &FromTextDialog::checkSoon);
    connect(m_cutNumber, &QSpinBox::valueChanged, this, &FromTextDialog::checkSoon);
    resize(px(680), px(500));
    check();
}

/// The worker may take a moment to end, so a job waits for it.
FromTextDialog::~FromTextDialog() {
    Scheduler::Job job;
    job.work = [worker = m_worker](const Checkpoint&, const auto&) { worker->client.reset(); };
    m_workbench.submit(kSlot, std::move(job));
}

live::LiveDescription FromTextDialog::remembered(const std::string& python) {
    try {
        return live::descriptionOf(QSettings().value(kLastKey).toString().toStdString());
    } catch (const Error&) { // nothing yet
        live::LiveDescription first = liveExample().value_or(live::LiveDescription());
        first.command = python.empty() ? "python3" : python;
        return first;
    }
}

void FromTextDialog::fill(const live::LiveDescription& description) {
    m_givenModel = description.model;
    m_model->setEditText(fromUtf8(description.model.path));
    m_python->setText(fromUtf8(description.command));
    m_device->setEditText(fromUtf8(description.model.device));
    m_dtype->setCurrentIndex(std::max(0, m_dtype->findData(fromUtf8(description.model.dtype))));
    m_parts.clear();
    for (const live::TextPart& part : description.parts)
        if (part.kind == SegmentKind::Context || part.kind == SegmentKind::Needle) m_parts.push_back(part);
    showText();
    m_question->setText(fromUtf8(partText(description, SegmentKind::Question)));
    m_answer->setText(fromUtf8(partText(description, SegmentKind::Answer)));
    m_chat->setChecked(description.form.chat);
    m_bos->setChecked(description.form.bos);
    const QString cut = fromUtf8(description.cut);
    const int number = cut.section(':', -1).toInt();
    m_cut->setCurrentIndex(number > 0 ? (cut.startsWith("last:") ? 2 : 3) : std::max(0, m_cut->findData(cut)));
    if (number > 0) m_cutNumber->setValue(number);
}

/// The field changes some characters: line breaks of Windows, no-break spaces, line separators. Tokens are made from
/// the text as it was given, so m_parts keeps that text.
void FromTextDialog::showText() {
    m_text->setPlainText(contextText(m_parts));
    m_shownText = m_text->toPlainText();
}

live::LiveDescription FromTextDialog::description() const {
    live::LiveDescription made;
    made.command = m_python->text().trimmed().toStdString();
    made.model = {.path = m_model->currentText().trimmed().toStdString(),
                  .revision = {},
                  .device = m_device->currentText().trimmed().toStdString(),
                  .dtype = m_dtype->currentData().toString().toStdString()};
    if (made.model.path == m_givenModel.path) made.model.revision = m_givenModel.revision;
    const QString text = m_text->toPlainText();
    made.parts = m_parts;
    if (text != m_shownText) made.parts = {{SegmentKind::Context, text.toStdString()}};
    for (const auto& [field, kind] : {std::pair{m_question, SegmentKind::Question}, {m_answer, SegmentKind::Answer}})
        if (!field->text().isEmpty()) made.parts.push_back({kind, field->text().toStdString()});
    made.form = {.chat = m_chat->isChecked(), .bos = m_bos->isChecked() && !m_chat->isChecked()};
    made.cut = m_cut->currentData().toString().toStdString();
    if (m_cut->currentIndex() > 1) made.cut += std::to_string(m_cutNumber->value());
    return made;
}

void FromTextDialog::readTextFile() {
    const QString path = QFileDialog::getOpenFileName(this, tr("Text"), {}, tr("Texts (*.txt *.md);;All files (*)"));
    if (path.isEmpty()) return;
    const bool wasRefused = m_isRefused;
    try {
        const std::string text = readWholeFile(path.toStdString(), std::size_t{1} << 24);
        if (isUtf8(text)) {
            m_parts = {{SegmentKind::Context, std::string(withoutByteOrderMark(text))}};
            return showText();
        }
        say(m_textSays, tr("%1 is not UTF-8: convert it.").arg(path), true);
    } catch (const Error& error) {
        say(m_textSays, fromUtf8(error.what()), true);
    }
    m_isRefused = wasRefused; // the text is still the one before
}

void FromTextDialog::checkSoon() { m_soon->start(kPause); }

void FromTextDialog::check() {
    m_soon->stop();
    say(m_pythonSays, tr("Starting…"));
    for (QLabel* line : {m_modelSays, m_cutSays, m_textSays}) say(line, {});
    m_isRefused = false;
    m_isChecking = true;
    Scheduler::Job job;
    job.work = [this, worker = m_worker, wanted = description()](const Checkpoint& checkpoint, const auto& post) {
        Found found;
        std::string* failed = &found.pythonError;
        try {
            const auto startSays = [&](const std::string& line) {
                post([this, line] { say(m_pythonSays, tr("Starting: %1").arg(fromUtf8(line))); });
            };
            live::LiveClient& client = worker->runFor(wanted.command, checkpoint, startSays);
            found.versions = client.worker().value("worker", live::Json::object());
            found.devices = devicesOf(client);
            if (!worker->models) worker->models = cachedModels(client, checkpoint);
            found.cached = *worker->models;
            post([this, found] { tell(found); });
            failed = &found.modelError;
            found.model = inspectModel(client, wanted.model, checkpoint);
            post([this, found] { tell(found); });
            failed = &found.textError;
            if (found.model->isSupported && !partText(wanted, SegmentKind::Context).empty()) {
                found.tokens = tokensOf(client, wanted, checkpoint);
                failed = &found.cutError;
                found.cut = resolvedCut(wanted, *found.tokens).token;
            }
        } catch (const Error& error) {
            *failed = error.what();
        }
        post([this, found] { tell(found); });
    };
    job.finished = [this] { m_isChecking = false; };
    job.failed = [this](std::exception_ptr failure) { say(m_pythonSays, fromUtf8(messageOf(failure)), true); };
    m_workbench.submit(kSlot, std::move(job));
}

void FromTextDialog::say(QLabel* label, const QString& text, bool isWrong) {
    label->setText(text);
    label->setVisible(!text.isEmpty());
    label->setProperty("role", isWrong ? "error" : "quiet");
    repolish(label);
    m_isRefused = m_isRefused || isWrong;
    if (height() < sizeHint().height()) resize(width(), sizeHint().height());
}

void FromTextDialog::tell(const Found& found) {
    m_isRefused = false;
    if (!found.pythonError.empty()) {
        const bool isBare = found.pythonError.find("no module") != std::string::npos;
        say(m_pythonSays,
            sentence(found.pythonError) + (isBare ? tr(" Or let Help, Try it live make one.") : QString()), true);
    } else {
        QStringList versions;
        for (const char* name : {"torch", "transformers", "kvscope"})
            if (const live::Json version = found.versions->value(name, live::Json()); version.is_string())
                versions += QString("%1 %2").arg(name, fromUtf8(version.get<std::string>()));
        say(m_pythonSays, versions.isEmpty() ? tr("It answers.") : versions.join(", "));
        for (const live::Device& device : found.devices)
            if (m_device->findText(fromUtf8(device.name)) < 0) m_device->addItem(fromUtf8(device.name));
        offerModels(found.cached);
    }
    const bool isUnfit = found.model && !found.model->isSupported;
    if (!found.modelError.empty() || isUnfit)
        say(m_modelSays, sentence(isUnfit ? "This model cannot be read: " + found.model->why : found.modelError), true);
    else if (found.model)
        say(m_modelSays, needs(found));
    const bool isCounting = found.model && !isUnfit && found.textError.empty() && !m_text->toPlainText().isEmpty();
    say(m_textSays, sentence(found.textError), !found.textError.empty());
    if (!found.cutError.empty())
        say(m_cutSays, tr("%1 <a href='repair'>Cut behind the text</a>").arg(sentence(found.cutError).toHtmlEscaped()),
            true);
    else
        say(m_cutSays, found.cut ? cutText(found) : isCounting ? tr("Counting the tokens…") : QString());
}

/// Offers the shipped model and those in the cache. The name that is being typed stays as it is.
void FromTextDialog::offerModels(const std::vector<std::string>& cached) {
    QStringList names;
    if (const std::string shipped = shippedModel(); !shipped.empty()) names += fromUtf8(shipped);
    for (const std::string& model : cached) names += fromUtf8(model);
    if (names == m_offered) return;
    const QSignalBlocker quiet(m_model);
    const QString typed = m_model->currentText();
    const int cursor = m_model->lineEdit()->cursorPosition();
    m_model->clear();
    m_model->addItems(m_offered = names);
    m_model->setCurrentIndex(m_model->findText(typed));
    m_model->setEditText(typed);
    m_model->lineEdit()->setCursorPosition(cursor);
}

/// Describes the model, the memory that weights and context need, and the memory that is free.
QString FromTextDialog::needs(const Found& found) const {
    const live::ModelFacts& facts = *found.model;
    const live::LiveDescription wanted = description();
    const std::int64_t tokens = found.tokens ? static_cast<std::int64_t>(found.tokens->ids.size()) : 1000;
    QString text = tr("%1: %2 layers, %3 query heads, %4 KV heads of %5. Needs %6 for the weights and %7 for %8 tokens")
                       .arg(fromUtf8(facts.architecture))
                       .arg(facts.layers)
                       .arg(facts.queryHeads)
                       .arg(facts.kvHeads)
                       .arg(facts.headDim)
                       .arg(bytesText(bytesToLoad(facts, wanted.model.dtype)),
                            bytesText(bytesOfContext(facts, wanted.model.dtype, tokens)),
                            (found.tokens ? QString("%1") : tr("each %1")).arg(countText(tokens)));
    for (const live::Device& device : found.devices)
        if (device.name.starts_with(wanted.model.device) && device.free > 0) {
            text += tr("; %1 are free on %2").arg(bytesText(device.free), fromUtf8(device.name));
            break;
        }
    if (found.tokens && facts.mostTokens > 0 && tokens > facts.mostTokens)
        text += tr(". It was made for %1 tokens, fewer than the text has").arg(countText(facts.mostTokens));
    return text + "." + (facts.why.empty() ? QString() : " " + fromUtf8(facts.why) + ".");
}

QString FromTextDialog::cutText(const Found& found) const {
    std::int64_t answer = 0;
    for (const Segment& segment : found.tokens->segments)
        if (segment.kind == SegmentKind::Answer) answer += segment.end - segment.begin;
    QString text = tr("<b>%1 tokens</b> before the cut are compressed, %2 behind it stay whole")
                       .arg(countText(*found.cut), countText(std::ssize(found.tokens->ids) - *found.cut));
    if (answer > 0) text += tr("; the answer has %1").arg(countText(answer));
    return text + ".";
}

void FromTextDialog::openContext() {
    const live::LiveDescription made = description();
    const auto lacks = [&](bool isMissing, QLabel* label, QWidget* field, const QString& text) {
        if (!isMissing) return false;
        say(label, text, true);
        field->setFocus();
        return true;
    };
    if (lacks(made.model.path.empty(), m_modelSays, m_model, tr("Name a model.")) ||
        lacks(made.command.empty(), m_pythonSays, m_python, tr("Name a Python that has kvscope-tools.")) ||
        lacks(m_text->toPlainText().trimmed().isEmpty(), m_textSays, m_text, tr("Type or paste a text.")) ||
        m_isRefused)
        return;
    if (const QString text = fromUtf8(textOf(made)); text.size() < kMostRemembered)
        QSettings().setValue(kLastKey, text);
    if (!m_isChecking) live::leaveSpareWorker(std::move(m_worker->client));
    emit chosen(made);
    accept();
}

} // namespace kvscope
