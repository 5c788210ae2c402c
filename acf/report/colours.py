"""Colours that colour-blind readers can tell apart, the same in figures and page."""

# Okabe and Ito's palette. Two of it are kept for what stands beside every score, the rest is for methods and seeds.
ORACLE, CHANCE = "#009E73", "#D55E00"
CATEGORIES = ("#0072B2", "#E69F00", "#CC79A7", "#56B4E9", "#444444", "#F0E442")

# From nothing to all, in one hue: order survives every kind of colour blindness and a grey printer.
HEAT = ("#FFFFFF", "#CFE3F1", "#67AAD6", "#0072B2", "#003A5D")
MISSING = "#EEEEEE"


def heat(value: float) -> tuple[str, str]:
    """Background and text colour of a value between 0 and 1.

    >>> heat(0.0), heat(1.0)
    (('#ffffff', '#222222'), ('#003a5d', '#ffffff'))
    """
    if value != value:
        return MISSING, "#222222"
    place = min(max(value, 0.0), 1.0) * (len(HEAT) - 1)
    low = min(int(place), len(HEAT) - 2)
    pairs = zip(_rgb(HEAT[low]), _rgb(HEAT[low + 1]), strict=True)
    mixed = [round(a + (place - low) * (b - a)) for a, b in pairs]
    return "#" + "".join(f"{c:02x}" for c in mixed), "#222222" if value < 0.55 else "#ffffff"


def _rgb(colour: str) -> tuple[int, int, int]:
    r, g, b = bytes.fromhex(colour[1:])
    return r, g, b
