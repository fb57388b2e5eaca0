"""Colours of services and of what is drawn, the same in the terminal, on pages and in pictures."""

# Light enough for black text on each (contrast of at least 7 to 1), told apart by the common forms
# of colour blindness as far as twelve colours can be; after twelve services they repeat.
COLOURS = (
    "#77aadd", "#ee8866", "#44bb99", "#ffaabb", "#bbcc33", "#c9a6e8",
    "#eedd88", "#99ddff", "#d0a27a", "#e88bc0", "#9fd07f", "#b8c0cc",
)  # fmt: skip
#: Colours of drawings by what they mean; a page calls each of them by its name.
TONES = {
    "ink": "#1b1f24", "soft": "#57606b", "line": "#c3cad4", "good": "#1a7f37", "fair": "#8a5a00",
    "bad": "#b42318", "best": "#0b62c4", "bound": "#a04100", "paper": "#fffffe",
}  # fmt: skip
