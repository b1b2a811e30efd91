// Seeds and findings of the fuzz targets: each is read, and so are mutations of it that are the same in every run. What
// a fuzzer found lies among the seeds of its target under a name that says what it was.
#include "tests/fuzz/targets.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QDirIterator>
#include <QFile>
#include <QRegularExpression>
#include <QtTest>

#include <algorithm>
#include <random>

using namespace kvscope;

namespace {

constexpr int kMutations = 60;

QByteArray mutated(QByteArray bytes, std::mt19937& random) {
    const auto below = [&](qsizetype n) { return static_cast<qsizetype>(random() % static_cast<std::uint32_t>(n)); };
    for (auto changes = below(4) + 1; changes > 0 && !bytes.isEmpty(); --changes) {
        const qsizetype at = below(bytes.size());
        switch (below(5)) {
        case 0: bytes[at] = static_cast<char>(below(256)); break;
        case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
        case 2: bytes.remove(at, below(8) + 1); break;
        case 3: bytes.insert(at, bytes.mid(below(bytes.size()), below(16) + 1)); break;
        default: bytes.replace(at, 1, std::array{"[", "}", "\"", "1e999", "-1", "null"}[random() % 6]); break;
        }
    }
    return bytes;
}

} // namespace

class SeedsTest : public QObject {
    Q_OBJECT

private slots:
    /// Too deep for what copies or writes values recursively; too long for a seed in the repository.
    void deeplyNestedTexts_data() {
        QTest::addColumn<QString>("target");
        for (const char* target : {"sessions", "lists_json", "calibrations", "models", "scores", "specs"})
            if (std::ranges::count(fuzz::targetNames(), target) > 0) QTest::newRow(target) << target;
    }
    void deeplyNestedTexts() {
        QFETCH(QString, target);
        const QByteArray nested = QByteArray(200'000, '[') + QByteArray(200'000, ']');
        const auto read = [&](const QByteArray& text) {
            fuzz::readAs(target.toStdString(), {text.constData(), static_cast<std::size_t>(text.size())});
        };
        QDirIterator files(QString::fromStdString(testing::sourceDir()) + "/tests/fuzz/seeds/" + target, QDir::Files);
        while (files.hasNext()) {
            QFile file(files.next());
            QVERIFY(file.open(QIODevice::ReadOnly));
            const QByteArray text = file.readAll().trimmed();
            if (!text.endsWith('}')) { // a formula or a spec
                read(QByteArray(200'000, '(') + text);
                read(QByteArray(200'000, '-') + text);
                continue;
            }
            read(text.chopped(1) + ", \"x\": " + nested + "}");
            static const QRegularExpression value("\": ?(\"[^\"]*\"|[-\\d.eE+]+|true|false|null)");
            for (auto found = value.globalMatch(QString::fromUtf8(text)); found.hasNext();) {
                const QRegularExpressionMatch one = found.next();
                QByteArray other = QString::fromUtf8(text).left(one.capturedStart(1)).toUtf8() + nested;
                read(other += QString::fromUtf8(text).mid(one.capturedEnd(1)).toUtf8());
            }
        }
    }

    void readsAndRefuses_data() {
        QTest::addColumn<QString>("target");
        QTest::addColumn<QString>("file");
        const QString root = QString::fromStdString(testing::sourceDir());
        if (std::ranges::count(fuzz::targetNames(), "captures") > 0)
            QTest::newRow("captures/sound.h5") << "captures" << root + "/sample_data/broken/sound.h5";
        for (const std::string& name : fuzz::targetNames()) {
            const QString target = QString::fromStdString(name);
            QDirIterator files(root + "/tests/fuzz/seeds/" + target, QDir::Files);
            QVERIFY2(files.hasNext() || target == "captures", qPrintable("no seed of " + target));
            while (files.hasNext()) {
                const QString file = files.next();
                QTest::addRow("%s/%s", qPrintable(target), qPrintable(files.fileName())) << target << file;
            }
        }
    }

    void readsAndRefuses() {
        QFETCH(QString, target);
        QFETCH(QString, file);
        QFile seed(file);
        QVERIFY(seed.open(QIODevice::ReadOnly));
        const QByteArray bytes = seed.readAll();
        const auto read = [&](const QByteArray& one) {
            fuzz::readAs(target.toStdString(), {one.constData(), static_cast<std::size_t>(one.size())});
        };
        read(bytes);
        std::mt19937 random(static_cast<std::uint32_t>(bytes.size())); // the same everywhere
        for (int i = 0; i < kMutations; ++i) read(mutated(bytes, random));
    }
};

KVSCOPE_TEST(SeedsTest)
#include "seeds_test.moc"
