// What a variant sets, written down: who cites "SnapKV as kvpress has it" cites these numbers. Beside the list the ones
// that the sources print, by hand.
#include "core/policies/policy.h"
#include "core/policies/policy_spec.h"
#include "tests/support/golden.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;

namespace {

ParameterValues valuesOf(const std::string& spec) { return PolicySpec::parse(spec).values; }

} // namespace

class VariantsTest : public QObject {
    Q_OBJECT

private slots:
    // A policy that the list does not know yet is left out until the list is made anew: its own test comes first.
    void whatEachVariantSets() {
        std::vector<std::string> lines = {"# policy:variant | parameters that differ from the policy's defaults"};
        for (const Policy* policy : allPolicies())
            for (const PolicyVariant& variant : policy->card().variants) {
                const ParameterValues values = variantValues(policy->card(), variant.id);
                std::string line = policy->card().id + ":" + variant.id + " |";
                for (const ParameterSpec& row : values.table())
                    if (!values.isDefault(row.id)) line += " " + row.id + "=" + values.text(row.id);
                lines.push_back(line);
            }
        QVERIFY(lines.size() > 50);
        const std::string differs = golden::compare("policies_variants.txt", lines);
        QVERIFY2(differs.empty(), differs.c_str());
    }

    // The table of 6.4: window and pooling of each source.
    void snapKvOfEachSource() {
        struct Row {
            const char* variant;
            int window, width;
            const char *pool, *group;
        };
        for (const Row& row :
             {Row{"kvpress", 64, 5, "average", "mean"}, Row{"keydiff", 32, 7, "average", "mean"},
              Row{"kvcache_factory", 8, 7, "max", "mean"}, Row{"original_class", 64, 5, "average", "mean"},
              Row{"compactor_vllm", 32, 5, "trailing", "sum"}}) {
            const ParameterValues values = valuesOf(std::string("snapkv:") + row.variant);
            QCOMPARE(values.integer("window"), row.window);
            QCOMPARE(values.integer("pool_width"), row.width);
            QCOMPARE(values.choice("pool"), std::string(row.pool));
            if (std::string(row.variant) != "kvcache_factory" && std::string(row.variant) != "original_class")
                QCOMPARE(values.choice("group_rule"), std::string(row.group));
        }
    }

    // The table of 4.3, and C 256 / 256 / 128, k 64 / 48 / 48.
    void compactorOfEachSource() {
        const ParameterValues paper = valuesOf("compactor"), kvpress = valuesOf("compactor:kvpress"),
                              vllm = valuesOf("compactor:compactor_vllm");
        QVERIFY(paper.integer("sketch_size") == 64 && kvpress.integer("sketch_size") == 48 &&
                vllm.integer("sketch_size") == 48);
        QVERIFY(paper.integer("chunk") == 256 && kvpress.integer("chunk") == 256 && vllm.integer("chunk") == 128);
        QVERIFY(paper.real("lambda") == 0.3 && kvpress.choice("lambda_rule") == "removed" &&
                vllm.real("lambda") == 0.5);
        QVERIFY(!paper.flag("centred") && kvpress.flag("centred") && vllm.flag("centred"));
        QVERIFY(paper.choice("z_scope") == "head" && kvpress.choice("z_scope") == "layer" && kvpress.flag("z_sample"));
        QVERIFY(kvpress.integer("protect_first") == 8 && kvpress.integer("protect_last") == 4);
        QVERIFY(vllm.integer("protect_first") == 16 && vllm.integer("protect_last") == 64 &&
                vllm.integer("page") == 128);
        QVERIFY(vllm.choice("selection") == "joint" && paper.choice("selection") == "head");
    }

    // kvpress's BlockPress cuts the prompt into blocks after the cache is full, whatever policy it runs (K3).
    void kvpressCutsBlocksAfterTheCacheIsFull() {
        int variants = 0;
        for (const Policy* policy : allPolicies())
            for (const PolicyVariant& variant : policy->card().variants) {
                const ParameterValues values = variantValues(policy->card(), variant.id);
                if (!variant.id.starts_with("kvpress") || !values.has("prompt_alignment")) continue;
                QVERIFY2(values.choice("prompt_alignment") == "kvpress", policy->card().id.c_str());
                ++variants;
            }
        QVERIFY(variants >= 8);
    }

    // 6.3: one set per layer in the original and in kvpress, one per KV head in KeyDiff's runs (L2). 6.6: sinks,
    // positions (L6).
    void scopesSinksAndPositions() {
        QCOMPARE(valuesOf("tova").choice("scope"), std::string("layer"));
        QCOMPARE(valuesOf("tova:kvpress").choice("scope"), std::string("layer"));
        QVERIFY(valuesOf("tova:keydiff").choice("scope") != "layer");
        for (const char* variant : {"gaps", "paper", "kvpress", "kvpress_rerotated", "minference"}) {
            const ParameterValues values = valuesOf(std::string("streaming_llm:") + variant);
            const std::string name = variant;
            QCOMPARE(values.integer("sinks"), name == "minference" ? 128 : 4);
            QCOMPARE(values.choice("positions") == "rerotated", name == "paper" || name == "kvpress_rerotated");
            QCOMPARE(values.choice("rounding") == "floor", name.starts_with("kvpress"));
        }
        QCOMPARE(valuesOf("streaming_llm").choice("positions"), std::string("kept"));
    }
};

KVSCOPE_TEST(VariantsTest)
#include "variants_test.moc"
