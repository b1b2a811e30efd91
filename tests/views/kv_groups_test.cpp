// A capture may give its KV heads any query heads: labels of groups name those that read a KV head, not their places.
#include "tests/support/forwarding_capture.h"
#include "tests/support/scene_checks.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/attention_map/attention_map_data.h"
#include "views/view.h"

#include <algorithm>
#include <memory>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

using Groups = std::vector<std::int32_t>;

/// The needle capture with other groups of query heads in its layers from `first` on.
class OtherGroups final : public kvscope::testing::ForwardingCapture {
public:
    OtherGroups(const Groups& groups, std::size_t first)
        : ForwardingCapture(needleCapture()), m_info(needleCapture()->info()) {
        for (std::size_t i = first; i < m_info.layers.size(); ++i) m_info.layers[i].gqaGroupOf = groups;
    }

    const CaptureInfo& info() const override { return m_info; }

private:
    CaptureInfo m_info;
};

ViewInput inputOf(const std::shared_ptr<const CaptureReader>& capture) {
    ViewInput input = makeInput(capture, {"keydiff@0.25", "snapkv@0.25"});
    for (PaneData& pane : input.panes) {
        RunRequest request = pane.result->request;
        request.measure = true;
        pane.result = runner().run(request, {});
    }
    return input;
}

} // namespace

class KvGroupsTest : public ViewTest {
    Q_OBJECT

public:
    KvGroupsTest() : ViewTest(viewById("head_grid")) {}

private:
    std::vector<std::string> gridLabels(const std::shared_ptr<const CaptureReader>& capture) const {
        ViewInput input = inputOf(capture);
        const ParameterValues options = optionsOf(m_view);
        fillData(input, m_view, options);
        std::vector<std::string> labels = scene_checks::textsOf(build(input, options));
        std::erase_if(labels, [](const std::string& text) { return !text.starts_with("KV "); });
        return labels;
    }

private slots:
    void theGridLabelsGroupsOnlyWhereTheyAreColumnsSideBySide() {
        using Labels = std::vector<std::string>;
        QCOMPARE(gridLabels(needleCapture()), (Labels{"KV 0", "KV 1"}));
        const Groups mixed{0, 1, 0, 1, 0, 1, 0, 1}, turned{1, 1, 1, 1, 0, 0, 0, 0};
        QCOMPARE(gridLabels(std::make_shared<OtherGroups>(mixed, 0)), Labels{});
        QCOMPARE(gridLabels(std::make_shared<OtherGroups>(mixed, 3)), Labels{}); // of one layer
        QCOMPARE(gridLabels(std::make_shared<OtherGroups>(turned, 0)), (Labels{"KV 1", "KV 0"}));
    }

    void theErrorPerQueryNamesTheHeadsOfItsMean() {
        const View& view = viewById("error_difference");
        const ParameterValues options = optionsOf(view, {{"heads", "mean"}});
        const auto sentence = [&](const Groups& groups) {
            return view.finding(inputOf(std::make_shared<OtherGroups>(groups, 0)), options);
        };
        const std::string run = sentence({0, 0, 0, 0, 1, 1, 1, 1}), mixed = sentence({0, 1, 0, 1, 0, 1, 0, 1}),
                          one = sentence({0, 0, 0, 1, 0, 0, 0, 0});
        QVERIFY2(run.find("mean of query heads 4–7") != std::string::npos, run.c_str());
        QVERIFY2(mixed.find("mean of query heads 1, 3, 5, 7") != std::string::npos, mixed.c_str());
        QVERIFY2(one.find("query head 3") != std::string::npos && one.find("mean of") == std::string::npos,
                 one.c_str());
    }

    void theMapNamesTheHeadsOfItsMean() {
        const View& view = viewById("attention_map");
        const ParameterValues options = optionsOf(view, {{"heads", "mean"}});
        const auto headsOf = [&](const Groups& groups) {
            ViewInput input = inputOf(std::make_shared<OtherGroups>(groups, 0));
            fillData(input, view, options);
            return dataAs<AttentionMapData>(input)->heads;
        };
        const std::string run = headsOf({0, 0, 0, 0, 1, 1, 1, 1}), mixed = headsOf({0, 1, 0, 1, 0, 1, 0, 1});
        QVERIFY2(run.find("mean of query heads 4–7") != std::string::npos, run.c_str());
        QVERIFY2(mixed.find("mean of query heads 1, 3, 5, 7") != std::string::npos, mixed.c_str());
    }
};

KVSCOPE_OFFSCREEN_TEST(KvGroupsTest)
#include "kv_groups_test.moc"
