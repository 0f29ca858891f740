"""The line between a widget and the page that shows it.

Python -> page: a script, which an Output runs. Page -> Python: JSON in a hidden text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from leak_atlas.report.live import script

# Runs a script once the widget `root` is in the page; `ask` asks Python for what the page lacks.
RUN = """(() => {
    const ask = (root, what) => {
        const text = root.querySelector('.leak-atlas-pointed textarea');
        text.value = JSON.stringify({ask: what, at: Math.random()});
        text.dispatchEvent(new Event('input', {bubbles: true}));
    };
    const run = tries => {
        const root = document.querySelector('.ROOT .leak-atlas-pointed textarea')?.closest('.ROOT');
        if (root) { SCRIPT } else if (tries) setTimeout(run, 50, tries - 1);
    };
    run(400);
})()"""
HIDDEN = {"display": "none"}


class Browser(widgets.VBox):
    """The hidden widgets of an explorer. `figure` is what `player.js` is to show; `moved` is called
    with the places of pointers that were moved in the page.
    """

    def __init__(self, figure: Callable[[], Any], moved: Callable[[dict[str, Any]], None]) -> None:
        self._figure = figure
        self._moved = moved
        self._listening = False
        self.script = widgets.Output(layout={"height": "0", "overflow": "hidden"})
        self.text = widgets.Textarea(layout=HIDDEN).add_class("leak-atlas-pointed")
        self.answer = widgets.HTML(layout=HIDDEN).add_class("leak-atlas-answer")
        self.text.observe(self._hear, names="value")
        super().__init__([self.script, self.text, self.answer])
        self.root = f"leak-atlas-{self.model_id}"  # the class of the explorer's widget
        self._run("ask(root, 'script')")

    def show(self) -> None:
        """Sends the figure to a page that listens."""
        if self._listening:
            self._send()

    def _send(self, before: str = "") -> None:
        """Sends the figure; the script `before` goes before it."""
        call = f"window.leakAtlas.notebook(root, {json.dumps(self._figure())})"
        self._run(f"{before}; if (window.leakAtlas) {call}; else ask(root, 'script')")

    def _run(self, script: str) -> None:
        code = RUN.replace("ROOT", self.root).replace("SCRIPT", script)
        code = code.replace("</script", "<\\/script")
        data = {"text/html": f"<script>{code}</script>"}
        output = {"output_type": "display_data", "data": data, "metadata": {}}
        self.script.outputs = (output,)

    def _hear(self, change: dict[str, Any]) -> None:
        """The page asks for the script, or whether Python lives, or says where the pointers are."""
        message = json.loads(change["new"] or "{}")
        if "alive" in message:
            self.answer.value = message["alive"]
        elif "ask" in message:
            self._listening = True
            self._send(script())
        else:
            self._moved(message)
