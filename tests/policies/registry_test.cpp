// Refuses a policy that does not say what it is: paper, help, ranges, sources, variants and explanation.
#include "core/base/error.h"
#include "core/policies/explanations.h"
#include "core/policies/policy.h"
#include "tests/support/error_message.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QDirIterator>
#include <QFile>
#include <QRegularExpression>
#include <QtTest>

#include <set>

using namespace kvscope;

namespace {

bool isSnakeCase(const std::string& id) {
    static const QRegularExpression form("^[a-z][a-z0-9]*(_[a-z0-9]+)*$");
    return form.match(QString::fromStdString(id)).hasMatch();
}

// What is wrong with the row, or nothing.
QStringList complaints(const ParameterSpec& row) {
    QStringList wrong;
    if (!isSnakeCase(row.id)) wrong << "id is not snake_case";
    if (row.label.empty() || row.help.size() < 10 || row.source.empty()) wrong << "label, help or source is missing";
    if (row.kind == ParameterKind::Text) return wrong;
    if (!(row.min < row.max) || row.defaultValue < row.min || row.defaultValue > row.max)
        wrong << "range is empty or does not hold the default";
    if (row.kind == ParameterKind::Integer && row.unit.empty()) wrong << "a whole number has no unit";
    if ((row.kind == ParameterKind::Choice) != !row.choices.empty()) wrong << "choices do not fit the kind";
    if (row.kind == ParameterKind::Choice && row.max != static_cast<double>(row.choices.size()) - 1)
        wrong << "range does not fit the choices";
    for (const ParameterChoice& choice : row.choices)
        if (!isSnakeCase(choice.id) || choice.label.empty() || choice.help.empty())
            wrong << "choice " + QString::fromStdString(choice.id) + " is not explained";
    return wrong;
}

QStringList complaints(const PolicyCard& card) {
    QStringList wrong;
    if (!isSnakeCase(card.id) || card.name.empty() || card.summary.size() < 20 || card.scoreLabel.empty())
        wrong << "id, name, summary or score label is missing";
    static const QRegularExpression year("(19|20)\\d\\d|Baseline of");
    if (!QString::fromStdString(card.paper).contains(year)) wrong << "paper is missing";
    if (card.variants.empty() || !card.parameters) wrong << "variants or parameters are missing";
    const auto lines = QString::fromStdString(card.explanation).split('\n').size();
    if (lines < 10 || lines > 45 || !card.explanation.starts_with("# " + card.name + "\n"))
        wrong << "explanation is missing, too long or has another title";
    if (card.explanation != policyExplanation(card.id)) wrong << "explanation is not that of the policy's page";
    return wrong;
}

} // namespace

class RegistryTest : public QObject {
    Q_OBJECT

private slots:
    void everyPolicyIsFoundByItsId() {
        std::set<std::string> ids;
        for (const Policy* policy : allPolicies()) {
            QVERIFY2(ids.insert(policy->card().id).second, policy->card().id.c_str());
            QCOMPARE(&policyById(policy->card().id), policy);
            QCOMPARE(familyOf(policy->card().id), policy->card().family);
        }
        QVERIFY(ids.size() >= 17);
        QVERIFY(!findPolicy("no_such_policy"));
        QCOMPARE(familyOf("no_such_policy"), PolicyFamily::None);
    }

    void everyFamilyHasItsFirstPolicy() {
        using enum PolicyFamily;
        for (const PolicyFamily family : {KeyDiff, Compactor, Leverage, Clusters, Centres, BalanceRounds, BalanceTree})
            QCOMPARE(familyOf(firstOf(family)), family);
    }

    void everyCardIsComplete() {
        for (const Policy* policy : allPolicies()) {
            const QStringList wrong = complaints(policy->card());
            QVERIFY2(wrong.isEmpty(), qPrintable(QString::fromStdString(policy->card().id) + ": " + wrong.join("; ")));
        }
    }

    void everyParameterIsExplained() {
        for (const Policy* policy : allPolicies()) {
            std::set<std::string> ids;
            for (const ParameterSpec& row : *policy->card().parameters) {
                const QStringList wrong = complaints(row);
                QVERIFY2(wrong.isEmpty(), qPrintable(QString::fromStdString(row.id) + ": " + wrong.join("; ")));
                QVERIFY2(ids.insert(row.id).second, row.id.c_str());
            }
        }
    }

    void everyVariantAppliesAndDiffers() {
        for (const Policy* policy : allPolicies()) {
            const PolicyCard& card = policy->card();
            std::set<std::string> seen;
            for (const PolicyVariant& variant : card.variants) {
                QVERIFY(isSnakeCase(variant.id) && !variant.label.empty() && !variant.summary.empty());
                const ParameterValues values = variantValues(card, variant.id);
                QVERIFY2(seen.insert(values.key(Stage::Select)).second, variant.id.c_str());
                for (const auto& [id, text] : variant.values) QCOMPARE(values.text(id), text);
            }
            QVERIFY(variantValues(card, "") == variantValues(card, card.variants.front().id));
        }
    }

    // Every variant named in the table is explained on the policy's page, under its id.
    void everyVariantIsOnThePage() {
        for (const Policy* policy : allPolicies())
            for (const PolicyVariant& variant : policy->card().variants)
                if (policy->card().variants.size() > 1)
                    QVERIFY2(policy->card().explanation.find("*" + variant.id + "*") != std::string::npos,
                             (policy->card().id + ":" + variant.id).c_str());
    }

    // Nothing is lost on the way into the program (lists, semicolons, brackets).
    void explanationsAreTheFiles() {
        for (const Policy* policy : allPolicies()) {
            const QString name = QString::fromStdString(policy->card().id) + ".md";
            QDirIterator pages(QString::fromStdString(kvscope::testing::sourceDir() + "/core/policies"), {name},
                               QDir::Files, QDirIterator::Subdirectories);
            QVERIFY2(pages.hasNext(), qPrintable(name));
            QFile file(pages.next());
            QVERIFY(file.open(QIODevice::ReadOnly));
            QCOMPARE(QByteArray::fromStdString(policy->card().explanation), file.readAll());
        }
    }

    void blocksAreRefusedByNameOrOffered() {
        for (const Policy* policy : allPolicies()) {
            const PolicyCard& card = policy->card();
            QCOMPARE(variantValues(card, "").has("prompt_block"), card.blockRefusal.empty());
        }
    }

    void aBareCardIsRefused() {
        QVERIFY(complaints(PolicyCard{}).size() >= 4);
        QVERIFY(complaints(ParameterSpec{}).size() >= 2);
    }

    void unknownNamesAreRefused() {
        QCOMPARE(errorText([] { (void)policyById("streaming_lm"); }),
                 "unknown policy 'streaming_lm'. Did you mean 'streaming_llm'?");
        QVERIFY(policyExplanation("no_such_policy").empty());
    }
};

KVSCOPE_TEST(RegistryTest)
#include "registry_test.moc"
