#pragma once

#include "views/scene/theme.h"

#include <QDBusVariant>
#include <QObject>

namespace kvscope {

enum class ThemeChoice; // app/session/session.h

/// Whether the desktop is dark, now and whenever it changes. Qt 6.4 has no colour-scheme query yet: the desktop's portal
/// is asked where there is one, else the palette that the desktop gives to programs decides.
class SystemTheme : public QObject {
    Q_OBJECT

public:
    /// Reads the palette and asks the portal, whose answer may come later. Once, before the first style sheet.
    void start();
    bool isDark() const { return m_dark; }
    /// After the event that says that palettes changed: ours replaces the desktop's, so it is lifted for the reading.
    void readPaletteSoon();

public slots:
    /// As the portal's signal: org.freedesktop.appearance, color-scheme, 1 dark, 2 light, 0 no preference.
    void settingChanged(const QString& group, const QString& key, const QDBusVariant& value);

signals:
    void changed();

private:
    void readPalette();
    void setDark(bool dark);

    bool m_dark = false, m_portalKnows = false, m_reading = false;
};

SystemTheme& systemTheme();

/// The theme of the chrome for a choice.
ThemeId themeFor(ThemeChoice choice);

} // namespace kvscope
