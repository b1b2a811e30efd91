#pragma once

#include "views/scene/theme.h"

#include <QDBusVariant>
#include <QObject>
#include <QStringList>

namespace kvscope {

enum class ThemeChoice; // app/study/session.h

/// Whether the desktop is dark and whether it wants things to stand still, now and whenever that changes. Qt 6.4 can
/// ask for neither: the desktop's portal is asked where there is one; without it the palette that the desktop gives to
/// programs says whether it is dark, and nothing says that motion is unwanted.
class SystemTheme : public QObject {
    Q_OBJECT

public:
    /// Reads the palette and asks the portal, whose answer may come later. Once, before the first style sheet.
    void start();
    bool isDark() const { return m_dark; }
    /// Any of: org.freedesktop.appearance reduced-motion 1, GNOME's enable-animations false, KDE's
    /// AnimationDurationFactor 0.
    bool isMotionReduced() const { return !m_still.isEmpty(); }
    /// After the event that says that palettes changed: ours replaces the desktop's, so it is lifted for the reading.
    void readPaletteSoon();

public slots:
    /// As the portal's signal: of org.freedesktop.appearance color-scheme (1 dark, 2 light, 0 no preference), or one of
    /// the three settings of motion.
    void settingChanged(const QString& group, const QString& key, const QDBusVariant& value);

signals:
    void changed();
    void motionChanged();

private:
    void ask(const QString& group, const QString& key);
    void schemeChanged(unsigned scheme);
    void setStill(const QString& setting, bool still);
    void readPalette();
    void setDark(bool dark);

    QStringList m_still; ///< settings that ask for it
    bool m_dark = false, m_portalKnows = false, m_reading = false;
};

SystemTheme& systemTheme();

/// The theme of the chrome for a choice.
ThemeId themeFor(ThemeChoice choice);

} // namespace kvscope
