// All fields are checked before anything moves, so that a typing error changes nothing.
#include "app/window/dialogs/go_to_dialog.h"

#include "app/window/style/number_text.h"
#include "app/window/widgets/small_widgets.h"
#include "views/view.h"

#include <QDialogButtonBox>
#include <QGridLayout>
#include <QLineEdit>
#include <QLocale>
#include <QPushButton>

#include <algorithm>
#include <optional>

namespace kvscope {

namespace {

constexpr int kAround = 32; // cells shown on each side of the target

/// The number in a field; nothing when it is empty. Increments `wrong` for anything else than a number below `limit`.
std::optional<int> placeIn(QLineEdit* field, std::int64_t limit, int& wrong) {
    const QString text = field->text().trimmed();
    bool whole = false;
    const int value = QLocale::c().toInt(text, &whole); // accepts 1,024, too
    const bool bad = !text.isEmpty() && (!whole || value < 0 || value >= limit);
    setWrong(field, bad);
    wrong += bad ? 1 : 0;
    return text.isEmpty() || bad ? std::nullopt : std::optional(value);
}

Viewport::Range around(int key, int query, std::int64_t tokens) {
    const auto end = static_cast<double>(tokens), side = std::min<double>(2 * kAround + 1, end);
    const auto low = [&](int at) { return std::clamp<double>(at - kAround, 0, end - side); };
    return {low(key), low(key) + side, low(query), low(query) + side};
}

} // namespace

GoToDialog::GoToDialog(Workbench& workbench, QWidget* parent) : QDialog(parent), m_workbench(workbench) {
    setObjectName("goTo");
    setAttribute(Qt::WA_DeleteOnClose);
    setWindowTitle(tr("Go to"));
    const Session& now = workbench.session();
    auto* grid = makeLayout<QGridLayout>(this, {16, 12, 16, 12});
    m_layer = field("goToLayer", tr("Layer"), 0);
    m_kvHead = field("goToKvHead", tr("KV head"), 1);
    m_queryHead = field("goToQueryHead", tr("Query head"), 2);
    m_key = field("goToKey", tr("Key (token)"), 3);
    m_query = field("goToQuery", tr("Query (token)"), 4);
    m_layer->setText(QString::number(now.layer.value));
    m_kvHead->setPlaceholderText(QString::number(now.kvHead.value));
    m_queryHead->setPlaceholderText(QString::number(now.queryHead.value));
    m_why = added(grid, named("goToWhy", wrappedLabel({}, "error", this)), 5, 0, 1, 2);
    auto* buttons = added(grid, new QDialogButtonBox(QDialogButtonBox::Ok | QDialogButtonBox::Close, this), 6, 0, 1, 2);
    buttons->button(QDialogButtonBox::Ok)->setText(tr("Go"));
    connect(buttons, &QDialogButtonBox::accepted, this, [this] {
        if (apply()) accept();
    });
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    m_layer->setFocus();
    m_layer->selectAll();
}

QLineEdit* GoToDialog::field(const char* name, const QString& label, int row) {
    auto* grid = static_cast<QGridLayout*>(layout());
    grid->addWidget(roleLabel(label, "fact", this), row, 0);
    return added(grid, named(name, numberField(92, label, this)), row, 1);
}

bool GoToDialog::refuse(QLineEdit* field, const QString& why) {
    setWrong(field, true);
    m_why->setText(why);
    return false;
}

bool GoToDialog::apply() {
    const auto capture = m_workbench.capture();
    if (!capture) return false;
    const CaptureInfo& info = capture->info();
    int wrong = 0;
    const auto layer = placeIn(m_layer, info.layers.back().layer.value + 1, wrong);
    const auto kvHead = placeIn(m_kvHead, info.numKvHeads, wrong),
               queryHead = placeIn(m_queryHead, info.numQueryHeads, wrong);
    const auto key = placeIn(m_key, info.numTokens, wrong), query = placeIn(m_query, info.numTokens, wrong);
    const bool known =
        !layer || std::ranges::any_of(info.layers, [&](const LayerInfo& l) { return l.layer.value == *layer; });
    if (!known) setWrong(m_layer, true);
    if (wrong > 0 || !known) {
        m_why->setText(
            tr("This capture has layers up to %1, %2 KV heads, %3 query heads and %4 tokens, all counted from 0.")
                .arg(info.layers.back().layer.value)
                .arg(info.numKvHeads)
                .arg(info.numQueryHeads)
                .arg(countText(info.numTokens)));
        return false;
    }
    if (query && !key) return refuse(m_key, tr("A query is shown together with a key: give the key, too."));
    const LayerIndex goesTo = layer ? LayerIndex(*layer) : m_workbench.session().layer;
    if (const int read = queryHead ? info.layerInfo(goesTo).gqaGroupOf[static_cast<std::size_t>(*queryHead)] : 0;
        kvHead && queryHead && read != *kvHead)
        return refuse(m_kvHead, tr("Query head %1 reads KV head %2.").arg(*queryHead).arg(read));
    m_workbench.change(
        [&](Session& s) {
            if (layer) s.layer = LayerIndex(*layer);
            if (kvHead) chooseKvHead(s, KvHeadIndex(*kvHead), *capture);
            if (queryHead) chooseQueryHead(s, QueryHeadIndex(*queryHead), *capture);
            if (key) select(s, {static_cast<TokenIndex>(*key)});
            if (key && query) {
                s.look.ranges[viewAt(ViewPlace::BesidePane).card().id] = around(*key, *query, info.numTokens);
                setViewOption(s, viewAt(ViewPlace::BesidePane).card().id, "cell",
                              std::to_string(*query) + "," + std::to_string(*key));
            }
        },
        tr("Go to"));
    return true;
}

} // namespace kvscope
