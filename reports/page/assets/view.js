// view.js: puts the lanes on the page and listens to pointer, wheel, keys and
// address. What is written into the page is always text, never markup.
(() => {
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;

  // The theme: the system's, until somebody chooses.
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  function theme(next) {
    if (next) root.dataset.theme = next;
    $("theme").textContent = isDark() ? "Light theme" : "Dark theme";
    if (repaint) repaint(true);
  }
  let repaint = null;
  $("theme").addEventListener("click", () => theme(isDark() ? "light" : "dark"));
  dark.addEventListener("change", () => theme());
  $("theme").hidden = false;
  theme();

  const copy = $("copy");
  if (copy && navigator.clipboard) {
    copy.hidden = false;
    copy.addEventListener("click", () => navigator.clipboard.writeText($("repeat").textContent).then(() => { copy.textContent = "Copied"; }));
  }

  const source = $("data");
  if (!source) return;
  const m = Logic.decode(JSON.parse(source.textContent));
  source.textContent = "";
  m.data.events = null; // kept as m.rows
  const box = $("lanes"), canvas = $("canvas"), strip = $("overview"), tip = $("tip"), detail = $("detail");
  const ctx = canvas.getContext("2d"), stripCtx = strip.getContext("2d");
  const state = { view: { from: 0, to: m.end }, op: -1, hover: -1, lane: -1, violation: m.data.violations.length ? 0 : -1, messages: true };
  let lay, colours, width = 0, height = 0, pending = false, focused = false, back = null;

  function resize() {
    back = null;
    width = box.clientWidth;
    lay = Chart.layout(m, width < 600);
    height = Math.min(lay.height, Math.max(240, window.innerHeight - 8));
    box.style.height = lay.height + "px";
    for (const [cv, cx, h] of [[canvas, ctx, height], [strip, stripCtx, 40]]) {
      const dpr = Math.min(window.devicePixelRatio || 1, 3);
      cv.width = Math.round(width * dpr);
      cv.height = Math.round(h * dpr);
      cv.style.height = h + "px";
      cx.setTransform(dpr, 0, 0, dpr, 0, 0);
    }
  }
  function draw() {
    pending = false;
    const offset = canvas.offsetTop;
    new Chart.Painter(ctx, m, lay, state.view, width, height, offset, colours).frame(state);
    back = back || Chart.backdrop(m, width, 40, Math.min(window.devicePixelRatio || 1, 3), colours);
    Chart.overview(stripCtx, back, m, state.view, width, 40, colours);
    const span = state.view.to - state.view.from;
    $("range").textContent = Logic.time(state.view.from) + " to " + Logic.time(state.view.to);
    $("in").disabled = span <= 1000;
    $("out").disabled = $("fit").disabled = span >= m.end;
  }
  function redraw() { if (!pending) { pending = true; requestAnimationFrame(draw); } }
  repaint = (all) => { if (all) { colours = Chart.palette(root); back = null; } redraw(); };

  function show(view) { state.view = view; redraw(); }
  const middle = () => (state.view.from + state.view.to) / 2;
  const span = () => state.view.to - state.view.from;
  const perPixel = () => span() / (width - lay.gutter - 2 * lay.pad);
  const timeAt = (x) => state.view.from + (x - lay.gutter - lay.pad) * perPixel();

  // choose makes an event the chosen one: its fields, its address, its place.
  function choose(i, opts = {}) {
    state.op = i;
    if (i < 0) { detail.replaceChildren(hint()); redraw(); return; }
    if (m.lane[i] >= 0) state.lane = m.lane[i];
    const t = m.T[i];
    if (t < state.view.from || t > state.view.to) show(Logic.clamp({ from: t - span() / 2, to: t + span() / 2 }, m.end));
    if (opts.near) { const w = Math.min(span(), Math.max(m.ttl / 2, 1e6)); show(Logic.clamp({ from: t - w / 2, to: t + w / 2 }, m.end)); }
    describe(i);
    if (opts.address !== false) history.replaceState(null, "", "#op-" + i);
    redraw();
  }
  function hint() {
    const p = document.createElement("p");
    p.textContent = "Nothing is chosen. Click a mark, or focus the diagram and press the arrow keys.";
    return p;
  }
  function describe(i) {
    const head = document.createElement("p"), strong = document.createElement("strong"), link = document.createElement("a");
    strong.textContent = Logic.sentence(m, i);
    link.href = "#op-" + i;
    link.textContent = "#op-" + i;
    head.append(strong, " ", link);
    const list = document.createElement("dl");
    for (const [name, value] of Logic.fields(m, i)) {
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = name;
      dd.textContent = value;
      list.append(dt, dd);
    }
    const line = document.createElement("p");
    line.className = "muted";
    line.textContent = "Line " + (i + 2) + " of history.jsonl.";
    detail.replaceChildren(head, list, line);
  }

  // accuse shows a violation: all its ops in view, linked and highlighted.
  function accuse(k, opts = {}) {
    const v = m.data.violations[k];
    if (!v) return;
    state.violation = k;
    const ts = v.ops.filter((i) => i >= 0 && i < m.n).map((i) => m.T[i]);
    if (ts.length) show(Logic.around(Math.min(...ts), Math.max(...ts), m.ttl, m.end));
    document.querySelectorAll("ol.violations li").forEach((li) => li.classList.toggle("chosen", li.id === "violation-" + (k + 1)));
    if (v.ops.length) choose(v.ops[0], { address: false });
    if (opts.address !== false) history.replaceState(null, "", "#violation-" + (k + 1));
    $("said").textContent = "Violation " + (k + 1) + " of " + m.data.violations.length + ": " + v.text;
  }
  let visited = false;
  function nextViolation(by) {
    const n = m.data.violations.length;
    if (n) accuse(state.violation < 0 || !visited ? (by > 0 ? 0 : n - 1) : (state.violation + by + n) % n);
    visited = true;
  }

  // What lies under a point: an event close by, else a stretch of the lane.
  function under(x, y) {
    const row = lay.rows.find((r) => y >= r.y && y < r.y + r.h);
    if (!row || x < lay.gutter) return { lane: row ? row.lane : -1, op: -1 };
    return { lane: row.lane, op: Logic.nearest(m, row.lane, timeAt(x), 8 * perPixel()) };
  }
  function stretches(lane, t) {
    const l = m.lanes[lane], words = [];
    const inside = (list, say) => {
      for (let k = Logic.firstReaching(list, t); k < list.length && list[k].from <= t; k++) if (list[k].to > t) words.push(say(list[k]) + ", " + Logic.time(list[k].from) + " to " + Logic.time(list[k].to));
    };
    if (l.kind === "client") {
      inside(l.waits, () => "waits for the lock");
      inside(l.holds, (s) => "believes that it holds the lock (acquisition " + s.acq + ")");
      inside(l.lease, (s) => "its lease is guaranteed (acquisition " + s.acq + ")");
      inside(l.over, () => "its lease is over");
      inside(l.both, () => "another client's lease is guaranteed too");
      inside(l.pauses, () => "paused");
    } else if (l.kind === "node") {
      inside(l.owners, (s) => "the key belongs to " + s.owner + (s.pttl < 0 ? " without expiry" : ", " + Logic.time(Math.max(0, s.pttl - (t - s.from))) + " left to live"));
      inside(l.down, (s) => s.words);
    }
    for (const f of m.data.faults) if (f.lanes.includes(lane) && f.from <= t && f.to > t) words.push("fault " + f.fault + ": " + f.what);
    return words;
  }
  function hover(event) {
    const at = event && point(event);
    const hit = at && at.y > canvas.offsetTop + Chart.AXIS ? under(at.x, at.y) : { lane: -1, op: -1 };
    state.hover = hit.op;
    const lines = [];
    if (hit.op >= 0) lines.push(Logic.sentence(m, hit.op));
    if (hit.lane >= 0) { if (at.x >= lay.gutter) lines.push(...stretches(hit.lane, timeAt(at.x))); if (at.x < lay.gutter || lines.length) lines.unshift(m.lanes[hit.lane].name + (m.lanes[hit.lane].key ? " " + m.lanes[hit.lane].key : "")); }
    tip.hidden = lines.length === 0;
    if (lines.length) {
      tip.replaceChildren(...lines.map((s, i) => { const d = document.createElement(i ? "div" : "strong"); d.textContent = s.slice(0, 400); return d; }));
      const r = tip.getBoundingClientRect();
      tip.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - r.width - 8)) + "px";
      tip.style.top = (event.clientY + 18 + r.height > window.innerHeight ? event.clientY - r.height - 10 : event.clientY + 18) + "px";
    }
    redraw();
  }
  const point = (e) => { const r = box.getBoundingClientRect(); return { x: e.clientX - r.left, y: e.clientY - r.top }; };

  // Pointers: one drags, two pinch.
  const fingers = new Map();
  let moved = 0;
  box.addEventListener("pointerdown", (e) => {
    fingers.set(e.pointerId, { x: e.clientX, y: e.clientY });
    moved = 0;
    if (e.pointerType === "mouse") box.setPointerCapture(e.pointerId);
  });
  box.addEventListener("pointermove", (e) => {
    const f = fingers.get(e.pointerId);
    if (!f) { if (e.pointerType === "mouse") hover(e); return; }
    const per = perPixel();
    if (fingers.size === 1) {
      moved += Math.abs(e.clientX - f.x) + Math.abs(e.clientY - f.y);
      show(Logic.pan(state.view, (f.x - e.clientX) * per, m.end));
    } else {
      const [a, b] = [...fingers.values()];
      const before = Math.max(20, Math.abs(a.x - b.x));
      const other = f === a ? b : a;
      const after = Math.max(20, Math.abs(e.clientX - other.x));
      moved += 10;
      show(Logic.zoom(state.view, before / after, timeAt((a.x + b.x) / 2 - box.getBoundingClientRect().left), m.end));
    }
    f.x = e.clientX;
    f.y = e.clientY;
  });
  const up = (e) => {
    if (!fingers.delete(e.pointerId) || e.type !== "pointerup" || moved > 6) return;
    const at = point(e), hit = under(at.x, at.y);
    box.focus({ preventScroll: true });
    if (hit.lane >= 0) state.lane = hit.lane;
    choose(hit.op);
    if (e.pointerType !== "mouse") hover(e);
  };
  box.addEventListener("pointerup", up);
  box.addEventListener("pointercancel", up);
  box.addEventListener("pointerleave", () => { if (fingers.size === 0) hover(null); });
  box.addEventListener("dblclick", (e) => show(Logic.zoom(state.view, 0.4, timeAt(point(e).x), m.end)));
  box.addEventListener("focus", () => { focused = true; });
  box.addEventListener("blur", () => { focused = false; });
  box.addEventListener("wheel", (e) => {
    const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY) || e.shiftKey;
    if (!sideways && !focused && !e.ctrlKey && !e.metaKey) return; // the page scrolls
    e.preventDefault();
    if (sideways) return show(Logic.pan(state.view, (e.deltaX || e.deltaY) * perPixel(), m.end));
    show(Logic.zoom(state.view, Math.exp(Math.max(-60, Math.min(60, e.deltaY)) * 0.006), timeAt(point(e).x), m.end));
  }, { passive: false });

  box.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const move = (by) => {
      if (state.lane < 0) state.lane = 0;
      if (state.op < 0 || m.lane[state.op] !== state.lane) return jump(state.lane);
      choose(Logic.step(m, state.op, state.lane, by));
      say();
    };
    const jump = (lane) => {
      state.lane = Math.min(Math.max(lane, 0), m.lanes.length - 1);
      const near = Logic.nearest(m, state.lane, state.op >= 0 ? m.T[state.op] : middle(), m.end);
      if (near >= 0) { choose(near); say(); }
    };
    const acts = {
      ArrowRight: () => (e.shiftKey ? show(Logic.pan(state.view, span() / 5, m.end)) : move(1)),
      ArrowLeft: () => (e.shiftKey ? show(Logic.pan(state.view, -span() / 5, m.end)) : move(-1)),
      ArrowDown: () => jump(state.lane + 1), ArrowUp: () => jump(Math.max(0, state.lane - 1)),
      "+": () => show(Logic.zoom(state.view, 0.5, focusTime(), m.end)), "=": () => show(Logic.zoom(state.view, 0.5, focusTime(), m.end)),
      "-": () => show(Logic.zoom(state.view, 2, focusTime(), m.end)), 0: () => show({ from: 0, to: m.end }),
      Home: () => show(Logic.pan(state.view, -m.end, m.end)), End: () => show(Logic.pan(state.view, m.end, m.end)),
      n: () => nextViolation(1), p: () => nextViolation(-1),
      Escape: () => { state.violation = -1; choose(-1); history.replaceState(null, "", "#diagram"); },
    };
    if (!acts[e.key]) return;
    e.preventDefault();
    acts[e.key]();
  });
  const focusTime = () => (state.op >= 0 && m.T[state.op] >= state.view.from && m.T[state.op] <= state.view.to ? m.T[state.op] : middle());
  function say() { if (state.op >= 0) $("said").textContent = Logic.sentence(m, state.op); }

  let dragging = false;
  const scrub = (e) => { const r = strip.getBoundingClientRect(); const t = ((e.clientX - r.left) / r.width) * m.end; show(Logic.clamp({ from: t - span() / 2, to: t + span() / 2 }, m.end)); };
  strip.addEventListener("pointerdown", (e) => { dragging = true; strip.setPointerCapture(e.pointerId); scrub(e); });
  strip.addEventListener("pointermove", (e) => { if (dragging) scrub(e); });
  strip.addEventListener("pointerup", () => { dragging = false; });
  strip.addEventListener("pointercancel", () => { dragging = false; });

  const button = (id, f) => { const b = $(id); if (b) b.addEventListener("click", f); };
  button("in", () => show(Logic.zoom(state.view, 0.5, focusTime(), m.end)));
  button("out", () => show(Logic.zoom(state.view, 2, focusTime(), m.end)));
  button("fit", () => show({ from: 0, to: m.end }));
  button("earlier", () => show(Logic.pan(state.view, -span() / 2, m.end)));
  button("later", () => show(Logic.pan(state.view, span() / 2, m.end)));
  button("next", () => nextViolation(1));
  button("previous", () => nextViolation(-1));
  $("messages").addEventListener("change", (e) => { state.messages = e.target.checked; redraw(); });

  // The address. A link to an op shows it close by.
  function follow() {
    const at = Logic.place(location.hash);
    if (!at) return false;
    if (at.what === "op" && at.number < m.n) { choose(at.number, { near: true, address: false }); $("diagram").scrollIntoView(); }
    if (at.what === "violation" && at.number >= 1) accuse(at.number - 1, { address: false });
    return true;
  }
  window.addEventListener("hashchange", follow);
  document.querySelectorAll("a.see").forEach((a) => a.addEventListener("click", (e) => {
    e.preventDefault();
    accuse(Number(a.dataset.violation));
    $("diagram").scrollIntoView();
  }));

  // The list of events: the same story for those who cannot see the picture.
  const per = 100;
  let pages = [0];
  function list() {
    const { found, next } = Logic.search(m, $("query").value, pages[pages.length - 1], per);
    $("rows").replaceChildren(...found.map((i) => {
      const tr = document.createElement("tr");
      const cell = (s) => { const td = document.createElement("td"); td.textContent = s; tr.append(td); return td; };
      const a = document.createElement("a");
      a.href = "#op-" + i;
      a.textContent = String(i);
      cell("").append(a);
      cell(Logic.time(m.T[i]));
      cell(m.lane[i] >= 0 ? m.lanes[m.lane[i]].name : "");
      cell(Logic.sentence(m, i).slice(0, 600));
      return tr;
    }));
    $("count").textContent = found.length ? "Events " + found[0] + " to " + found[found.length - 1] + " of " + m.n : "No event has these words.";
    $("back").disabled = pages.length === 1;
    $("forward").disabled = next >= m.n;
    $("forward").dataset.next = String(next);
  }
  let listed = false;
  $("events").addEventListener("toggle", () => { if (!listed && $("events").open) { listed = true; list(); } });
  let typing = 0;
  $("query").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(() => { pages = [0]; list(); }, 150); });
  button("forward", () => { pages.push(Number($("forward").dataset.next)); list(); });
  button("back", () => { pages.pop(); list(); });

  colours = Chart.palette(root);
  $("live").hidden = false;
  resize();
  new ResizeObserver(() => { if (box.clientWidth !== width) { resize(); redraw(); } }).observe(box);
  window.addEventListener("resize", () => { resize(); redraw(); });
  // The canvas sticks while the page scrolls: what it shows follows.
  window.addEventListener("scroll", () => { if (lay.height > height) redraw(); }, { passive: true });
  detail.replaceChildren(hint());
  if (!follow() && m.data.focus) show(Logic.clamp({ from: m.data.focus[0], to: m.data.focus[1] }, m.end));
  draw();
  performance.mark("drawn");
  document.body.dataset.ready = "yes";
})();
