// In each frame, some as printed: text over text, text and marks beyond their page or drawing, text that
// is hard to read, lines without their figure, labels cut to the same text, keys that nothing
// has, what scrolls out of reach, and what paper lacks or has twice.
(() => {
  const found = [];
  const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 })
    .getContext("2d", { willReadFrequently: true });
  const known = new Map();
  const rgb = c => { // of any colour that CSS knows
    if (!known.has(c)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = c;
      pen.fillRect(0, 0, 1, 1);
      known.set(c, [...pen.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(c);
  };
  const clear = c => rgb(c)[3] === 0;
  const light = c => {
    const [r, g, b] = rgb(c).map(x => (x /= 255) <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [x, y] = [light(a), light(b)];
    return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
  };
  const inside = (a, b, slack) =>
    a.left >= b.left - slack && a.right <= b.right + slack;
  const overlap = (a, b) => Math.min(
    Math.min(a.right, b.right) - Math.max(a.left, b.left),
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));

  function texts(doc) {
    const out = [], view = doc.defaultView;
    const walker = doc.createTreeWalker(doc.body, NodeFilter.SHOW_TEXT);
    for (let n; (n = walker.nextNode());) {
      const e = n.parentElement;
      if (!n.data.trim() || e.closest("script, style, noscript, .skip, title, desc")) continue;
      if (!e.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
      const range = doc.createRange();
      range.selectNodeContents(n);
      for (const r of range.getClientRects()) {
        if (r.width < 1 || r.height < 1) continue;
        out.push({ text: n.data.trim().slice(0, 60), e, svg: e.closest("svg"), r, style: view.getComputedStyle(e) });
      }
    }
    return out;
  }

  const marks = new Map(); // of each drawing, in the order in which they are painted
  const marksOf = svg => {
    if (!marks.has(svg)) {
      const view = svg.ownerDocument.defaultView;
      marks.set(svg, [...svg.querySelectorAll("rect")].map(m =>
        ({ m, b: m.getBoundingClientRect(), s: view.getComputedStyle(m) })).filter(x =>
        x.s.fill !== "none" && Number(x.s.fillOpacity) === 1).map(x => ({ ...x, fill: x.s.fill })));
    }
    return marks.get(svg);
  };

  // What is painted beneath the middle of a text in a drawing: the last mark before it, else the page.
  function beneath(t, doc) {
    const view = doc.defaultView;
    let fill = null;
    if (t.svg) {
      const [x, y] = [(t.r.left + t.r.right) / 2, (t.r.top + t.r.bottom) / 2];
      for (const { m, b, fill: f } of marksOf(t.svg)) {
        if (b.left <= x && x <= b.right && b.top <= y && y <= b.bottom &&
            m.compareDocumentPosition(t.e) & Node.DOCUMENT_POSITION_FOLLOWING) fill = f;
      }
    }
    for (let e = t.e; e && !fill; e = e.parentElement) {
      const c = view.getComputedStyle(e).backgroundColor;
      if (!clear(c)) fill = c;
    }
    return fill || "rgb(255, 255, 255)";
  }

  const of = t => " (" + (t.e.closest("figure, section")?.querySelector("h2, h3")?.textContent.trim() ?? "") + ")";

  // A frame cannot be printed: its rules for paper are applied to it, without those for screens.
  function print(frame) {
    for (const sheet of frame.contentDocument.styleSheets) {
      for (const rule of sheet.cssRules) {
        if (!(rule instanceof frame.contentWindow.CSSMediaRule)) continue;
        if (rule.media.mediaText.includes("print")) rule.media.mediaText = "all";
        else if (rule.media.mediaText.includes("screen")) rule.media.mediaText = "not all";
      }
    }
    frame.contentWindow.dispatchEvent(new Event("beforeprint"));
  }

  // spread reports whether a drawing's dots have more than one place on its x axis.
  const spread = svg => new Set([...svg.querySelectorAll('[aria-label="dot"] > *')]
    .map(m => Math.round(m.getBoundingClientRect().left))).size > 1;

  // Marks of a drawing beyond it or below texts, an axis with a single figure, and labels that differ only in what is cut off.
  function marked(svg, labels, say) {
    const box = svg.getBoundingClientRect(), where = of({ e: svg });
    for (const m of svg.querySelectorAll("path, rect, circle, line")) {
      const b = m.getBoundingClientRect();
      if (!m.closest("defs, clipPath") && (b.width > 0 || b.height > 0) &&
          !(inside(b, box, 2) && b.top >= box.top - 2 && b.bottom <= box.bottom + 2)) {
        say("a mark cut by its drawing: " + (m.getAttribute("aria-label") ?? m.tagName) + where);
      }
    }
    for (const m of svg.querySelectorAll('[aria-label="dot"] > *')) { // of any symbol
      const b = m.getBoundingClientRect();
      const over = labels.find(t => b.width > 0 && overlap(t.r, b) > 2);
      if (over) say("text over a dot: " + over.text + where);
    }
    for (const axis of svg.querySelectorAll('[aria-label$="axis tick label"]')) {
      if (axis.children.length === 1 && spread(svg)) say("one figure is no scale: " + axis.textContent + where);
    }
    const cut = labels.filter(t => t.text.includes("…")).map(t => t.text);
    for (const text of new Set(cut.filter((t, i) => cut.indexOf(t) < i))) say("labels cut to one: " + text + where);
  }

  // keyed reports whether a drawing beside the legend has a mark in the colour of its key.
  function keyed(key) {
    const view = key.ownerDocument.defaultView;
    const inks = e => ["fill", "stroke", "backgroundColor"].map(p => view.getComputedStyle(e)[p])
      .filter(c => c && c !== "none" && !clear(c)).map(c => String(rgb(c)));
    const colour = inks(key.querySelector(".swatch") ?? key.querySelector("svg path"));
    const list = key.closest(".legend");
    return [...list.parentElement.querySelectorAll(":scope > svg *")]
      .some(m => inks(m).some(c => colour.includes(c)));
  }

  // Names are broken between words or at hyphens, and flags stay whole.
  function broken(doc, say) {
    for (const e of doc.querySelectorAll("tbody th, .flag")) {
      const word = e.matches(".flag") || /^\w+$/.test(e.textContent), range = doc.createRange();
      range.selectNodeContents(e);
      const tops = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
      if (word && tops.size > 1 && e.textContent.length < 12) say("a broken word: " + e.textContent + of({ e }));
    }
  }

  // What scrolls shows that, and needs a key, its rows keep their names, and rows of words need not
  // scroll on a phone.
  function scrolled(doc, say) {
    for (const e of doc.querySelectorAll("body *")) {
      if (e.scrollWidth <= e.clientWidth + 1 || !e.clientWidth) continue;
      if (!["auto", "scroll"].includes(doc.defaultView.getComputedStyle(e).overflowX)) continue;
      if (e.tabIndex < 0) say("no key scrolls: " + e.className + of({ e }));
      if (!doc.defaultView.getComputedStyle(e).backgroundAttachment.includes("local")) {
        say("nothing shows that it scrolls: " + e.className + of({ e }));
      }
      if (doc.documentElement.clientWidth > 576) continue;
      if (e.matches(".words") || !e.querySelector("data, .right, pre")) say("words scroll out: " + e.textContent.trim().slice(0, 40) + of({ e }));
      e.scrollLeft = e.scrollWidth;
      for (const name of e.querySelectorAll("tbody th[scope=row]")) {
        if (name.getBoundingClientRect().left < e.getBoundingClientRect().left - 1) {
          say("a row's name scrolls out: " + name.textContent + of({ e }));
        }
      }
      e.scrollLeft = 0;
    }
  }

  // Paper has folded lists, and no table of what a chart beside it shows.
  function printed(doc, say) {
    for (const e of doc.querySelectorAll("details.list > *")) {
      if (!e.checkVisibility()) say("not on paper: " + e.textContent.trim().slice(0, 40) + of({ e }));
    }
    for (const e of doc.querySelectorAll("figure .drawing ~ details table")) {
      if (e.checkVisibility()) say("twice on paper: " + e.textContent.trim().slice(0, 40) + of({ e }));
    }
  }

  function check(frame) {
    const doc = frame.contentDocument, width = doc.documentElement.clientWidth;
    const say = what => found.push(frame.name + ": " + what);
    const all = texts(doc);
    if (all.length === 0) say("no text");
    if (doc.documentElement.scrollWidth > width) {
      say("the page is " + doc.documentElement.scrollWidth + " px wide");
    }
    const drawn = all.filter(t => t.svg);
    for (const t of all) {
      const scrolls = t.e.closest(".wide, pre") && !frame.dataset.print; // paper does not
      if (t.svg && !inside(t.r, t.svg.getBoundingClientRect(), 1)) say("cut by its drawing: " + t.text + of(t));
      if (!scrolls && (t.r.left < -1 || t.r.right > width + 1)) say("beyond the page: " + t.text + of(t));
      const large = parseFloat(t.style.fontSize) >= 24 ||
        parseFloat(t.style.fontSize) >= 18.6 && t.style.fontWeight >= 600;
      const ink = t.svg ? t.style.fill : t.style.color;
      const c = contrast(ink, beneath(t, doc));
      if (c < (large ? 3 : 4.5)) say("contrast " + c.toFixed(1) + ": " + t.text + of(t));
    }
    const sorted = all.map((t, i) => ({ ...t, i })).sort((a, b) => a.r.top - b.r.top);
    for (let i = 0; i < sorted.length; i++) {
      for (let k = i + 1; k < sorted.length && sorted[k].r.top < sorted[i].r.bottom; k++) {
        const a = sorted[i], b = sorted[k];
        if (a.e.closest(".wide, pre") !== b.e.closest(".wide, pre")) continue;
        if (overlap(a.r, b.r) > 2) say("text over text: " + a.text + " | " + b.text + of(a));
      }
    }
    for (const l of doc.querySelectorAll("svg line[aria-label]")) { // the baseline's
      const label = l.getAttribute("aria-label"), svg = l.closest("svg");
      if (!drawn.some(t => t.svg === svg && t.text === label)) say("no label for the line: " + label + of({ e: svg }));
    }
    broken(doc, say);
    if (frame.dataset.print) printed(doc, say);
    else scrolled(doc, say);
    for (const svg of doc.querySelectorAll("svg")) marked(svg, drawn.filter(t => t.svg === svg), say);
    for (const key of doc.querySelectorAll(".legend li")) {
      if (!keyed(key)) say("nothing has the key: " + key.textContent + of({ e: key }));
    }
    for (const t of drawn) { // a line through a text, which no halo keeps apart
      if (t.style.paintOrder.startsWith("stroke") && t.style.stroke !== "none") continue;
      for (const l of t.svg.querySelectorAll('[aria-label="rule"] line')) {
        const b = l.getBoundingClientRect();
        const x = (b.left + b.right) / 2;
        if (b.height > 20 && x > t.r.left + 2 && x < t.r.right - 2 &&
            Math.min(b.bottom, t.r.bottom) - Math.max(b.top, t.r.top) > 4) say("a line through: " + t.text + of(t));
      }
    }
  }

  addEventListener("load", () => {
    const frames = [...document.querySelectorAll("iframe")];
    for (const f of frames) {
      if (f.dataset.print) print(f);
      check(f);
    }
    const out = document.createElement("pre");
    out.id = "found";
    out.textContent = JSON.stringify({ frames: frames.length, found,
      dark: matchMedia("(prefers-color-scheme: dark)").matches });
    document.body.append(out);
  });
})();
