// Shows the figure of an explorer, in a notebook, in Voila and on a page without a server. What is linked happens here:
// a click, a list, a slider or "play" moves a pointer (the chosen epoch, stage, sample ...), and all views follow.
// figure = {wide, narrow: Vega-Lite over named data, rows: {name: [row]}, pointers: [{name, signal, values, ...}], at: {name: value}}
window.leakAtlas ??= (() => {
  "use strict";
  const NARROW = 760, TICK = 900, PATIENCE = 8000; // pixels; milliseconds of a step of "play"; until a kernel counts as lost
  const shown = new WeakMap(); // place -> what is shown in it

  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };
  const same = (one, other) => String(one) === String(other);

  // ---------------------------------------------------------------- controls of pointers

  // A list or a slider over the values of a pointer, with "play" where it is wanted.
  function control({ name, label, values, slider, play }, move) {
    const input = slider
      ? element("input", { type: "range", min: 0, max: values.length - 1, step: 1 })
      : element("select", {}, ...values.map(value => element("option", { textContent: value })));
    const place = () => Number(slider ? input.value : input.selectedIndex);
    input.addEventListener("input", () => move(values[place()]));
    const reading = element("output", { className: "leak-atlas-reading" });
    const box = element("label", { className: "leak-atlas-pointer" }, element("span", { textContent: label }), input, ...slider ? [reading] : []);
    box.dataset.pointer = name;
    const show = value => {
      const at = values.findIndex(each => same(each, value));
      if (!slider) input.selectedIndex = at;
      else [input.value, input.ariaValueText, reading.textContent] = [at, value, value];
    };
    if (!play) return { parts: [box], show, end() {} };
    let timer = null;
    const button = element("button", { type: "button", textContent: "▶ play", className: "leak-atlas-play" });
    const end = () => { clearInterval(timer); timer = null; button.textContent = "▶ play"; };
    button.addEventListener("click", () => {
      if (timer) return end();
      const next = () => button.isConnected ? move(values[(place() + 1) % values.length]) : end();
      timer = setInterval(next, TICK);
      button.textContent = "⏸ pause";
      next();
    });
    return { parts: [box, button], show, end };
  }

  // Once the chart has the focus: left and right go through the values of the slider, or of the list that plays, up and down go over what can be clicked, Enter clicks it.
  function keys(chart, slide) {
    let last = null; // what was clicked
    chart.addEventListener("click", event => { last = event.target; });
    const click = mark => {
      const { x, y, width, height } = mark.getBoundingClientRect();
      mark.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: x + width / 2, clientY: y + height / 2 }));
    };
    const go = (marks, step) => {
      const now = marks.includes(document.activeElement) ? document.activeElement : last;
      const next = marks[(marks.indexOf(now) + step + marks.length) % marks.length];
      next?.setAttribute("tabindex", "-1");
      next?.focus();
    };
    chart.addEventListener("keydown", event => {
      const marks = [...chart.querySelectorAll("svg :is([role=button], image[aria-label])")], { key } = event;
      const across = { ArrowRight: 1, ArrowLeft: -1 }[key], along = { ArrowDown: 1, ArrowUp: -1 }[key];
      const chosen = ["Enter", " "].includes(key) && marks.includes(document.activeElement);
      if (!across && !along && !chosen) return;
      event.preventDefault();
      if (across) slide(across);
      else if (along) go(marks, along);
      else click(document.activeElement);
    });
  }

  // The first rows as a table, of those that the pointers let through; made when it is opened.
  function table(one) {
    const [rows] = Object.values(one.figure.rows), at = where(one);
    const filters = one.pointers.filter(({ name, signal }) => signal === name && rows[0] && name in rows[0]);
    const here = rows.filter(row => filters.every(({ name }) => same(row[name], at[name])));
    const columns = Object.keys(rows[0] ?? {}).filter(name => !Array.isArray(rows[0][name]));
    const line = (kind, cells) => element("tr", {}, ...cells.map(cell => element(kind, { textContent: cell })));
    const body = here.map(row => line("td", columns.map(name => row[name])));
    return element("table", { tabIndex: 0 }, element("thead", {}, line("th", columns)), element("tbody", {}, ...body));
  }

  // ---------------------------------------------------------------- a figure

  const where = ({ view, pointers }) => Object.fromEntries(pointers.map(({ name, signal }) => [name, view.signal(signal)]));
  const drawn = (figure, narrow) => narrow ? figure.narrow : figure.wide;
  // Charts are alike whatever their pointers begin with.
  const looks = (figure, narrow) => JSON.stringify([drawn(figure, narrow), figure.pointers], (key, value) => ["value", "start"].includes(key) ? 0 : value);

  function point({ view, pointers }, at) {
    for (const { name, signal, values, hidden } of pointers) {
      const value = hidden ? at[name] : values.find(each => same(each, at[name]));
      if (value != null && !same(view.signal(signal), value)) view.signal(signal, value);
    }
    return view.runAsync();
  }

  async function embed(place, figure, report) {
    const narrow = place.clientWidth < NARROW;
    const controls = element("div", { className: "leak-atlas-pointers" });
    const chart = element("div", { className: "leak-atlas-chart", tabIndex: 0 });
    chart.setAttribute("role", "group");
    chart.setAttribute("aria-label", "figure; left and right move the slider, up and down go over what can be clicked, Enter chooses");
    const numbers = element("details", { className: "leak-atlas-numbers" }, element("summary", { textContent: "numbers as a table" }));
    const { view, finalize } = await leakAtlasVega(chart, { ...drawn(figure, narrow), datasets: figure.rows },
      { renderer: "svg", actions: false, logLevel: 1, bind: element("div") }); // of Vega's own controls, which nobody sees
    const slider = figure.pointers.find(({ slider, play }) => slider || play);
    keys(chart, step => {
      const at = slider?.values.findIndex(value => same(value, view.signal(slider.signal))) + step;
      if (slider && at in slider.values) view.signal(slider.signal, slider.values[at]).runAsync();
    });
    const pointers = figure.pointers.map(pointer => {
      const seen = !pointer.hidden && pointer.values.length > 1;
      const made = seen ? control(pointer, value => view.signal(pointer.signal, value).runAsync()) : { parts: [], show() {}, end() {} };
      controls.append(...made.parts);
      return { ...pointer, ...made };
    });
    const one = { looks: looks(figure, narrow), view, pointers, narrow, figure, report,
      end() { pointers.forEach(each => each.end()); finalize(); } };
    const fill = () => numbers.open && numbers.replaceChildren(numbers.firstChild, table(one));
    numbers.addEventListener("toggle", fill);
    let last = "", waiting = false, known = figure.at;
    const follow = () => {
      if (waiting) return;
      waiting = true;
      queueMicrotask(() => {
        waiting = false;
        const now = where(one);
        // a click on a mark of another chart, whose rows lack this pointer's column, clears the pointer
        const cleared = pointers.filter(({ name }) => now[name] == null && known[name] != null);
        if (cleared.length) {
          cleared.forEach(({ name, signal }) => view.signal(signal, known[name]));
          return view.runAsync();
        }
        known = now;
        pointers.forEach(each => each.show(now[each.name]));
        if (last === (last = JSON.stringify(now))) return;
        fill();
        one.report(now);
      });
    };
    pointers.forEach(each => view.addSignalListener(each.signal, follow));
    await point(one, figure.at);
    shown.get(place)?.end();
    shown.set(place, one);
    place.replaceChildren(controls, chart, numbers);
    follow();
  }

  // Shows a figure in an element. Where the same charts are there already, only their rows change.
  async function show(place, figure, report) {
    const old = shown.get(place);
    if (!figure) { old?.end(); shown.delete(place); place.replaceChildren(); }
    else if (!old || old.looks !== looks(figure, old.narrow)) await embed(place, figure, report);
    else {
      for (const [name, rows] of Object.entries(figure.rows)) old.view.data(name, rows);
      Object.assign(old, { figure, report });
      await point(old, figure.at);
    }
    widths.observe(place);
    place.dataset.ready = "true";
  }

  const widths = new ResizeObserver(entries => {
    for (const { target } of entries) {
      const one = shown.get(target), width = target.clientWidth;
      if (one && width && one.narrow !== width < NARROW) embed(target, { ...one.figure, at: where(one) }, one.report);
    }
  });

  // ---------------------------------------------------------------- in a notebook

  // Python reads a hidden text, and answers in another one.
  function tell(root, what) {
    const text = root.querySelector(".leak-atlas-pointed textarea");
    text.value = JSON.stringify(what);
    text.dispatchEvent(new Event("input", { bubbles: true }));
  }

  function watch(root) {
    if (root.dataset.watched) return;
    root.dataset.watched = "true";
    // JupyterLab has commands for plain keys, arrows among them; Ctrl+S still saves
    window.addEventListener("keydown", ({ ctrlKey, metaKey }) => {
      if (ctrlKey || metaKey) delete root.dataset.lmSuppressShortcuts;
      else root.dataset.lmSuppressShortcuts = "true";
    }, true);
    let timer = null;
    root.addEventListener("change", event => {
      if (event.target.closest(".leak-atlas-figure, .leak-atlas-pointed")) return;
      const lost = root.querySelector(".leak-atlas-lost"), asked = String(Math.random());
      const answer = () => root.querySelector(".leak-atlas-answer .widget-html-content")?.textContent;
      clearTimeout(timer);
      timer = setTimeout(() => { lost.hidden = answer() === asked; }, PATIENCE);
      tell(root, { alive: asked });
    });
  }

  async function notebook(root, figure) {
    watch(root);
    await show(root.querySelector(".leak-atlas-figure"), figure, at => tell(root, at));
  }

  // ---------------------------------------------------------------- on a page

  const unpacked = async text => {
    const bytes = Uint8Array.from(atob(text), each => each.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
  };

  // In place of a static picture: the states that are stored, and where the address says one looks.
  async function page(root) {
    const { pool, states, hint } = await unpacked(root.querySelector("script").textContent.trim());
    const list = element("select", {}, ...states.map(({ label }) => element("option", { textContent: label })));
    const words = element("p", { className: "leak-atlas-says" }), place = element("div", { className: "leak-atlas-figure" });
    words.setAttribute("role", "status");
    const meaning = element("p", { className: "leak-atlas-hint", textContent: hint ?? "" }); // older packets have none
    const choice = element("label", { className: "leak-atlas-pointer" }, element("span", { textContent: "show" }), list);
    const asked = new URLSearchParams(location.hash.slice(1));
    list.selectedIndex = Math.max(0, states.findIndex(({ label }) => label === asked.get("show")));
    const fill = at => {
      const { figure, label, sentences, said } = states[list.selectedIndex];
      const rows = Object.fromEntries(Object.entries(figure.rows).map(([name, own]) => [name, own.map(each => pool[each])]));
      const say = now => {
        const turns = figure.pointers.filter(({ hidden }) => !hidden);
        const index = ({ name, values }) => Math.max(0, values.findIndex(each => same(each, now[name] ?? figure.at[name])));
        const here = turns.reduce((before, each) => before * each.values.length + index(each), 0);
        words.replaceChildren(...said[here].flatMap(each => [sentences[each], element("br")]));
      };
      const report = now => {
        history.replaceState(null, "", `#${new URLSearchParams({ show: label, ...now })}`);
        say(now);
      };
      const kept = figure.pointers.filter(({ name, values, hidden }) => hidden ? at[name] : values.some(each => same(each, at[name])));
      const start = { ...figure.at, ...Object.fromEntries(kept.map(({ name }) => [name, at[name]])) };
      say(start);
      return show(place, { ...figure, rows, at: start }, report);
    };
    list.addEventListener("change", () => fill(where(shown.get(place))));
    root.replaceChildren(...states.length > 1 ? [choice] : [], place, words, meaning); // the figure first
    await fill(Object.fromEntries(asked));
  }

  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(".leak-atlas-page").forEach(page));
  return { notebook, page };
})();
