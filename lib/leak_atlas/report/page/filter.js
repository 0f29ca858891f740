// Shows the reports and claims of the index that have what its form asks for. Without scripts all are shown.
(() => {
  const form = document.querySelector("form.filter"), said = form.querySelector("output");
  const answers = document.querySelector(".answers");
  const reports = [...document.querySelectorAll("article .report")].map(root => ({
    root, article: root.closest("article"),
    about: [root.closest("article").querySelector(".about"), root.querySelector("summary")]
      .map(each => each ? each.textContent : "").join(" ").toLowerCase(),
    claims: [...root.querySelectorAll("tbody tr")].map(row => ({
      row, text: row.textContent.toLowerCase(), verdict: row.querySelector(".verdict").dataset.verdict,
    })),
  }));
  const show = () => {
    const asked = Object.fromEntries(new FormData(form)), words = asked.words.toLowerCase().split(/\s+/).filter(Boolean);
    const has = text => words.every(word => text.includes(word));
    const narrow = words.length > 0 || Boolean(asked.verdict);
    let pages = 0, claims = 0;
    if (answers) answers.hidden = narrow || Boolean(asked.group || asked.profile);
    for (const { root, article, about, claims: own } of reports) {
      const right = (!asked.group || article.dataset.group === asked.group)
        && (!asked.profile || root.dataset.profile === asked.profile);
      const named = has(about);
      let left = 0;
      for (const { row, text, verdict } of own) {
        const shown = right && (!asked.verdict || verdict === asked.verdict) && (named || has(about + " " + text));
        row.hidden = !shown;
        left += shown;
      }
      root.hidden = !(left || (right && named && !asked.verdict));
      pages += !root.hidden;
      claims += left;
      const folded = root.querySelector("details");
      if (folded) folded.open = narrow && left > 0;
    }
    for (const article of document.querySelectorAll("article[data-group]"))
      article.hidden = !article.querySelector(".report:not([hidden])");
    for (const section of document.querySelectorAll("section.group"))
      section.hidden = !section.querySelector("article:not([hidden])");
    said.textContent = pages ? `${pages} report${pages === 1 ? "" : "s"}, ${claims} claim${claims === 1 ? "" : "s"}`
      : "Nothing has that. Take a word away, or ask for all verdicts.";
  };
  form.hidden = false;
  form.addEventListener("input", show);
  form.addEventListener("reset", () => setTimeout(show));
  form.addEventListener("submit", event => event.preventDefault());
  show();
})();
