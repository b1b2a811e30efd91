#pragma once

#include "app/window/dialogs/view_thumbnail.h"
#include "app/workbench/workbench.h"

#include <QDialog>
#include <QTimer>

#include <map>
#include <vector>

class QGridLayout;
class QLabel;
class QLineEdit;

namespace kvscope {

/// Small pictures of all views of the session, grouped by the question that they answer, to be searched by typing and
/// opened with Enter or a click. Pictures are drawn one after another while the gallery is open; closed, it computes
/// nothing. Data of a view are kept until the session needs others.
class ViewGallery : public QDialog {
    Q_OBJECT

public:
    ViewGallery(Workbench& workbench, const TextService& text, QWidget* parent);

    /// As large as the window allows, with nothing searched.
    void present();
    std::vector<ViewThumbnail*> shown() const; ///< cards that match what is searched, in their order

signals:
    void chosen(const View& view);

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void hideEvent(QHideEvent* event) override;

private:
    struct Data {
        std::string key;
        DataState state;
    };

    void arrange();  ///< the cards that match, in groups
    void outdate();  ///< the session or a result has changed
    void drawNext(); ///< a card whose picture is old
    void compute(ViewThumbnail& card);
    void draw(ViewThumbnail& card, const DataState& data);
    void choose(ViewThumbnail* card);
    void moveFocus(int key);

    Workbench& m_workbench;
    const TextService& m_text;
    QLineEdit* m_search;
    QWidget* m_body;
    QGridLayout* m_grid;
    QLabel* m_nothing;
    std::vector<ViewThumbnail*> m_cards; ///< group by group
    std::vector<QLabel*> m_headings;     ///< of the groups
    std::vector<ViewThumbnail*> m_old;   ///< to be drawn
    std::map<const View*, Data> m_data;
    QTimer m_next; ///< one picture at a time, so that the window answers
    int m_columns = 4;
    bool m_outdated = true;
};

} // namespace kvscope
