"""The page of the leaderboard: choices on top, the table and its chart, one entry in detail, and what was refused."""

from __future__ import annotations

import os
from typing import Any

from leaderboard_view import ALL, CSS, Board, chart, detail, judge_label, refused_list, table

from symbal_hf.bench.settings import open_bench

VARIANTS = ("reference_free", "reference_based")
INTRO = """# SymbalBench leaderboard
Each setting is a captioned dataset into which one false statement *t* was planted so that it goes with one visual
feature *v*. **Acc@1** is the share of settings in which a system names both first. Scores are computed here from the
names that a system gave; an entry whose 95 % interval overlaps that of the entry above shares its rank. Different
judges of names are different tables.
"""


def make_page(board: Board) -> Any:
    """The page over one board."""
    import gradio as gr

    def start() -> list[Any]:
        board.refresh()
        judges = board.judges()
        chosen = judges[0] if judges else None
        choices = [(judge_label(judge), judge) for judge in judges]
        return [gr.Dropdown(choices, value=chosen), refused_list(board.refused), *show(VARIANTS[0], ALL, chosen, None)]

    def show(variant: str, domain: str, judge: str | None, key: str | None) -> list[Any]:
        places, partial = board.places(variant, domain, judge)
        entries = [place.entry for place in places]
        choices = [(f"{place.rank}. {place.entry.name[:60]}", place.entry.key) for place in places]
        chosen = next((entry for entry in entries if entry.key == key), entries[0] if entries else None)
        rows = [(place.entry.name, place.score) for place in places[:40]]
        drawn = chart(rows, "Acc@1 of t and v together, with 95 % intervals")
        now = chosen.key if chosen else None
        return [table(places, partial), drawn, gr.Dropdown(choices, value=now), one(variant, domain, now)]

    def one(variant: str, domain: str, key: str | None) -> str:
        entry = next((entry for entry in board.entries if entry.key == key), None)
        return detail(entry, board.bench, variant, domain) if entry else ""

    with gr.Blocks(title="SymbalBench leaderboard") as page:
        gr.Markdown(INTRO)
        with gr.Row():
            variant = gr.Radio(
                [(name.replace("_", "-"), name) for name in VARIANTS],
                value=VARIANTS[0],
                label="Variant",
                elem_id="variant",
            )
            domain = gr.Dropdown(board.domains(), value=ALL, label="Domain", elem_id="domain")
            judge = gr.Dropdown([], label="Judge", elem_id="judge")
        ranks, drawing = gr.HTML(elem_id="ranks"), gr.HTML(elem_id="drawing")
        entry = gr.Dropdown([], label="One entry", elem_id="entry")
        shown = gr.HTML(elem_id="detail")
        with gr.Accordion("Files that were refused", open=False, elem_id="refused"):
            refused = gr.HTML()
        options: dict[str, Any] = {"show_progress": "hidden", "api_visibility": "private"}
        outputs = [ranks, drawing, entry, shown]
        page.load(start, None, [judge, refused, *outputs], **options)
        for choice in (variant, domain, judge):
            choice.input(show, [variant, domain, judge, entry], outputs, **options)
        entry.input(one, [variant, domain, entry], shown, **options)
    return page


def main() -> None:
    """Serve the board that the environment names."""
    import gradio as gr

    bench = open_bench(os.environ.get("SYMBAL_BENCHMARK"))
    board = Board(os.environ.get("SYMBAL_SUBMISSIONS", "submissions"), bench, os.environ.get("SYMBAL_JUDGE"))
    theme = gr.themes.Default(font=["system-ui", "sans-serif"], font_mono=["ui-monospace", "monospace"])
    make_page(board).launch(css=CSS, theme=theme, ssr_mode=False)


if __name__ == "__main__":
    main()
