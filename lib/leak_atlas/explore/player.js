// Shows the figure of an explorer, in a notebook, in Voila and on a page without a server. What is linked happens here:
// a click, a list, a slider or "play" moves a pointer (the chosen epoch, stage, sample ...), and all views follow.
// figure = {wide, narrow: Vega-Lite with named data, rows: {name: [row]}, pointers: [{name, signal, values, ...}], at: {name: value}}
window.leakAtlas ??= (() => {
  "use strict";
  const NARROW = 760, TICK = 900; // pixels; milliseconds of "play" on each value
  const shown = new WeakMap(); // place -> what is shown in it

  const element = (tag, properties = {}, ...children) => {
    const made = Object.assign(document.createElement(tag), properties);
    made.append(...children);
    return made;
  };

  // A list or a slider over the values of a pointer, with "play" where it is wanted.
  function control(pointer, move) {
    const { label, values, slider, play } = pointer;
    const box = element("label", { className: "leak-atlas-pointer" }, element("span", { textContent: label }));
    box.dataset.pointer = pointer.name;
    const input = slider
      ? element("input", { type: "range", min: 0, max: values.length - 1, step: 1 })
      : element("select", {}, ...values.map(value => element("option", { textContent: value })));
    const told = element("output");
    const place = () => Number(slider ? input.value : input.selectedIndex);
    input.addEventListener("input", () => move(values[place()]));
    box.append(input);
    if (slider) box.append(told);
    const show = value => {
      const at = values.findIndex(each => String(each) === String(value));
      if (slider) input.value = at; else input.selectedIndex = at;
      if (slider) input.ariaValueText = told.textContent = value;
    };
    if (!play) return { parts: [box], show, end() {} };
    let timer = null;
    const button = element("button", { type: "button", textContent: "▶ play", className: "leak-atlas-play" });
    const stop = () => { clearInterval(timer); timer = null; button.textContent = "▶ play"; };
    button.addEventListener("click", () => {
      if (timer) return stop();
      button.textContent = "⏸ pause";
      const next = () => button.isConnected ? move(values[(place() + 1) % values.length]) : stop();
      timer = setInterval(next, TICK);
      next();
    });
    return { parts: [box, button], show, end: stop };
  }

  // Everything that can be clicked can be reached by Tab and the arrows, and Enter clicks it.
  function keys(root) {
    const marks = () => [...root.querySelectorAll("svg [role='graphics-symbol'][cursor='pointer'], svg image[cursor='pointer']")];
    const ready = () => marks().forEach(mark => { mark.setAttribute("tabindex", "-1"); });
    root.addEventListener("keydown", event => {
      const all = marks(), at = all.indexOf(event.target);
      if (at < 0) return;
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (step) all[(at + step + all.length) % all.length].focus();
      else if (event.key === "Enter" || event.key === " ") {
        const { x, y, width, height } = event.target.getBoundingClientRect();
        const where = { bubbles: true, clientX: x + width / 2, clientY: y + height / 2 };
        event.target.dispatchEvent(new MouseEvent("click", where));
      } else return;
      event.preventDefault();
    });
    return ready;
  }

  async function embed(place, figure, report) {
    shown.get(place)?.end();
    const narrow = place.clientWidth < NARROW, spec = narrow ? figure.narrow : figure.wide;
    const controls = element("div", { className: "leak-atlas-pointers" }), chart = element("div", { className: "leak-atlas-chart" });
    place.replaceChildren(controls, chart);
    const unused = element("div"); // the controls of Vega, which has one for each pointer, are ours
    const { view, finalize } = await leakAtlasVega(chart, { ...spec, datasets: figure.rows },
      { renderer: "svg", actions: false, bind: unused, ast: false, tooltip: { theme: "leak-atlas" } });
    const pointers = figure.pointers.map(pointer => {
      const move = value => view.signal(pointer.signal, value).runAsync();
      const made = pointer.values.length > 1 && !pointer.hidden ? control(pointer, move) : { parts: [], show() {}, end() {} };
      controls.append(...made.parts);
      return { ...pointer, ...made, move };
    });
    const at = () => Object.fromEntries(pointers.map(each => [each.name, view.signal(each.signal)]));
    let told = "", waiting = false;
    const follow = () => {
      if (waiting) return;
      waiting = true;
      queueMicrotask(() => {
        waiting = false;
        const now = at();
        pointers.forEach(each => each.show(now[each.name]));
        if (told !== (told = JSON.stringify(now))) report(now);
      });
    };
    pointers.forEach(each => view.addSignalListener(each.signal, follow));
    const one = { charts: JSON.stringify([spec, figure.pointers]), view, pointers, narrow, figure, report,
      end() { pointers.forEach(each => each.end()); finalize(); } };
    shown.set(place, one);
    await point(one, figure.at);
    follow();
    return one;
  }

  function point({ view, pointers }, at) {
    for (const { name, signal, values, hidden } of pointers)
      if (at[name] != null && (hidden || values.some(each => String(each) === String(at[name])))) view.signal(signal, at[name]);
    return view.runAsync();
  }

  // Shows a figure in an element. Where the same charts are there already, only their rows change.
  async function show(place, figure, report = () => {}) {
    const old = shown.get(place);
    const same = old && old.charts === JSON.stringify([old.narrow ? figure.narrow : figure.wide, figure.pointers]);
    if (!same) return embed(place, figure, report);
    for (const [name, rows] of Object.entries(figure.rows))
      if (JSON.stringify(old.figure.rows[name]) !== JSON.stringify(rows)) old.view.data(name, rows);
    Object.assign(old, { figure, report });
    return point(old, figure.at);
  }

  new ResizeObserver(() => {}); // fails early where a browser is too old
  const observer = new ResizeObserver(entries => {
    for (const { target } of entries) {
      const one = shown.get(target);
      if (one && target.clientWidth && one.narrow !== target.clientWidth < NARROW) {
        const at = Object.fromEntries(one.pointers.map(each => [each.name, one.view.signal(each.signal)]));
        embed(target, { ...one.figure, at }, one.report);
      }
    }
  });

  return {
    async show(place, figure, report) {
      const one = await show(place, figure, report);
      observer.observe(place);
      place.dataset.ready = "true";
      return one;
    },
    // In a notebook there is a hidden text in which Python reads where the pointers are.
    notebook(root, figure) {
      root.dataset.lmSuppressShortcuts = "true"; // else arrow keys fold headings of JupyterLab
      const text = root.querySelector(".leak-atlas-pointed textarea");
      const report = at => { text.value = JSON.stringify(at); text.dispatchEvent(new Event("input", { bubbles: true })); };
      return this.show(root.querySelector(".leak-atlas-figure"), figure, report);
    },
  };
})();
