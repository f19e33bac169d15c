"""The charts of docs/benchmarks.md: a bar for each ratio, on a logarithmic axis, as SVG.

A bar begins at 1, where rival and Millstream are equally fast, and extends to the left where the rival wins. A tick
shows the target.
"""

import math
from xml.sax.saxutils import escape

WIDTH, LABELS, RIGHT, TOP, ROW, BAR = 900, 330, 70, 56, 22, 14
FASTER, BELOW_TARGET, SLOWER, TARGET, INK, GRID = "#2f7d5b", "#c98a1b", "#b3403a", "#1f2937", "#1f2937", "#d5d9df"


def label_of(name: str) -> str:
    """`local-prm/wall-rm` becomes `local-prm, against rm`."""
    case, _, kind = name.rpartition("/")
    rival = kind.removeprefix("wall").lstrip("-")
    return f"{case}, against {rival}" if rival else case


def colour_of(ratio: dict) -> str:
    if ratio["value"] >= ratio["target"]:
        return FASTER
    return BELOW_TARGET if ratio["value"] >= 1 else SLOWER


def grid_values(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten between the ends."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [n * 10.0**decade for decade in decades for n in (1, 2, 5) if low <= n * 10.0**decade <= high]


def chart(title: str, ratios: list[dict]) -> str:
    """The picture of these ratios (name, value, target, at_least) as the text of an SVG file."""
    ratios = [ratio for ratio in ratios if ratio["value"] > 0]
    values = [value for ratio in ratios for value in (ratio["value"], ratio["target"])]
    low, high = min(0.5, *values) / 1.1, max(2.0, *values) * 1.1
    plot = WIDTH - LABELS - RIGHT
    bottom = TOP + ROW * len(ratios)

    def x(value: float) -> float:
        return LABELS + plot * math.log(value / low) / math.log(high / low)

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 30}" font-family="sans-serif" font-size="12" fill="{INK}">',
        f'<rect width="{WIDTH}" height="{bottom + 30}" fill="#ffffff"/>',
        f'<text x="12" y="22" font-size="15" font-weight="bold">{escape(title)}</text>',
        '<text x="12" y="40">how many times as long the rival takes; the tick is the target</text>',
    ]
    for value in grid_values(low, high):
        colour, width = (INK, 1.5) if value == 1 else (GRID, 1)
        lines.append(
            f'<line x1="{x(value):.1f}" y1="{TOP - 6}" x2="{x(value):.1f}" y2="{bottom}" stroke="{colour}" stroke-width="{width}"/>'
        )
        lines.append(f'<text x="{x(value):.1f}" y="{bottom + 18}" text-anchor="middle">{value:g}x</text>')
    for row, ratio in enumerate(ratios):
        y = TOP + ROW * row
        start, end = sorted((x(1), x(ratio["value"])))
        target = x(ratio["target"])
        said = f"{'over ' if ratio.get('at_least') else ''}{ratio['value']:.3g}x"
        lines += [
            f'<text x="{LABELS - 8}" y="{y + 12}" text-anchor="end">{escape(label_of(ratio["name"]))}</text>',
            f'<rect x="{start:.1f}" y="{y}" width="{max(1, end - start):.1f}" height="{BAR}" fill="{colour_of(ratio)}"/>',
            f'<line x1="{target:.1f}" y1="{y - 2}" x2="{target:.1f}" y2="{y + BAR + 2}" stroke="{TARGET}" stroke-width="2"/>',
            f'<text x="{max(end, target) + 6:.1f}" y="{y + 12}">{said}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
