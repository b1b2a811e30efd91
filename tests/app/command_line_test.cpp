// Runs the program as its users do: every subcommand on a sample, and every mistake that issue after issue will repeat.
// A mistake must give exit code 2, one sentence on stderr and no file.
#include <QFile>
#include <QImage>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QRegularExpression>
#include <QTest>

#include <map>

#include "tests/app/program.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

using kvscope::testing::Program;

namespace {

const QString kSample = QString::fromStdString(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");

using Outcome = Program::Outcome;

QByteArray contentOf(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

void fill(const QString& path, const QByteArray& content) {
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    QCOMPARE(file.write(content), content.size());
}

} // namespace

class CommandLineTest : public QObject {
    Q_OBJECT

private:
    Program::Outcome run(const QStringList& arguments) const { return m_program->run(arguments); }
    QString at(const QString& name) const { return m_program->at(name); }
    QStringList written() const { return m_program->written(); }
    void expectDone(const QStringList& arguments) const {
        const Outcome outcome = run(arguments);
        QVERIFY2(outcome.code == 0, arguments.join(' ').toUtf8() + "\n" + outcome.error);
    }
    QJsonObject evictJson(const QStringList& more, const QString& name) const {
        expectDone(QStringList{"evict", kSample, "--out", name} + more);
        return QJsonDocument::fromJson(contentOf(at(name))).object();
    }

    std::unique_ptr<Program> m_program;

private slots:
    void init() { m_program = std::make_unique<Program>(); }

    void printsHelpAndVersionWithoutDisplay() {
        QVERIFY(run({"--version"}).out.startsWith("kvscope "));
        const QByteArray help = run({"--help"}).out;
        for (const char* command : {"policies", "views", "inspect", "synth", "evict", "measure", "sweep", "plot"}) {
            QVERIFY2(help.contains(command), command);
            QCOMPARE(run({command, "--version"}).out, run({"--version"}).out);
        }
    }

    void printsCardsAsJson() {
        for (const char* command : {"policies", "views"}) {
            const QJsonArray cards = QJsonDocument::fromJson(run({command, "--json"}).out).array();
            QVERIFY(cards.size() >= 2);
            for (const auto& card : cards)
                for (const char* key : {"id", "name", "summary", "paper", "needs", "variants", "parameters"})
                    QVERIFY2(card.toObject().contains(key), key);
            QCOMPARE(cards.first().toObject()["uses_seed"].isBool(), command == std::string_view("policies"));
            for (const auto& parameter : cards.first().toObject()["parameters"].toArray())
                for (const char* key : {"id", "label", "unit", "min", "max", "default", "choices", "help", "stage"})
                    QVERIFY2(parameter.toObject().contains(key), key);
        }
    }

    void viewsSayWhatTheirOptionsWaitFor() {
        const QJsonArray cards = QJsonDocument::fromJson(run({"views", "--json"}).out).array();
        QJsonObject chunk;
        for (const auto& card : cards)
            for (const auto& option : card.toObject()["parameters"].toArray())
                if (card.toObject()["id"] == "attention_map" && option.toObject()["id"] == "chunk")
                    chunk = option.toObject();
        const QJsonArray conditions = chunk["matters_while"].toArray();
        QCOMPARE(conditions.size(), 1);
        const QJsonArray terms = conditions[0].toObject()["any_of"].toArray();
        QCOMPARE(terms.size(), 2);
        QCOMPARE(terms[1].toObject()["id"].toString(), QString("minus"));
        QCOMPARE(terms[1].toObject()["values"].toArray(), QJsonArray{"chunks"});
        QVERIFY(run({"views"}).out.contains("Matters only while Map is Chunks, or Minus is Chunks."));
    }

    void inspectsTheSample() {
        const QJsonObject facts = QJsonDocument::fromJson(run({"inspect", kSample, "--verify", "--json"}).out).object();
        QCOMPARE(facts["tokens"].toInt(), 1028);
        QVERIFY(!facts["layers"].toArray().isEmpty());
        for (const auto& finding : facts["findings"].toArray())
            QVERIFY(finding.toObject()["severity"].toString() != "error");
    }

    void synthWritesACaptureThatRuns() {
        const QStringList synth = {"synth", "--tokens",   "512", "--layers",   "1", "--q-heads",
                                   "4",     "--kv-heads", "2",   "--head-dim", "32"};
        expectDone(synth + QStringList{"--out", "s.h5"});
        expectDone({"evict", "s.h5", "--policy", "keydiff@0.1", "--out", "s.json"});
        const auto hashOf = [&](const QString& name) {
            return QJsonDocument::fromJson(run({"inspect", name, "--json"}).out).object().value("hash").toString();
        };
        expectDone(synth + QStringList{"--out", "same.h5"});
        QCOMPARE(hashOf("same.h5"), hashOf("s.h5"));
        expectDone(synth + QStringList{"--seed", "7", "--out", "other.h5"});
        QVERIFY(hashOf("other.h5") != hashOf("s.h5"));
    }

    void theoryWritesOneLinePerHeadAndStatement() {
        expectDone({"theory", kSample, "--policy", "subgen,delta_quantile=0.2@0.25", "--policy", "compactor@0.25",
                    "--layers", "2-3", "--kv-heads", "1", "--epsilon", "0.25", "--out", "t.csv"});
        const QList<QByteArray> lines = contentOf(at("t.csv")).trimmed().split('\n');
        QCOMPARE(lines.size(),
                 1 + 2 * (3 + 4)); // SubGen: t, s, error; Compactor: rows, k, distortion, ratio; two layers
        QVERIFY(lines[0].startsWith("capture,layer,kv_head,policy,variant,spec,cut,cut_token,theorem,quantity,kind,"
                                    "demanded,set,met,bound,measured"));
        expectDone({"theory", kSample, "--policy", "keydiff@0.25", "--out", "t.json"});
        const QJsonObject all = QJsonDocument::fromJson(contentOf(at("t.json"))).object();
        QCOMPARE(all["format"].toString(), QString("kvscope-theory"));
        QCOMPARE(all["rows"].toArray().size(), 24);     // Thms 3.2 and C.1; six layers of two KV heads
        for (const auto& row : all["rows"].toArray()) { // cosines have no ratio, angles do
            const QJsonObject one = row.toObject();
            const bool angle = one["theorem"].toString() == "KeyDiff Thm C.1" && one["kind"].toString() == "bound";
            QCOMPARE(one["measured_over_bound"].isNull(), !angle);
            QVERIFY(one["paper"].toString().contains("KeyDiff"));
        }
        expectDone({"theory", kSample, "--policy", "compactor,prompt_block=256@0.25", "--layers", "3", "--cut", "none",
                    "--arithmetic", "fast", "--seed", "3", "--out", "marks.json"});
        const auto marks = QJsonDocument::fromJson(contentOf(at("marks.json"))).object()["rows"].toArray();
        QVERIFY(!marks.isEmpty());
        for (const auto& row : marks) { // what the run says about itself
            const QJsonObject one = row.toObject();
            QVERIFY(one["seen_queries"].toBool() && one["simulated"].toBool());
            QCOMPARE(one["queries"].toInt(), one["cut_token"].toInt() - one["first_query"].toInt());
            QCOMPARE(one["seed"].toInt(), 3);
            QCOMPARE(one["budget"].toString(), QString("0.25"));
            QVERIFY(std::abs(one["retention"].toDouble() - 0.25) < 0.05);
            QVERIFY(one["arithmetic"].toString().startsWith("fast float"));
            QVERIFY(!one["engine"].toString().isEmpty() && one["notes"].isString());
        }
        const Outcome refused = run({"theory", kSample, "--policy", "snapkv@0.25", "--out", "no.csv"});
        QVERIFY(refused.code == 2 &&
                refused.error.contains("no theorem of the papers speaks about SnapKV (policy snapkv)") &&
                !written().contains("no.csv"));
        QCOMPARE(run({"theory", kSample, "--policy", "keydiff@0.25", "--epsilon", "0", "--out", "no.csv"}).code, 2);
    }

    void aListEndsAtTheLargestNumber() {
        const Outcome refused =
            run({"evict", kSample, "--policy", "keydiff@0.1", "--layers", "2147483647", "--out", "no.csv"});
        QVERIFY(refused.code == 2 && refused.error.contains("2147483647"));
    }

    void evictWritesTheListThatItSays() {
        const QJsonObject list =
            evictJson({"--policy", "keydiff@0.1", "--layers", "0,2-3", "--kv-heads", "0", "--scores"}, "a.json");
        QCOMPARE(list["format"].toString(), QString("kvscope-selection"));
        QCOMPARE(list["version"].toInt(), 1);
        for (const char* key : {"capture", "cut", "policy", "variant", "parameters", "budget", "seed", "engine",
                                "arithmetic", "simulated", "command", "heads"})
            QVERIFY2(list.contains(key), key);
        const QJsonArray heads = list["heads"].toArray();
        QCOMPARE(heads.size(), 3);
        const int cut = list["cut_token"].toInt();
        for (const auto& value : heads) {
            const QJsonArray kept = value.toObject()["kept"].toArray();
            QCOMPARE(kept.size(), (cut + 9) / 10); // ceil(0.1 n)
            for (int i = 1; i < kept.size(); ++i) QVERIFY(kept[i - 1].toInt() < kept[i].toInt());
            QVERIFY(kept.last().toInt() < cut);
            QCOMPARE(value.toObject()["scores"].toArray().size(), 1028);
        }
        QCOMPARE(heads[1].toObject()["layer"].toInt(), 2);
        // No picture says that a head keeps nothing where the list is silent.
        const Outcome other = run({"plot", "token_strip", kSample, "--selection", "a.json", "--layer", "2", "--kv-head",
                                   "1", "--out", "strip.svg"});
        QVERIFY2(other.code == 2 && other.error.contains("the list leaves out KV head 1 of layer 2"), other.error);
    }

    void choosingHeadsFiltersWhatIsWrittenOnly() {
        const QJsonArray all =
            evictJson({"--policy", "tova@0.2", "--layers", "1"}, "all.json").value("heads").toArray();
        const QJsonArray one = evictJson({"--policy", "tova@0.2", "--layers", "1", "--kv-heads", "1"}, "one.json")
                                   .value("heads")
                                   .toArray();
        QCOMPARE(one.size(), 1);
        QCOMPARE(one[0].toObject()["kept"], all[1].toObject()["kept"]);
    }

    void retentionServesSpecsWithoutBudget() {
        const QJsonValue written = evictJson({"--policy", "keydiff@0.25"}, "a.json").value("heads");
        QCOMPARE(
            evictJson({"--policy", "keydiff", "--retention", "0.25", "--threads", "1", "--gpu-memory", "0.5"}, "b.json")
                .value("heads"),
            written);
        QCOMPARE(evictJson({"--policy", "keydiff", "--budget", "249"}, "c.json").value("heads"),
                 written); // ceil(0.25 * 995)
    }

    void allFormsOfAListMeasureTheSame() {
        QByteArray first;
        for (const QString name : {"l.json", "l.csv", "l.h5"}) {
            expectDone({"evict", kSample, "--policy", "snapkv@0.1", "--layers", "1", "--out", name});
            expectDone({"measure", kSample, "--selection", name, "--out", "m.json"});
            QJsonObject measured = QJsonDocument::fromJson(contentOf(at("m.json"))).object();
            const QByteArray rows =
                QJsonDocument(measured["rows"].toArray()).toJson().replace(name.toUtf8(), "l"); // the column `list`
            QVERIFY(measured["rows"].toArray().size() > 0);
            first = first.isEmpty() ? rows : first;
            QCOMPARE(rows, first);
        }
        expectDone({"measure", kSample, "--policy", "snapkv@0.1", "--layers", "1", "--out", "p.json"});
        const auto direct = QJsonDocument::fromJson(contentOf(at("p.json"))).object()["rows"].toArray();
        const auto recorded = QJsonDocument::fromJson(first).array();
        QCOMPARE(direct.size(), recorded.size());
        for (int i = 0; i < direct.size(); ++i)
            QCOMPARE(recorded[i].toObject()["output_error"], direct[i].toObject()["output_error"]);
    }

    void sweepGivesARowPerCombination() {
        expectDone({"sweep", kSample, "--policy", "keydiff", "--policy", "uniform", "--retention", "0.05,0.25",
                    "--seeds", "0-2", "--layers", "0", "--vary", "protect_first=0,4", "--out", "s.csv"});
        const QList<QByteArray> lines = contentOf(at("s.csv")).trimmed().split('\n');
        QCOMPARE(lines.size(), 1 + 2 * 2 + 2 * 2 * 3); // keydiff draws no random numbers
        for (const char* column : {"output_error", "retained_mass", "select_ms", "stored_bytes", "command"})
            QVERIFY2(lines[0].split(',').contains(column), column);
    }

    /// SubGen keeps distinct tokens and stores a slot drawn twice twice: a table that had the one alone would flatter
    /// it.
    void whatIsStoredStandsBesideWhatIsKept() {
        expectDone({"theory", kSample, "--policy", "subgen@0.25", "--layers", "3", "--out", "t.json"});
        expectDone({"measure", kSample, "--policy", "subgen@0.25", "--layers", "3", "--out", "m.json"});
        std::map<int, double> measured; // by KV head
        for (const auto& row : QJsonDocument::fromJson(contentOf(at("m.json"))).object()["rows"].toArray())
            measured[row.toObject()["kv_head"].toInt()] = row.toObject()["stored_tokens"].toDouble();
        for (const auto& row : QJsonDocument::fromJson(contentOf(at("t.json"))).object()["rows"].toArray()) {
            const QJsonObject one = row.toObject();
            QCOMPARE(one["stored_tokens"].toDouble(), measured.at(one["kv_head"].toInt()));
            QVERIFY(one["stored_tokens"].toDouble() > one["kept"].toDouble() + 1);
        }
        for (const char* command : {"measure", "sweep"})
            for (const auto& [spec, differs] : {std::pair{"subgen@0.25", true}, {"snapkv@0.25", false}}) {
                expectDone({command, kSample, "--policy", spec, "--layers", "3", "--out", "m.json"});
                const QJsonArray rows = QJsonDocument::fromJson(contentOf(at("m.json"))).object()["rows"].toArray();
                QVERIFY(!rows.isEmpty());
                double bytes = 0;
                for (const auto& row : rows) {
                    const QJsonObject one = row.toObject();
                    const double kept = one[command == QString("sweep") ? "kept_tokens" : "kept"].toDouble(),
                                 stored = one["stored_tokens"].toDouble();
                    QCOMPARE(kept, one["retention"].toDouble() * one["cut_token"].toInt());
                    QVERIFY2(differs ? stored > kept + 1 : stored == kept, qPrintable(QString::number(stored)));
                    bytes += stored / static_cast<double>(rows.size()) * 2 * 2 * 64 * 2; // KV heads, k and v, d, bf16
                }
                QCOMPARE(bytes, rows[0].toObject()["stored_bytes"].toDouble());
            }
    }

    void variedFormulasKeepTheirCommas() {
        expectDone({"sweep", kSample, "--policy", "score:knorm", "--retention", "0.25", "--layers", "0", "--vary",
                    "expression=max(knorm,vnorm),min(knorm,snapkv[window=16,pool_width=7])", "--out", "s.csv"});
        const QByteArray table = contentOf(at("s.csv"));
        QCOMPARE(table.trimmed().split('\n').size(), 1 + 2);
        QVERIFY2(table.contains("max(knorm,vnorm)") && table.contains("min(knorm,snapkv[window=16,pool_width=7])"),
                 table);
    }

    void figuresCarryTheCommandThatMakesThemAgain() {
        const QStringList common = {"plot",     "key_projection", kSample,    "--layer",    "1",      "--kv-head", "0",
                                    "--policy", "keydiff@0.1",    "--policy", "snapkv@0.1", "--size", "900x420"};
        for (const QString name : {"f.png", "f.svg", "f.pdf"}) {
            expectDone(common + QStringList{"--out", name});
            const QByteArray first = contentOf(at(name));
            const QString command = name.endsWith("png") ? QImage(at(name)).text("Comment") : QString::fromUtf8(first);
            const auto match =
                QRegularExpression("kvscope (plot [^<]*" + QRegularExpression::escape(name) + ")").match(command);
            QVERIFY2(match.hasMatch(), name.toUtf8());
            QVERIFY(QFile::remove(at(name)));
            expectDone(QProcess::splitCommand(match.captured(1)));
            QVERIFY(contentOf(at(name)) == first);
        }
        QCOMPARE(QImage(at("f.png")).size(), QSize(900, 420));
    }

    // A PDF of several fonts, whose order must not be chance; no date, which would tell two runs apart.
    void thePdfOfAFigureIsTheSameBytes() {
        QSet<QByteArray> seen;
        for (int i = 0; i < 4; ++i) {
            expectDone({"plot", "head_grid", kSample, "--policy", "keydiff@0.1", "--footer", "--out", "f.pdf"});
            seen.insert(contentOf(at("f.pdf")));
        }
        QCOMPARE(seen.size(), 1);
        QVERIFY(seen.begin()->startsWith("%PDF") && !seen.begin()->contains("/CreationDate"));
        QVERIFY(!seen.begin()->contains("/ModDate")); // of Qt 6.8
    }

    void mistakes_data() {
        QTest::addColumn<QStringList>("arguments");
        QTest::addColumn<QString>("says");
        const auto row = [](const char* name, QStringList arguments, const char* says) {
            for (QString& argument : arguments) argument.replace("SAMPLE", kSample);
            QTest::newRow(name) << arguments << says;
        };
        const auto evict = [&](const char* name, const QStringList& more, const char* says) {
            row(name, QStringList{"evict", "SAMPLE", "--out", "x.json"} + more, says);
        };
        row("no such file", {"evict", "none.h5", "--policy", "keydiff@0.1", "--out", "x.json"}, "none.h5");
        row("not HDF5", {"evict", "text.h5", "--policy", "keydiff@0.1", "--out", "x.json"}, "text.h5");
        row("truncated", {"evict", "half.h5", "--policy", "keydiff@0.1", "--out", "x.json"}, "half.h5");
        row("window: no such file", {"none.h5"}, "none.h5");
        row("window: not HDF5", {"text.h5"}, "text.h5");
        row("window: no display", {}, "display");
        evict("no policy", {}, "--policy");
        evict("unknown policy", {"--policy", "keydif@0.1"}, "keydiff");
        evict("unknown variant", {"--policy", "keydiff:papr@0.1"}, "paper");
        evict("unknown parameter", {"--policy", "keydiff,anchr=mean@0.1"}, "anchor");
        evict("value out of range", {"--policy", "snapkv,window=0@0.1"}, "window");
        evict("no budget", {"--policy", "keydiff"}, "--retention");
        evict("budget 0", {"--policy", "keydiff@0t"}, "0t");
        evict("budget above n", {"--policy", "keydiff@5000t"}, "995");
        evict("retention above 1", {"--policy", "keydiff", "--retention", "1.5"}, "--retention");
        evict("retention in tokens", {"--policy", "keydiff", "--retention", "99t"}, "--retention");
        evict("budget no number", {"--policy", "keydiff", "--budget", "many"}, "--budget");
        evict("cut outside", {"--policy", "keydiff@0.1", "--cut", "5000"}, "5000");
        evict("unknown layer", {"--policy", "keydiff@0.1", "--layers", "99"}, "99");
        evict("bad range", {"--policy", "keydiff@0.1", "--layers", "3-1"}, "--layers");
        evict("unknown KV head", {"--policy", "keydiff@0.1", "--kv-heads", "40"}, "40");
        evict("unknown engine", {"--policy", "keydiff@0.1", "--engine", "abacus"}, "cpu");
        evict("unknown option", {"--policy", "keydiff@0.1", "--set", "a=b"}, "--set a=b");
        row("extension", {"evict", "SAMPLE", "--policy", "keydiff@0.1", "--out", "x.txt"}, ".json");
        row("unwritable", {"evict", "SAMPLE", "--policy", "keydiff@0.1", "--out", "none/x.json"}, "none/x.json");
        row("unknown measure", {"measure", "SAMPLE", "--policy", "keydiff@0.1", "--metrics", "joy", "--out", "x.csv"},
            "output_error");
        row("nothing varied", {"sweep", "SAMPLE", "--policy", "keydiff@0.1", "--vary", "joy=1,2", "--out", "x.csv"},
            "joy");
        row("unknown view", {"plot", "joy", "SAMPLE", "--policy", "keydiff@0.1", "--out", "x.png"}, "key_projection");
        row("unknown view option",
            {"plot", "key_projection", "SAMPLE", "--policy", "keydiff@0.1", "--view-set", "joy=1", "--out", "x.png"},
            "joy");
        row("size", {"plot", "key_projection", "SAMPLE", "--policy", "keydiff@0.1", "--size", "big", "--out", "x.png"},
            "--size");
        const auto plot = [&](const char* name, const QStringList& more, const char* says) {
            row(name,
                QStringList{"plot", "key_projection", "SAMPLE", "--policy", "keydiff@0.1", "--out", "x.png"} + more,
                says);
        };
        plot("scale no number", {"--scale", "nan"}, "--scale");
        plot("first token no number", {"--first-token", "nan"}, "--first-token");
        plot("no such token", {"--first-token", "1028"}, "there is no token 1028");
        plot("image too large", {"--size", "9000x9000", "--scale", "16"}, "The largest scale of this size is 1.82");
        plot("negative layer", {"--layer", "-1"}, "--layer");
        plot("negative KV head", {"--kv-head", "-1"}, "--kv-head");
        plot("negative query head", {"--q-head", "-1"}, "--q-head");
        plot("negative pane", {"--pane", "-1"}, "--pane");
        plot("no such KV head", {"--kv-head", "2"}, "KV heads 0 to 1");
        plot("no such query head", {"--q-head", "99"}, "--q-head");
        plot("heads of two groups", {"--kv-head", "1", "--q-head", "0"}, "query head 0 reads KV head 0, not 1");
        plot("view option twice", {"--view-set", "x_component=2", "--view-set", "x_component=3"},
             "x_component is set twice");
        row("mistyped command", {"measur", "SAMPLE"}, "unknown command 'measur', did you mean 'measure'?");
        row("mistyped command alone", {"inspct"}, "Did you mean the command 'inspect'?");
        evict("parameter twice", {"--policy", "snapkv,window=16,window=8@0.1"}, "names the parameter window twice");
        row("varied twice",
            {"sweep", "SAMPLE", "--policy", "snapkv@0.1", "--vary", "window=8,16", "--vary", "window=16", "--out",
             "x.csv"},
            "window is varied twice");
        row("theme",
            {"plot", "key_projection", "SAMPLE", "--policy", "keydiff@0.1", "--theme", "pink", "--out", "x.png"},
            "pink");
    }

    void mistakes() {
        QFETCH(QStringList, arguments);
        QFETCH(QString, says);
        fill(at("text.h5"), "this is no capture\n");
        const QByteArray whole = contentOf(kSample);
        fill(at("half.h5"), whole.left(whole.size() / 2));
        const Outcome outcome = run(arguments);
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.error.startsWith("kvscope: ") && outcome.error.count('\n') == 1, outcome.error);
        QVERIFY2(outcome.error.contains(says.toUtf8()), outcome.error);
        QCOMPARE(written(), QStringList({"half.h5", "text.h5"}));
    }

    void listsWithoutTheHeadsAskedForAreRefused() {
        expectDone({"evict", kSample, "--policy", "keydiff@0.1", "--layers", "1-2", "--out", "l.json"});
        const Outcome other = run({"measure", kSample, "--selection", "l.json", "--layers", "3", "--out", "m.csv"});
        QVERIFY2(other.code == 2 && other.error.contains("It holds layers 1, 2"), other.error);
        QJsonObject list = QJsonDocument::fromJson(contentOf(at("l.json"))).object();
        list["heads"] = QJsonArray();
        fill(at("none.json"), QJsonDocument(list).toJson());
        const Outcome none = run({"measure", kSample, "--selection", "none.json", "--out", "m.csv"});
        QVERIFY2(none.code == 2 && none.error.contains("no heads") && none.error.contains("none.json"), none.error);
        QVERIFY(!written().contains("m.csv"));
    }

    void refusedOutputLeavesTheOldFile() {
        fill(at("x.json"), "mine");
        QCOMPARE(run({"evict", kSample, "--policy", "keydiff@5000t", "--out", "x.json"}).code, 2);
        QCOMPARE(contentOf(at("x.json")), QByteArray("mine"));
    }
};

KVSCOPE_CORE_TEST(CommandLineTest)
#include "command_line_test.moc"
