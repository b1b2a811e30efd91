// The program's own palette replaces the desktop's. To read the desktop's, it is removed for a moment and set again at
// once, before anything is painted.
#include "app/window/style/system_theme.h"

#include "app/study/session.h"

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
const QString kAppearance = "org.freedesktop.appearance", kScheme = "color-scheme", kReduced = "reduced-motion";
const QString kGnome = "org.gnome.desktop.interface", kAnimations = "enable-animations";
const QString kKde = "org.kde.kdeglobals.KDE", kDuration = "AnimationDurationFactor";

/// Connecting without a bus would start one, which is slow and unwanted.
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
    if (!hasSessionBus()) return;
    QDBusConnection bus = QDBusConnection::sessionBus();
    bus.connect(kService, kPath, kInterface, "SettingChanged", this,
                SLOT(settingChanged(QString, QString, QDBusVariant)));
    ask(kAppearance, kScheme);
    ask(kAppearance, kReduced);
    ask(kGnome, kAnimations);
    ask(kKde, kDuration);
}

/// A setting that the desktop lacks is answered with an error and stays as it is.
void SystemTheme::ask(const QString& group, const QString& key) {
    QDBusMessage question = QDBusMessage::createMethodCall(kService, kPath, kInterface, "Read");
    question.setArguments({group, key});
    auto* answer = new QDBusPendingCallWatcher(QDBusConnection::sessionBus().asyncCall(question), this);
    connect(answer, &QDBusPendingCallWatcher::finished, this, [this, answer, group, key] {
        const QDBusPendingReply<QDBusVariant> reply = *answer;
        if (reply.isValid()) settingChanged(group, key, reply.value());
        answer->deleteLater();
    });
}

void SystemTheme::settingChanged(const QString& group, const QString& key, const QDBusVariant& value) {
    QVariant setting = value.variant();
    if (setting.canConvert<QDBusVariant>()) // `Read` wraps its answer twice
        setting = setting.value<QDBusVariant>().variant();
    if (group == kAppearance && key == kScheme)
        schemeChanged(setting.toUInt());
    else if (group == kAppearance && key == kReduced)
        setStill(key, setting.toUInt() == 1);
    else if (group == kGnome && key == kAnimations)
        setStill(key, !setting.toBool());
    else if (group == kKde && key == kDuration) // a number, written as text
        setStill(key, setting.toString().toDouble() == 0);
}

void SystemTheme::schemeChanged(unsigned scheme) {
    m_portalKnows = scheme != 0;
    if (m_portalKnows)
        setDark(scheme == 1);
    else
        readPalette();
}

void SystemTheme::setStill(const QString& setting, bool still) {
    const bool before = isMotionReduced();
    m_still.removeAll(setting);
    if (still) m_still.append(setting);
    if (isMotionReduced() != before) emit motionChanged();
}

void SystemTheme::readPaletteSoon() {
    if (!m_reading) QTimer::singleShot(0, this, &SystemTheme::readPalette);
}

void SystemTheme::readPalette() {
    if (m_portalKnows || m_reading) return;
    m_reading = true;
    const QPalette ours = QGuiApplication::palette();
    QApplication::setPalette(QPalette());
    const bool dark = looksDark(QGuiApplication::palette());
    QApplication::setPalette(ours);
    m_reading = false;
    setDark(dark);
}

void SystemTheme::setDark(bool dark) {
    if (dark == m_dark) return;
    m_dark = dark;
    emit changed();
}

ThemeId themeFor(ThemeChoice choice) {
    if (choice == ThemeChoice::System) return systemTheme().isDark() ? ThemeId::Dark : ThemeId::Light;
    return choice == ThemeChoice::Dark ? ThemeId::Dark : ThemeId::Light;
}

} // namespace kvscope
