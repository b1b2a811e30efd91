// Tensors of other programs dropped on the window: they open as a capture does, without a detour through a file of
// ours, and what they lack or break is said in words.
#include "tests/app/drop_url.h"
#include "tests/app/window_fixture.h"
#include "tests/support/tensor_files.h"
#include "tests/support/test_program.h"

#include <QDir>
#include <QSettings>
#include <QTemporaryDir>

#include <random>

using namespace kvscope;
using namespace kvscope::test;
using kvscope::testing::dropUrl;
using kvscope::testing::OpenWindow;

namespace {

constexpr int kTokens = 64, kHeads = 2, kWidth = 8;

/// [heads, tokens, width], the same for the same name.
FileTensor drawn(const std::string& name, const std::string& type, int heads = kHeads) {
    std::mt19937 random(static_cast<unsigned>(name.back()) + 7 * static_cast<unsigned>(name.size()));
    std::normal_distribution<float> normal;
    std::vector<float> numbers(static_cast<std::size_t>(heads * kTokens * kWidth));
    for (float& x : numbers) x = normal(random);
    return {name, type, {heads, kTokens, kWidth}, bytesOf(numbers)};
}

std::vector<FileTensor> twoLayers(const std::string& type, bool queries) {
    std::vector<FileTensor> tensors;
    for (const std::string layer : {"layers.0.", "layers.1."}) {
        tensors.push_back(drawn(layer + "k", type));
        tensors.push_back(drawn(layer + "v", type));
        if (queries) tensors.push_back(drawn(layer + "q", type, 4));
    }
    return tensors;
}

/// Every pane has a result or a sentence, and nothing computes.
bool settled(const OpenWindow& open) {
    const ViewInput input = open.bench.viewInput();
    for (const PaneData& pane : input.panes)
        if (pane.computing || (!pane.result && pane.error.empty())) return false;
    return !input.panes.empty();
}

} // namespace

class WindowImportTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::string at(const char* name) const { return m_folder.filePath(name).toStdString(); }
    void drop(OpenWindow& open, const char* name) {
        dropUrl(open.window, QUrl::fromLocalFile(m_folder.filePath(name)));
    }
    void dropAndWait(OpenWindow& open, const char* name) {
        drop(open, name);
        QTRY_VERIFY_WITH_TIMEOUT(open.bench.capture()->info().fileName == name, 10000);
        QTRY_VERIFY_WITH_TIMEOUT(settled(open), 20000);
    }

private slots:
    void init() { QSettings().clear(); }

    void droppedTensorsOpen_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : {"cache.safetensors", "cache.npz", "folder"}) QTest::newRow(name) << name;
    }

    void droppedTensorsOpen() {
        QFETCH(QString, name);
        writeFile(at("cache.safetensors"), safetensorsOf(twoLayers("F32", true)));
        writeNpz(at("cache.npz"), twoLayers("<f4", true), true);
        QDir(m_folder.path()).mkpath("folder");
        writeFile(at("folder/all.safetensors"), safetensorsOf(twoLayers("F32", true)));
        OpenWindow open;
        dropAndWait(open, name.toLatin1().constData());
        const CaptureInfo& info = open.bench.capture()->info();
        QCOMPARE(info.numTokens, kTokens);
        QCOMPARE(info.numKvHeads, kHeads);
        QCOMPARE(info.numQueryHeads, 4);
        QCOMPARE(info.layers.size(), std::size_t(2));
        for (const PaneData& pane : open.bench.viewInput().panes)
            QVERIFY2(pane.result && pane.result->fidelity, pane.error.c_str());
        QStringList messages = open.window.notices().messages(); // of the sample's layer, which these tensors lack
        messages.removeIf([](const QString& message) { return message.contains("There is no layer 3"); });
        QVERIFY2(messages.isEmpty(), qPrintable(messages.join('\n')));
        QVERIFY(open.window.windowTitle().contains(name));
        QVERIFY(QSettings().value("recentFiles").toStringList().contains(m_folder.filePath(name)));
        QTest::keyClick(&open.window, Qt::Key_BraceRight, Qt::ShiftModifier); // the other layer, as from any capture
        QTRY_VERIFY(settled(open));
        QVERIFY(open.bench.viewInput().panes[0].result);
    }

    void withoutQueriesKeyPoliciesRun() {
        writeFile(at("keys.safetensors"), safetensorsOf(twoLayers("F32", false)));
        OpenWindow open;
        dropAndWait(open, "keys.safetensors");
        int ran = 0, refused = 0;
        for (const PaneData& pane : open.bench.viewInput().panes) {
            ran += pane.result != nullptr;
            refused += QString::fromStdString(pane.error).contains("queries");
            QVERIFY2(pane.result || QString::fromStdString(pane.error).contains("queries"), pane.error.c_str());
        }
        QVERIFY2(ran > 0 && refused > 0, qPrintable(QString("%1 %2").arg(ran).arg(refused)));
        for (const WindowLayout layout : {WindowLayout::ExploreHead, WindowLayout::WholeModel, WindowLayout::Teach}) {
            open.bench.change([&](Session& s) { s.layout = layout; }, "Layout"); // every view has something to say
            open.finish();
            QVERIFY(settled(open));
        }
    }

    void whatCannotBeReadLeavesTheOpenCapture_data() {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QString>("sentence");
        QTest::newRow("pickle") << "cache.pt"
                                << "Python pickle";
        QTest::newRow("truncated") << "short.safetensors"
                                   << "truncated";
        QTest::newRow("names") << "names.npz"
                               << "names.npz";
        QTest::newRow("no archive") << "text.npz"
                                    << "text.npz";
        QTest::newRow("empty folder") << "nothing"
                                      << "nothing";
    }

    void whatCannotBeReadLeavesTheOpenCapture() {
        QFETCH(QString, name);
        QFETCH(QString, sentence);
        const std::string whole = safetensorsOf(twoLayers("F32", true));
        writeFile(at("cache.pt"), "PK");
        writeFile(at("short.safetensors"), whole.substr(0, whole.size() - 10));
        writeNpz(at("names.npz"), {drawn("weights", "<f4"), drawn("biases", "<f4")}, true);
        writeFile(at("text.npz"), "no archive at all");
        QDir(m_folder.path()).mkpath("nothing");
        OpenWindow open;
        drop(open, name.toLatin1().constData());
        const QString message = open.verdict();
        QVERIFY2(message.contains(sentence) && message.contains(m_folder.filePath(name)), qPrintable(message));
        QCOMPARE(open.bench.capture()->info().fileName, std::string("needle-1k.h5"));
        QVERIFY(open.idle());
    }

    /// Numbers are read with their layer: a NaN shows when its layer is opened.
    void aNanIsNamedWithItsPlace() {
        std::vector<FileTensor> tensors = twoLayers("F32", true);
        const float nan = std::nanf("");
        std::memcpy(tensors[1].bytes.data() + 4 * (kTokens + 7) * kWidth, &nan, sizeof nan);
        std::memcpy(tensors[4].bytes.data() + 4 * (kTokens + 7) * kWidth, &nan, sizeof nan);
        writeFile(at("nan.safetensors"), safetensorsOf(tensors));
        OpenWindow open;
        dropAndWait(open, "nan.safetensors");
        const QString message = open.window.notices().messages().join('\n');
        QVERIFY2(message.contains("NaN") && message.contains("token 7") && message.contains("nan.safetensors"),
                 qPrintable(message));
    }
};

KVSCOPE_WINDOW_TEST(WindowImportTest)
#include "window_import_test.moc"
