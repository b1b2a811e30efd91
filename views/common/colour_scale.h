#pragma once

#include "views/common/value_range.h"
#include "views/scene/colour_column.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kvscope {

/// Turns values into places on a colour map, between two ends that can be chosen, and describes the column that shows
/// the map. A value first becomes a level: log10 of the value on a logarithmic scale, its signed root on a SignedRoot
/// scale, else the value itself.
class ColourScale {
public:
    enum class Kind { Linear, Logarithmic, Signed, SignedRoot }; ///< signed: 0 in the middle, one end moves the other
    virtual ~ColourScale() = default;

    const std::string& colourMapName() const { return m_map; }
    bool inverted() const { return m_inverted; }
    bool isSigned() const { return m_kind == Kind::Signed || m_kind == Kind::SignedRoot; }
    bool isLogarithmic() const { return m_kind == Kind::Logarithmic; }
    /// What the ends of the range measure ("weight").
    const std::string& quantity() const { return m_quantity; }
    /// What has the values, in the plural ("cells").
    const std::string& owners() const { return m_owners; }

    ValueRange range() const; ///< values at the ends of the colours
    /// The only value shown, where all are equal and no range is chosen; the ends of the colours are then arbitrary.
    std::optional<double> onlyValue() const { return m_chosen ? std::nullopt : m_onlyValue; }
    double valueAt(double place) const; ///< at a place of the column, 0 bottom .. 1 top, clamped to the column
    /// The ends, as values, of a range that leaves out this share of the values shown on each side.
    std::pair<double, double> middle(double leftOut) const;
    std::pair<double, double> sharesBeyond() const; ///< of the values shown, below and above the colours
    ColourColumnSpec column() const;                ///< with the histogram of the values shown

protected:
    ColourScale(Kind kind, std::string quantity, std::string owners, std::string map, bool inverted);
    /// Colours and column both run between these levels until a range is chosen.
    void setEnds(double low, double high);
    void setOnlyValue(double value) { m_onlyValue = value; }
    void stretchColumn(double below, double above); ///< by so many levels, to show values beyond the colours
    /// Takes the chosen ends where they mean something on this scale; the column grows to hold them.
    void choose(const ValueRange& chosen);
    /// The levels of all values shown, in pieces of any length; minus infinity where a value has none.
    using VisitLevels = std::function<void(std::span<const double>)>;
    virtual void visitLevels(const VisitLevels& visit) const = 0;

    /// Place on the colour map, 0..1; a level beyond an end gets the end.
    double placeOfLevel(double level) const { return std::clamp((level - m_low) / (m_high - m_low), 0.0, 1.0); }
    double valueOfLevel(double level) const;
    double levelOfValue(double value) const;
    bool isChosen() const { return m_chosen; }

private:
    std::vector<Tick> ticks() const; ///< their values are levels
    /// How the values beside the column are written.
    struct Notation {
        std::function<std::string(double)> tick, end;
    };
    Notation notation() const;
    std::vector<double> sortedLevels() const;

    Kind m_kind;
    std::string m_quantity, m_owners, m_map;
    bool m_inverted = false, m_chosen = false;
    double m_low = 0, m_high = 1;             ///< levels at the ends of the colours
    double m_columnLow = 0, m_columnHigh = 1; ///< levels at the ends of the column, which reaches further
    std::optional<double> m_onlyValue;
};

/// The scale of a list of values, from the smallest to the largest; signed ones in red and blue about 0. NaN is left
/// out.
class ValueScale final : public ColourScale {
public:
    ValueScale(std::vector<double> values, bool isSigned, std::string quantity, std::string owners, std::string map,
               const ValueRange& chosen);

    bool isEmpty() const { return m_values.empty(); }
    double place(double value) const { return placeOfLevel(value); }
    Colour colourOf(double value) const { return colourMap(colourMapName(), place(value), inverted()); }

private:
    void visitLevels(const VisitLevels& visit) const override { visit(m_values); }

    std::vector<double> m_values;
};

/// The change of the view option that chooses this range; nothing where the scale cannot have it: low is not below
/// high, or has no logarithm.
std::optional<SettingChange> rangeSetTo(const ColourScale& scale, double low, double high);
/// The options with one range of colours, or of the vertical axis, for pictures of a view side by side, from the lowest
/// to the highest end of theirs; unchanged where a range or "each" is chosen, quantities differ, or fewer than two
/// have a range.
ParameterValues withCommonRange(const View& view, const std::vector<const ViewInput*>& inputs, ParameterValues options);
/// Makes the range of a colour column automatic again.
SettingChange automaticRange();
SettingChange ownRanges(); ///< the same, and pictures side by side do not share a range
/// Facts at a point of the column: the value there and the shares beyond the colours; none beside the column.
PointFacts rangeFacts(const ColourScale& scale, const Scene& scene, Point at);

} // namespace kvscope
