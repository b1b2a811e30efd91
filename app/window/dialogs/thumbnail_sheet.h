#pragma once

#include "app/window/dialogs/view_thumbnail.h"
#include "app/workbench/workbench.h"

#include <QDialog>
#include <QTimer>

#include <map>
#include <utility>
#include <vector>

class QGridLayout;
class QLabel;
class QLineEdit;

namespace kvscope {

/// Small pictures under headings, to be searched by typing and chosen by Enter or a click. Pictures are drawn one after
/// another while the sheet is open; a closed sheet computes nothing. Data are kept until the session needs others.
class ThumbnailSheet : public QDialog {
    Q_OBJECT

public:
    /// Opens the sheet as large as the window allows, with an empty search.
    void present();
    std::vector<ViewThumbnail*> shown() const; ///< cards that match what is searched, in their order

signals:
    void chosen(const ViewThumbnail& card);

protected:
    using Group = std::pair<QString, std::vector<ViewThumbnail*>>; ///< heading, cards

    ThumbnailSheet(Workbench& workbench, const TextService& text, QWidget* parent);
    ~ThumbnailSheet() override; ///< cancels the pictures
    /// To be called once, by the constructor of the derived class.
    void fill(const QString& hint, std::vector<Group> groups);
    QWidget* body() const { return m_body; } ///< parent of the cards
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
    void draw(ViewThumbnail& card, const Session& session, const DataState& data);
    ParameterValues sharedOptions(const ViewThumbnail& card, const Session& session);
    void choose(ViewThumbnail* card);
    void moveFocus(int key);
    ViewThumbnail* best() const; ///< what Enter chooses: the first card that matches by its title, else the first match
    Session sessionOf(const ViewThumbnail& card) const;

    Workbench& m_workbench;
    const TextService& m_text;
    QLineEdit* m_search;
    QWidget* m_body;
    QGridLayout* m_grid;
    QLabel* m_nothing;
    std::vector<Group> m_groups;
    std::vector<ViewThumbnail*> m_cards; ///< group by group
    std::vector<QLabel*> m_headings;     ///< of the groups
    std::vector<ViewThumbnail*> m_old;   ///< to be drawn
    std::map<const ViewThumbnail*, Data> m_data;
    QTimer m_next; ///< one picture at a time, so that the window answers
    int m_columns = 4;
    std::string m_range; ///< of colours or of an axis, which all heads share
    bool m_outdated = true;
};

/// All views of the session, grouped by the question that they answer.
class ViewGallery : public ThumbnailSheet {
    Q_OBJECT

public:
    ViewGallery(Workbench& workbench, const TextService& text, QWidget* parent);
};

/// One view for all heads of the layer: for the query heads, by KV head, if it is about one of them, else for KV heads.
class HeadGallery : public ThumbnailSheet {
    Q_OBJECT

public:
    /// A capture must be open, and the view must be about one head (`headsOf`).
    HeadGallery(Workbench& workbench, const View& view, const TextService& text, QWidget* parent);
};

} // namespace kvscope
