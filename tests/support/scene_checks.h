#pragma once

#include "tests/support/scene_text.h"
#include "views/scene/scene_builder.h"

#include <QString>
#include <QStringList>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace kvscope::scene_checks {

struct PlacedText {
    std::string text;
    Box box;
};

/// Every text with the box it covers, shrunk by half a pixel, because neighbours may touch.
inline std::vector<PlacedText> placedTexts(const Scene& scene, const TextService& service) {
    std::vector<PlacedText> texts;
    for (const Drawable& item : scene.items)
        if (const auto* text = std::get_if<TextItem>(&item); text && !text->text.empty()) {
            Box box = textBounds(*text, service);
            // Ascent and descent leave room above small letters; what must not collide is the ink.
            const double slack = std::min(box.height, box.width) * 0.16;
            texts.push_back(
                {text->text, {box.x + slack, box.y + slack, box.width - 2 * slack, box.height - 2 * slack}});
        }
    return texts;
}

inline bool overlap(const Box& a, const Box& b) {
    return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

/// Sentences about texts that lie over each other. Empty: none.
inline QStringList overlappingTexts(const Scene& scene, const TextService& service) {
    QStringList found;
    const auto texts = placedTexts(scene, service);
    for (std::size_t a = 0; a < texts.size(); ++a)
        for (std::size_t b = a + 1; b < texts.size(); ++b)
            if (overlap(texts[a].box, texts[b].box))
                found << QString("\"%1\" over \"%2\"")
                             .arg(QString::fromStdString(texts[a].text), QString::fromStdString(texts[b].text));
    return found;
}

/// Sentences about texts that leave the scene. Empty: none.
inline QStringList clippedTexts(const Scene& scene, const TextService& service) {
    QStringList found;
    for (const PlacedText& t : placedTexts(scene, service))
        if (t.box.x < 0 || t.box.y < 0 || t.box.right() > scene.width || t.box.bottom() > scene.height)
            found << QString("\"%1\" at %2,%3 size %4x%5")
                         .arg(QString::fromStdString(t.text))
                         .arg(t.box.x)
                         .arg(t.box.y)
                         .arg(t.box.width)
                         .arg(t.box.height);
    return found;
}

/// Sentences about texts that lie over each other or leave the scene. Empty: none.
inline QStringList misplacedTexts(const Scene& scene, const TextService& service) {
    return overlappingTexts(scene, service) + clippedTexts(scene, service);
}

inline std::vector<std::string> textsOf(const Scene& scene) {
    std::vector<std::string> texts;
    for (const Drawable& item : scene.items)
        if (const auto* text = std::get_if<TextItem>(&item)) texts.push_back(text->text);
    return texts;
}

/// What the first clip leaves in sight.
inline Box clipOf(const Scene& scene) {
    for (const Drawable& item : scene.items)
        if (const auto* clip = std::get_if<PushClipItem>(&item)) return clip->box;
    return {};
}

/// The first text that holds these words; empty: none does.
inline std::string textWith(const Scene& scene, const std::string& words) {
    for (const std::string& text : textsOf(scene))
        if (text.find(words) != std::string::npos) return text;
    return {};
}

inline bool says(const Scene& scene, const std::string& words) { return !textWith(scene, words).empty(); }

inline bool hasText(const Scene& scene, const std::string& whole) {
    const auto texts = textsOf(scene);
    return std::find(texts.begin(), texts.end(), whole) != texts.end();
}

inline bool hasTextFrom(const Scene& scene, const std::string& begin) {
    const auto texts = textsOf(scene);
    return std::any_of(texts.begin(), texts.end(), [&](const auto& text) { return text.starts_with(begin); });
}

/// Rectangles of this fill below the line that holds titles and chips.
inline std::vector<const RectangleItem*> boxesBelowTitle(const Scene& scene, Colour fill) {
    std::vector<const RectangleItem*> found;
    for (const Drawable& item : scene.items)
        if (const auto* box = std::get_if<RectangleItem>(&item); box && box->fill == fill && box->box.y > 24)
            found.push_back(box);
    return found;
}

/// The picture of an attention map.
inline const ImageItem* mapImage(const Scene& scene) {
    for (const Drawable& item : scene.items)
        if (const auto* image = std::get_if<ImageItem>(&item); image && image->pick.kind == PickId::Kind::Cell)
            return image;
    return nullptr;
}

/// The coloured bar of a column of colours.
inline std::optional<Box> barOf(const Scene& scene) {
    for (const Drawable& item : scene.items)
        if (const auto* box = std::get_if<RectangleItem>(&item); box && box->pick.kind == PickId::Kind::Legend)
            return box->box;
    return std::nullopt;
}

inline const PointCloudItem* cloudNamed(const Scene& scene, const std::string& name) {
    for (const Drawable& item : scene.items)
        if (const auto* cloud = std::get_if<PointCloudItem>(&item); cloud && cloud->name == name) return cloud;
    return nullptr;
}

} // namespace kvscope::scene_checks
