// The program's own palette hides the desktop's. It is taken away for the moment of the reading and set again at once;
// nothing is painted in between.
#include "app/window/system_theme.h"

#include "app/session/session.h"

#include <QApplication>
#include <QDBusConnection>
#include <QDBusMessage>
#include <QDBusPendingCallWatcher>
#include <QDBusPendingReply>
#include <QFileInfo>
#include <QPalette>
#include <QTimer>

namespace kvscope {

namespace {

constexpr const char *kService = "org.freedesktop.portal.Desktop", *kPath = "/org/freedesktop/portal/desktop",
                     *kInterface = "org.freedesktop.portal.Settings";
const QString kGroup = "org.freedesktop.appearance", kKey = "color-scheme";

/// Connecting without a bus would start one, which is slow and none of a viewer's business.
bool hasSessionBus() {
    return qEnvironmentVariableIsSet("DBUS_SESSION_BUS_ADDRESS") ||
           QFileInfo::exists(qEnvironmentVariable("XDG_RUNTIME_DIR", "/nowhere") + "/bus");
}

bool looksDark(const QPalette& palette) {
    return palette.color(QPalette::Window).lightness() < palette.color(QPalette::WindowText).lightness();
}

} // namespace

SystemTheme& systemTheme() {
    static SystemTheme theme;
    return theme;
}

void SystemTheme::start() {
    m_dark = looksDark(QGuiApplication::palette());
    if (!hasSessionBus())
        return;
    QDBusConnection bus = QDBusConnection::sessionBus();
    bus.connect(kService, kPath, kInterface, "SettingChanged", this, SLOT(settingChanged(QString, QString, QDBusVariant)));
    QDBusMessage question = QDBusMessage::createMethodCall(kService, kPath, kInterface, "Read");
    question.setArguments({kGroup, kKey});
    auto* answer = new QDBusPendingCallWatcher(bus.asyncCall(question), this);
    connect(answer, &QDBusPendingCallWatcher::finished, this, [this, answer] {
        const QDBusPendingReply<QDBusVariant> reply = *answer;
        if (reply.isValid())
            settingChanged(kGroup, kKey, reply.value());
        answer->deleteLater();
    });
}

void SystemTheme::settingChanged(const QString& group, const QString& key, const QDBusVariant& value) {
    if (group != kGroup || key != kKey)
        return;
    QVariant scheme = value.variant();
    if (scheme.canConvert<QDBusVariant>()) // `Read` wraps its answer twice
        scheme = scheme.value<QDBusVariant>().variant();
    m_portalKnows = scheme.toUInt() != 0;
    if (m_portalKnows)
        setDark(scheme.toUInt() == 1);
    else
        readPalette();
}

void SystemTheme::readPaletteSoon() {
    if (!m_reading)
        QTimer::singleShot(0, this, &SystemTheme::readPalette);
}

void SystemTheme::readPalette() {
    if (m_portalKnows || m_reading)
        return;
    m_reading = true;
    const QPalette ours = QGuiApplication::palette();
    QApplication::setPalette(QPalette());
    const bool dark = looksDark(QGuiApplication::palette());
    QApplication::setPalette(ours);
    m_reading = false;
    setDark(dark);
}

void SystemTheme::setDark(bool dark) {
    if (dark == m_dark)
        return;
    m_dark = dark;
    emit changed();
}

ThemeId themeFor(ThemeChoice choice) {
    if (choice == ThemeChoice::System)
        return systemTheme().isDark() ? ThemeId::Dark : ThemeId::Light;
    return choice == ThemeChoice::Dark ? ThemeId::Dark : ThemeId::Light;
}

} // namespace kvscope
