#pragma once

#include "views/scene/theme.h"

#include <QDBusVariant>
#include <QObject>
#include <QStringList>

namespace kvscope {

enum class ThemeChoice; // app/study/session.h

/// Whether the desktop is dark and whether it asks for reduced motion, with signals for changes. Qt 6.4 reports
/// neither: the desktop portal is asked where there is one; otherwise the palette shows whether the desktop is dark,
/// and reduced motion is unknown.
class SystemTheme : public QObject {
    Q_OBJECT

public:
    /// Reads the palette and queries the portal, whose answer may come later. Call once, before the first style sheet.
    void start();
    bool isDark() const { return m_dark; }
    /// Any of: org.freedesktop.appearance reduced-motion 1, GNOME's enable-animations false, KDE's
    /// AnimationDurationFactor 0.
    bool isMotionReduced() const { return !m_still.isEmpty(); }
    /// Call after a palette change event. Reading removes our own palette for a moment.
    void readPaletteSoon();

public slots:
    /// Receives the portal's signal: color-scheme of org.freedesktop.appearance (1 dark, 2 light, 0 no preference), or
    /// one of the three motion settings.
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

    QStringList m_still; ///< settings that ask for reduced motion
    bool m_dark = false, m_portalKnows = false, m_reading = false;
};

SystemTheme& systemTheme();

/// The theme of the chrome for the user's choice.
ThemeId themeFor(ThemeChoice choice);

} // namespace kvscope
