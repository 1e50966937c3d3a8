// chart.js: draws the lanes on a canvas. Only what is in view is drawn, and
// within a lane no more than one shape for each pixel, so that a run of a
// hundred thousand ops costs about as much as a short one.
const Chart = (() => {
  const AXIS = 26, CLIENT = 50, NODE = 46, STORAGE = 40, FAULT = 22;
  const PAD = 10; // beside the first and the last instant, so that their marks are whole

  // layout gives every lane and every row of faults its place.
  function layout(m, narrow) {
    const rows = [];
    let y = AXIS + 4;
    const faults = Logic.packed(m.data.faults, 8);
    const faultTop = y;
    y += faults.count * FAULT + (faults.count ? 6 : 0);
    const label = narrow ? 15 : 0;
    m.lanes.forEach((l, i) => {
      const h = (l.kind === "client" ? CLIENT : l.kind === "node" ? NODE : STORAGE) + label;
      rows.push({ lane: i, y, h, top: y + label });
      y += h;
    });
    return { rows, height: y + 8, faultTop, faultRow: faults.row, gutter: narrow ? 0 : 118, pad: PAD, narrow };
  }

  function palette(root) {
    const style = getComputedStyle(root);
    const c = {};
    for (const name of ["bg", "fg", "muted", "line", "edge", "panel", "link", "bad", "bad-bg", "warn", "hold", "hold-ink", "lease", "over", "over-ink", "both", "both-ink", "wait", "pause", "fault", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"])
      c[name] = style.getPropertyValue("--" + name).trim();
    return c;
  }

  // Painter draws one frame.
  class Painter {
    constructor(ctx, m, lay, view, width, height, offset, colours) {
      Object.assign(this, { ctx, m, lay, view, width, height, offset, c: colours });
      this.left = lay.gutter;
      this.scale = (width - this.left - 2 * PAD) / (view.to - view.from);
      ctx.font = "12px system-ui, sans-serif";
      ctx.textBaseline = "middle";
    }
    x(t) { return this.left + PAD + (t - this.view.from) * this.scale; }
    clipX(t) { return Math.min(Math.max(this.x(t), this.left - 2), this.width + 2); }
    text(s, x, y, width, colour) {
      if (width < 14) return;
      const w = Logic.clip(s, width, (v) => this.ctx.measureText(v).width);
      if (w === "") return;
      this.ctx.fillStyle = colour;
      this.ctx.fillText(w, x, y);
    }
    seen(row) { return row.y + row.h > this.offset + AXIS && row.y < this.offset + this.height; }

    // spans draws a sorted list of stretches; those that fall into a pixel that
    // is drawn already are left out.
    spans(list, draw) {
      const { from, to } = this.view;
      let drawn = -1;
      for (let k = Logic.firstReaching(list, from); k < list.length && list[k].from <= to; k++) {
        const s = list[k];
        if (s.to < from) continue;
        const a = this.clipX(s.from), b = Math.max(this.clipX(s.to), a + 1);
        if (b <= drawn) continue;
        draw(s, Math.max(a, a < drawn && b - drawn < 1 ? drawn : a), b - a);
        if (b - a < 2) drawn = Math.ceil(b);
      }
    }

    frame(state) {
      const { ctx, c } = this;
      ctx.fillStyle = c.bg;
      ctx.fillRect(0, 0, this.width, this.height);
      ctx.save();
      ctx.translate(0, -this.offset);
      ctx.save();
      ctx.beginPath();
      ctx.rect(this.left, this.offset + AXIS, this.width - this.left, this.height);
      ctx.clip();
      this.grid();
      this.bands();
      for (const row of this.lay.rows) if (this.seen(row)) this.lane(row);
      this.messages(state);
      this.contradictions(state);
      this.cursor(state);
      ctx.restore();
      this.labels();
      ctx.restore();
      this.axis();
    }

    grid() {
      const { ctx, c } = this;
      ctx.fillStyle = c.line;
      for (const t of this.ticks()) ctx.fillRect(Math.round(this.x(t.t)), this.offset, 1, this.height);
      for (const row of this.lay.rows) ctx.fillRect(this.left, row.y + row.h - 1, this.width, 1);
    }
    ticks() { return Logic.ticks(this.view.from, this.view.to, Math.max(2, Math.floor((this.width - this.left) / 95))); }

    axis() {
      const { ctx, c } = this;
      ctx.fillStyle = c.panel;
      ctx.fillRect(0, 0, this.width, AXIS);
      ctx.fillStyle = c.edge;
      ctx.fillRect(0, AXIS - 1, this.width, 1);
      for (const t of this.ticks()) {
        const x = this.x(t.t), w = ctx.measureText(t.label).width;
        ctx.fillStyle = c.edge;
        ctx.fillRect(Math.round(x), AXIS - 6, 1, 6);
        ctx.fillStyle = c.fg;
        ctx.fillText(t.label, Math.min(Math.max(x - w / 2, 2), this.width - w - 2), AXIS / 2 - 1);
      }
    }

    // bands draws each fault as a bar with its words, and as a tint over the
    // lanes that it hits.
    bands() {
      const { ctx, c, m, lay } = this;
      m.data.faults.forEach((f, k) => {
        if (f.to < this.view.from || f.from > this.view.to) return;
        const a = this.clipX(f.from), w = Math.max(this.clipX(f.to) - a, 2);
        const y = lay.faultTop + lay.faultRow[k] * FAULT;
        ctx.globalAlpha = 0.28;
        ctx.fillStyle = c.fault;
        ctx.fillRect(a, y, w, FAULT - 3);
        ctx.globalAlpha = 0.13;
        for (const lane of f.lanes) { const r = lay.rows[lane]; ctx.fillRect(a, r.y, w, r.h - 1); }
        ctx.globalAlpha = 1;
        ctx.fillRect(a, y, 3, FAULT - 3);
        const room = Math.max(w, w < 140 ? Math.min(260, this.width - a) : w);
        this.text(f.fault + ": " + f.what, a + 7, y + FAULT / 2 - 1, room - 10, c.fg);
        for (const lane of f.lanes) {
          const r = lay.rows[lane];
          ctx.fillRect(a, r.y, 1, r.h - 1);
          if (f.stopped) ctx.fillRect(a + w - 1, r.y, 1, r.h - 1);
        }
      });
    }

    lane(row) {
      const l = this.m.lanes[row.lane];
      if (l.kind === "client") this.client(l, row);
      else if (l.kind === "node") this.node(l, row);
      this.marks(l, row);
    }

    client(l, row) {
      const { ctx, c } = this;
      const y = row.top + 10, h = 22;
      ctx.fillStyle = c.wait;
      this.spans(l.waits, (s, x, w) => ctx.fillRect(x, y + h / 2 - 1, w, 3));
      this.spans(l.holds, (s, x, w) => {
        ctx.fillStyle = c.hold;
        ctx.fillRect(x, y, w, h);
        if (w > 5) { ctx.fillStyle = c.lease; ctx.fillRect(x, y, 2, h); this.text("holds", x + 18, y + h / 2, w - 22, c["hold-ink"]); }
      });
      this.spans(l.over, (s, x, w) => {
        ctx.fillStyle = c.over;
        ctx.fillRect(x, y, w, h);
        this.hatch(x, y, w, h, c.bad, 9, 1);
        this.text("believes, lease is over", x + 8, y + h / 2, w - 10, c["over-ink"]);
      });
      this.spans(l.both, (s, x, w) => {
        ctx.fillStyle = c.both;
        ctx.fillRect(x, y, w, h);
        this.text("two leases guaranteed at once", x + 18, y + h / 2, w - 22, c["both-ink"]);
      });
      this.spans(l.pauses, (s, x, w) => {
        this.hatch(x, y - 4, w, 8, c.pause, 6, 2);
        this.hatch(x, y + h - 4, w, 8, c.pause, 6, 2);
        if (w > 80) {
          const tw = ctx.measureText("paused").width + 8;
          ctx.fillStyle = c.bg;
          ctx.fillRect(Math.max(x, this.left) + 18, y + 4, tw, h - 8);
          this.text("paused", Math.max(x, this.left) + 22, y + h / 2, tw, c.fg);
        }
      });
      ctx.fillStyle = c.lease;
      this.spans(l.lease, (s, x, w) => {
        ctx.fillRect(x, y + h + 4, w, 4);
        if (w > 4) { ctx.fillRect(x, y + h + 2, 1, 8); ctx.fillRect(x + w - 1, y + h + 2, 1, 8); }
      });
    }

    // node draws who owns the key, and as a wedge how long it has to live.
    node(l, row) {
      const { ctx, c, m } = this;
      const y = row.top + 6, h = 24;
      this.spans(l.owners, (s, x, w) => {
        ctx.fillStyle = c["c" + ((s.client === undefined ? 7 : s.client) % 8)];
        ctx.fillRect(x, y, w, h);
        if (w < 6) return;
        const share = (t) => (s.pttl < 0 ? 1 : Math.min(1, Math.max(0, (s.pttl - (t - s.from)) / (m.ttl || 1))));
        const a = Math.max(s.from, this.view.from), b = Math.min(s.to, this.view.to);
        ctx.strokeStyle = c.edge;
        ctx.beginPath();
        ctx.moveTo(this.x(a), y + h - share(a) * (h - 2) - 1);
        ctx.lineTo(this.x(b), y + h - share(b) * (h - 2) - 1);
        ctx.stroke();
      });
      this.ownerNames(l, y, h);
      ctx.fillStyle = c.edge;
      this.spans(l.down, (s, x, w) => {
        this.hatch(x, y, w, h, c.edge, 5, 1.5);
        const tw = ctx.measureText(s.words).width + 8;
        if (w > tw) { ctx.fillStyle = c.bg; ctx.fillRect(x + 4, y + 4, tw, h - 8); this.text(s.words, x + 8, y + h / 2, tw, c.fg); }
      });
      l.clocks.forEach((k, i) => {
        const to = i + 1 < l.clocks.length ? l.clocks[i + 1].t : m.end;
        if (to < this.view.from || k.t > this.view.to) return;
        const a = this.clipX(k.t), b = this.clipX(to);
        ctx.fillStyle = c.warn;
        ctx.fillRect(a, y + h + 2, b - a, 1);
        this.text(Math.abs(k.offset) < 1e6 ? "clock right" : "clock " + Logic.signed(k.offset), a + 3, y + h + 9, b - a, c.warn);
      });
    }

    // ownerNames writes a name once over neighbouring stretches of one owner.
    ownerNames(l, y, h) {
      const list = l.owners;
      for (let k = Logic.firstReaching(list, this.view.from); k < list.length && list[k].from <= this.view.to;) {
        let j = k;
        while (j + 1 < list.length && list[j + 1].owner === list[k].owner && list[j + 1].from === list[j].to) j++;
        const a = this.clipX(list[k].from), b = this.clipX(list[j].to);
        if (b - a > 18) this.text(list[k].owner + (list[k].pttl < 0 ? " (no TTL)" : ""), Math.max(a, this.left) + 5, y + h / 2, b - a - 8, this.c.fg);
        k = j + 1;
      }
    }

    hatch(x, y, w, h, colour, gap, thick) {
      const { ctx } = this;
      if (w < 2) return;
      ctx.save();
      ctx.beginPath();
      ctx.rect(x, y, w, h);
      ctx.clip();
      ctx.strokeStyle = colour;
      ctx.lineWidth = thick;
      ctx.beginPath();
      const from = Math.floor((x - h) / gap) * gap;
      for (let i = from; i < x + w; i += gap) { ctx.moveTo(i, y + h); ctx.lineTo(i + h, y); }
      ctx.stroke();
      ctx.restore();
    }

    // marks draws the signs of a lane: of those in one pixel the gravest.
    marks(l, row) {
      const { ctx, c, m } = this;
      const y = row.top + (l.kind === "client" ? 21 : STORAGE / 2);
      // Signs are made for what is drawn only: of 50,000 events that is one in
      // fifty, and the others would be rubbish to collect in each frame.
      let px = -1, best = -1;
      const slots = [];
      const put = () => { if (best >= 0) slots.push({ x: px, i: best, s: Logic.mark(m, best) }); best = -1; };
      for (let k = Logic.firstEvent(m, l.marked, this.view.from); k < l.marked.length && m.T[l.marked[k]] <= this.view.to; k++) {
        const i = l.marked[k];
        const x = Math.round(this.x(m.T[i]));
        if (x !== px) { put(); px = x; }
        if (best < 0 || m.rank[i] >= m.rank[best]) best = i;
      }
      put();
      const crowded = slots.length > (this.width - this.left) / 8;
      slots.forEach((d, k) => {
        const room = Math.min(k > 0 ? d.x - slots[k - 1].x : 99, k + 1 < slots.length ? slots[k + 1].x - d.x : 99);
        const grave = d.s.rank >= Logic.grave;
        if (crowded && !grave) return; // what went well says nothing in a crowd
        if (room < 9 && !grave) {
          ctx.fillStyle = grave ? c.bad : c.fg;
          ctx.fillRect(d.x, y - 6, 1, 12);
          return;
        }
        ctx.fillStyle = grave ? c.bad : c.bg;
        ctx.strokeStyle = grave ? c.bad : c.fg;
        ctx.lineWidth = 1;
        ctx.beginPath();
        ctx.arc(d.x + 0.5, y, 7.5, 0, 2 * Math.PI);
        ctx.fill();
        ctx.stroke();
        ctx.fillStyle = grave ? c.bg : c.fg;
        ctx.font = "600 11px ui-monospace, Menlo, Consolas, monospace";
        ctx.textAlign = "center";
        ctx.fillText(d.s.sign, d.x + 0.5, y + 0.5);
        ctx.textAlign = "left";
        ctx.font = "12px system-ui, sans-serif";
        if (l.kind === "storage" && room > 60) {
          const r = m.rows[d.i];
          this.text("v" + (r[7] || 0) + (d.s.sign === "*" ? ", had seen v" + (r[6] || 0) : ""), d.x + 11, y, room - 16, grave ? c.bad : c.muted);
        }
      });
    }

    // messages draws commands between clients and nodes when few are in view.
    // When a request left and a reply arrived is not in the trace: they are
    // drawn from the call and to its return.
    messages(state) {
      const { ctx, c, m, lay } = this;
      if (!state.messages) return;
      const list = [];
      for (const row of lay.rows) {
        const l = m.lanes[row.lane];
        if (l.kind === "client") continue;
        for (let k = Logic.firstEvent(m, l.events, this.view.from); k < l.events.length && m.T[l.events[k]] <= this.view.to; k++) {
          list.push(l.events[k]);
          if (list.length > 120) return;
        }
      }
      if (list.length === 0 || (this.width - this.left) / list.length < 32) return;
      const written = new Map();
      ctx.lineWidth = 1;
      for (const i of list) {
        const r = m.rows[i], server = m.kind[i] === Logic.SERVER;
        const client = server ? (m.callOf[i] >= 0 ? m.lane[m.callOf[i]] : m.clientLane.get(Logic.str(m, r[3]))) : m.lane[i];
        const to = server ? m.lane[i] : m.storage;
        if (client === undefined || client < 0 || to < 0) continue;
        const x = this.x(m.T[i]), call = server ? m.callOf[i] : -1;
        const y0 = lay.rows[client].top + 34, y1 = lay.rows[to].top + (server ? 6 : 8);
        const sent = call >= 0 ? this.x(m.T[call]) : x;
        ctx.strokeStyle = ctx.fillStyle = c.link;
        this.arrow(x - sent < 300 ? Math.max(sent, x - 60) : x, y0, x, y1);
        if (call >= 0 && m.doneOf[call] >= 0) {
          const back = this.x(m.T[m.doneOf[call]]);
          ctx.setLineDash([3, 3]);
          if (back - x < 300) this.arrow(x, y1, Math.min(back, x + 60), y0);
          ctx.setLineDash([]);
        }
        const words = server ? Logic.str(m, r[4]) + (r[6] ? ": " + Logic.str(m, r[6]) : "") : "";
        if (server && x + 4 > (written.get(to) || 0)) {
          this.text(words, x + 4, lay.rows[to].top + 36, 130, c.link);
          written.set(to, x + 10 + Math.min(130, ctx.measureText(words).width));
        }
      }
    }
    arrow(x0, y0, x1, y1) {
      const { ctx } = this;
      ctx.beginPath();
      ctx.moveTo(x0, y0);
      ctx.lineTo(x1, y1);
      ctx.stroke();
      const a = Math.atan2(y1 - y0, x1 - x0);
      ctx.beginPath();
      ctx.moveTo(x1, y1);
      ctx.lineTo(x1 - 6 * Math.cos(a - 0.4), y1 - 6 * Math.sin(a - 0.4));
      ctx.lineTo(x1 - 6 * Math.cos(a + 0.4), y1 - 6 * Math.sin(a + 0.4));
      ctx.fill();
    }

    // contradictions links the ops of a violation: the chosen one strongly.
    contradictions(state) {
      const { ctx, c, m, lay } = this;
      m.data.violations.forEach((v, k) => {
        const chosen = k === state.violation;
        if (!chosen && k >= 40) return;
        const points = v.ops.filter((i) => i >= 0 && i < m.n && m.lane[i] >= 0).sort((a, b) => m.T[a] - m.T[b] || a - b).map((i) => ({ i, x: this.x(m.T[i]), y: lay.rows[m.lane[i]].top + (m.lanes[m.lane[i]].kind === "client" ? 21 : 18) }));
        if (points.length === 0) return;
        ctx.globalAlpha = chosen ? 1 : 0.55;
        ctx.strokeStyle = c.bad;
        ctx.lineWidth = chosen ? 2.5 : 1.5;
        ctx.beginPath();
        points.forEach((p, j) => {
          if (j === 0) return ctx.moveTo(p.x, p.y);
          const q = points[j - 1], bend = p.y === q.y ? -30 : 0;
          ctx.bezierCurveTo((2 * q.x + p.x) / 3, q.y + bend, (q.x + 2 * p.x) / 3, p.y + bend, p.x, p.y);
        });
        if (chosen) ctx.stroke();
        for (const p of points) {
          ctx.beginPath();
          ctx.arc(p.x, p.y, chosen ? 11 : 9, 0, 2 * Math.PI);
          ctx.stroke();
        }
        ctx.globalAlpha = 1;
      });
    }

    cursor(state) {
      const { ctx, c, m, lay } = this;
      for (const [i, strong] of [[state.hover, false], [state.op, true]]) {
        if (i < 0 || i >= m.n) continue;
        const x = Math.round(this.x(m.T[i])) + 0.5;
        ctx.strokeStyle = c.link;
        ctx.lineWidth = strong ? 2 : 1;
        ctx.setLineDash(strong ? [] : [4, 3]);
        ctx.beginPath();
        ctx.moveTo(x, this.offset);
        ctx.lineTo(x, this.offset + this.height);
        ctx.stroke();
        ctx.setLineDash([]);
        const lane = m.lane[i];
        if (lane >= 0) ctx.strokeRect(x - 10, lay.rows[lane].top + 8, 20, 28);
      }
    }

    labels() {
      const { ctx, c, m, lay } = this;
      const bold = "600 13px system-ui, sans-serif", plain = "12px system-ui, sans-serif";
      if (lay.gutter > 0) {
        ctx.fillStyle = c.bg;
        ctx.fillRect(0, this.offset, lay.gutter, this.height);
        ctx.fillStyle = c.edge;
        ctx.fillRect(lay.gutter - 1, this.offset, 1, this.height);
        if (m.data.faults.length) this.text("faults", 8, lay.faultTop + 9, lay.gutter - 12, c.muted);
      }
      for (const row of lay.rows) {
        if (!this.seen(row)) continue;
        const l = m.lanes[row.lane], room = (lay.gutter || this.width) - 14;
        const under = l.kind === "client" ? "client" : l.kind === "node" ? l.key : "the resource";
        ctx.font = bold;
        const w = Math.min(ctx.measureText(l.name).width, room);
        this.text(l.name, 8, lay.narrow ? row.y + 9 : row.y + 17, room, c.fg);
        ctx.font = plain;
        if (lay.narrow) this.text(under, 14 + w, row.y + 9, room - w, c.muted);
        else this.text(under, 8, row.y + 33, room, c.muted);
      }
    }
  }

  // backdrop is the whole run in a strip: holds, faults, violations. It is
  // drawn once; the frame over it moves.
  function backdrop(m, width, height, dpr, c) {
    const canvas = document.createElement("canvas");
    canvas.width = Math.max(1, Math.round(width * dpr));
    canvas.height = Math.round(height * dpr);
    const ctx = canvas.getContext("2d");
    ctx.setTransform(dpr, 0, 0, dpr, 0, 0);
    ctx.fillStyle = c.panel;
    ctx.fillRect(0, 0, width, height);
    const x = (t) => (t / Math.max(m.end, 1)) * width;
    ctx.globalAlpha = 0.3;
    ctx.fillStyle = c.fault;
    for (const f of m.data.faults) ctx.fillRect(x(f.from), 0, Math.max(1, x(f.to) - x(f.from)), height);
    ctx.globalAlpha = 1;
    const clients = m.lanes.filter((l) => l.kind === "client");
    const each = (height - 8) / Math.max(1, clients.length);
    clients.forEach((l, k) => {
      for (const [list, colour] of [[l.holds, c.lease], [l.over, c.bad], [l.both, c.bad]]) {
        ctx.fillStyle = colour;
        let drawn = -1;
        for (const s of list) {
          const a = x(s.from), b = Math.max(x(s.to), a + 1);
          if (b <= drawn) continue;
          ctx.fillRect(a, 4 + k * each, b - a, Math.max(1, each - 1));
          drawn = b;
        }
      }
    });
    ctx.fillStyle = c.bad;
    for (const v of m.data.violations) for (const i of v.ops) if (i >= 0 && i < m.n) { const p = x(m.T[i]); ctx.beginPath(); ctx.moveTo(p - 4, 0); ctx.lineTo(p + 4, 0); ctx.lineTo(p, 6); ctx.fill(); }
    return canvas;
  }

  // overview frames the part of the strip that is in view.
  function overview(ctx, back, m, view, width, height, c) {
    ctx.drawImage(back, 0, 0, width, height);
    const x = (t) => (t / Math.max(m.end, 1)) * width;
    const a = x(view.from), b = Math.max(x(view.to), a + 3);
    ctx.fillStyle = c.bg;
    ctx.globalAlpha = 0.6;
    ctx.fillRect(0, 0, a, height);
    ctx.fillRect(b, 0, width - b, height);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = c.link;
    ctx.lineWidth = 2;
    ctx.strokeRect(a + 1, 1, Math.max(1, b - a - 2), height - 2);
  }

  return { AXIS, layout, palette, Painter, backdrop, overview };
})();
