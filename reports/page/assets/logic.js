// logic.js: everything of the page that can be computed without a browser. It
// touches no document, so that tests can run it.
"use strict";
const Logic = (() => {
  const OP = 0, NEMESIS = 1, SERVER = 2, RESOURCE = 3;

  // opt undoes the encoding of an optional number: 0 is "absent", and numbers
  // from 0 up are stored one higher. Numbers beyond 2^53 come as text.
  const opt = (v) => (v === undefined || v === 0 ? null : typeof v === "string" ? v : v > 0 ? v - 1 : v);

  // decode turns the embedded data into columns and lanes.
  function decode(data) {
    const n = data.events.length;
    const m = {
      data, n, end: data.end, ttl: data.ttl,
      T: new Float64Array(n), kind: new Uint8Array(n), lane: new Int32Array(n).fill(-1), rank: new Uint8Array(n),
      rows: data.events, strings: data.strings, lanes: [],
    };
    const byClient = new Map(), byPlace = new Map(), bySeat = new Map(), ofAcq = new Map();
    const clients = [];
    data.seats.forEach((at) => {
      if (!byClient.has(at.client)) { byClient.set(at.client, m.lanes.length); clients.push(at.client); }
      bySeat.set(at.client + "\u0000" + at.thread + "\u0000" + at.lock, m.lanes.length);
      m.lanes.push({ kind: "client", name: at.label, client: at.client, lock: at.lock, index: clients.length - 1, events: [], waits: [], holds: [], over: [], both: [], lease: [], pauses: [] });
    });
    data.places.forEach(([node, key]) => {
      byPlace.set(node + "\u0000" + key, m.lanes.length);
      m.lanes.push({ kind: "node", name: node, key, events: [], owners: [], clocks: [], down: [] });
    });
    m.clientLane = byClient;
    // What is done under an acquisition stands in the lane of its thread and its
    // lock; anything else of a client in its first lane.
    const seatOf = (acq, client) => (acq && ofAcq.get(acq) >= 0 ? ofAcq.get(acq) : laneOf(byClient, client));
    const storage = { kind: "storage", name: "storage", events: [] };
    let t = 0;
    for (let i = 0; i < n; i++) {
      const r = m.rows[i];
      t += r[0];
      m.T[i] = t;
      m.kind[i] = r[1];
      let lane = -1;
      if (r[1] === OP) {
        if (r[7] && str(m, r[4]) === "acquire") ofAcq.set(r[7], laneOf(bySeat, str(m, r[3]) + "\u0000" + (r[14] || 0) + "\u0000" + str(m, r[6])));
        lane = seatOf(r[7], str(m, r[3]));
      } else if (r[1] === RESOURCE) { lane = seatOf(r[4], str(m, r[2])); storage.events.push(i); }
      else if (r[1] === SERVER) lane = laneOf(byPlace, str(m, r[2]) + "\u0000" + str(m, r[5]));
      m.lane[i] = lane;
      m.rank[i] = rankOf(m, i);
      if (lane >= 0) m.lanes[lane].events.push(i);
    }
    m.lanes.forEach((l) => { l.marked = l.events.filter((i) => m.rank[i] > 0); });
    storage.marked = storage.events.filter((i) => m.rank[i] > 0);
    if (storage.events.length > 0) { m.storage = m.lanes.length; m.lanes.push(storage); } else m.storage = -1;
    data.holds.forEach((h) => fillHold(m, h));
    data.waits.forEach(([c, from, length]) => m.lanes[c].waits.push({ from, to: from + length }));
    data.both.forEach(([c, from, length]) => m.lanes[c].both.push({ from, to: from + length }));
    m.lanes.forEach((l) => { if (l.kind === "node") trackNode(m, l); });
    data.faults.forEach((f, k) => strike(m, f, k));
    m.lanes.forEach((l) => ["waits", "holds", "over", "both", "lease", "pauses", "owners", "down"].forEach((k) => l[k] && seal(l[k])));
    link(m);
    return m;
  }

  const str = (m, i) => m.strings[i || 0];
  const laneOf = (map, name) => { const i = map.get(name); return i === undefined ? -1 : i; };

  // fillHold spreads one acquisition over its client's lane.
  function fillHold(m, [acq, lane, ops, belief, lease, over]) {
    const l = m.lanes[lane], granted = m.T[ops[1]];
    const pairs = (flat, into) => {
      for (let i = 0; i + 1 < flat.length; i += 2) into.push({ from: granted + flat[i], to: granted + flat[i] + flat[i + 1], acq, ops });
    };
    pairs(belief, l.holds);
    pairs(lease, l.lease);
    pairs(over, l.over);
  }

  // trackNode follows one key on one node: who owns it, for how long still, and
  // how far the node's clock is off.
  function trackNode(m, l) {
    const noise = Math.max(2e6, m.ttl / 100);
    let offset = 0;
    let open = null;
    for (const i of l.events) {
      const r = m.rows[i], t = m.T[i];
      const pttl = r[8] || 0, off = r[9] || 0;
      const owner = pttl === -2 ? "" : str(m, r[7]);
      if (open) { open.to = t; l.owners.push(open); }
      open = owner === "" ? null : { from: t, to: m.end, owner, pttl: pttl < 0 ? -1 : pttl * 1e6, op: i, client: colourOf(m, owner) };
      if (Math.abs(off - offset) > noise) { offset = off; l.clocks.push({ t, offset }); }
    }
    if (open) l.owners.push(open);
  }

  // colourOf is the number of the client that an owner's alias names, for its
  // colour; several owners at once have the colour of nobody.
  function colourOf(m, owner) {
    const lane = owner.includes(",") ? undefined : m.clientLane.get(owner.split("#")[0]);
    return lane === undefined ? undefined : m.lanes[lane].index;
  }

  // strike puts a fault into the lanes that it hits.
  function strike(m, f, k) {
    f.lanes = [];
    m.lanes.forEach((l, i) => {
      if (!f.on.includes(l.kind === "client" ? l.client : l.name) || l.kind === "storage") return;
      f.lanes.push(i);
      if (l.kind === "client" && f.fault === "pause") l.pauses.push({ from: f.from, to: f.to, fault: k });
      if (l.kind === "node" && (f.fault === "kill" || f.fault === "stall" || (f.fault === "failover" && f.on[0] === l.name)))
        l.down.push({ from: f.from, to: f.to, fault: k, words: f.fault === "stall" ? "stalled" : "down" });
    });
  }

  // seal sorts intervals and notes for each how far any before it reaches, so
  // that the first one in view is found by bisection.
  function seal(list) {
    list.sort((a, b) => a.from - b.from);
    let reach = -Infinity;
    for (const x of list) x.reach = reach = Math.max(reach, x.to);
  }

  // firstReaching is the first interval that may reach beyond t.
  function firstReaching(list, t) {
    let lo = 0, hi = list.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (list[mid].reach < t) lo = mid + 1; else hi = mid;
    }
    return lo;
  }

  // firstEvent is the position in a lane's list of the first event from t on.
  function firstEvent(m, events, t) {
    let lo = 0, hi = events.length;
    while (lo < hi) {
      const mid = (lo + hi) >> 1;
      if (m.T[events[mid]] < t) lo = mid + 1; else hi = mid;
    }
    return lo;
  }

  // link finds for each command the call that it belongs to: the newest call of
  // its client that is open. A command of a renewer belongs to none.
  function link(m) {
    m.callOf = new Int32Array(m.n).fill(-1);
    m.doneOf = new Int32Array(m.n).fill(-1);
    m.invokeOf = new Int32Array(m.n).fill(-1);
    const open = new Map(), byClient = new Map();
    for (let i = 0; i < m.n; i++) {
      const r = m.rows[i];
      if (m.kind[i] === OP) {
        const type = str(m, r[5]), process = r[2], client = r[3];
        if (type === "invoke") {
          open.set(process, i);
          if (!byClient.has(client)) byClient.set(client, []);
          byClient.get(client).push(i);
        } else if (type !== "note" && open.has(process)) {
          const inv = open.get(process);
          open.delete(process);
          m.doneOf[inv] = i;
          m.invokeOf[i] = inv;
          const list = byClient.get(client) || [];
          const at = list.indexOf(inv);
          if (at >= 0) list.splice(at, 1);
        }
      } else if (m.kind[i] === SERVER && r[3]) {
        const list = byClient.get(r[3]) || [];
        if (list.length > 0) m.callOf[i] = list[list.length - 1];
      }
    }
  }

  // The signs of a lane, with how grave they are. The letters are those of the
  // text report.
  const SIGNS = [
    null,
    { sign: "r", rank: 1, says: "read" }, { sign: "e", rank: 2, says: "lease extended" },
    { sign: "W", rank: 3, says: "write applied" }, { sign: "w", rank: 4, says: "write refused" },
    { sign: "a", rank: 5, says: "gave up without writing" }, { sign: "n", rank: 6, says: "told that the lease is lost" },
    { sign: "E", rank: 7, says: "extend failed" }, { sign: "X", rank: 8, says: "crashed" }, { sign: "*", rank: 9, says: "lost update" },
  ];
  const grave = 4; // from this rank on a sign is bad news

  // mark is the sign of an event, or null.
  function mark(m, i) { return SIGNS[m.rank[i]]; }

  function rankOf(m, i) {
    const r = m.rows[i];
    if (m.kind[i] === RESOURCE) {
      const f = str(m, r[5]);
      if (f === "read") return 1;
      if (f !== "write") return 0;
      if (r[9] !== 1) return 4;
      return (r[6] || 0) !== (r[8] || 0) ? 9 : 3;
    }
    if (m.kind[i] !== OP) return 0;
    const f = str(m, r[4]), type = str(m, r[5]);
    if (type === "note") return f === "lost" ? 6 : f === "abandon" ? 5 : f === "crash" ? 8 : 0;
    return f !== "extend" || type === "invoke" ? 0 : type === "ok" ? 2 : 7;
  }

  // fields are all that an event says, in words.
  function fields(m, i) {
    const r = m.rows[i], t = m.T[i], s = (k) => str(m, r[k]);
    const out = [["event", String(i)], ["time", time(t)]];
    const add = (name, v) => { if (v !== null && v !== undefined && v !== "") out.push([name, String(v)]); };
    const rel = (k) => { const v = opt(r[k]); return v === null ? null : time(t + v); };
    if (m.kind[i] === OP) {
      add("client", s(3)); add("process", r[2] || 0); add("call", s(4)); add("type", s(5)); add("lock", s(6));
      add("acquisition", r[7] || null); add("version", opt(r[8])); add("deadline", rel(9)); add("fence", opt(r[10]));
      add("valid until", rel(11)); add("code", s(12)); add("error", s(13));
      add("thread", r[14] ? r[14] + 1 : null); add("mode", s(15));
      const other = m.doneOf[i] >= 0 ? m.doneOf[i] : m.invokeOf[i];
      if (other >= 0) add(m.doneOf[i] >= 0 ? "returned" : "called", "event " + other + ", " + time(m.T[other]));
    } else if (m.kind[i] === NEMESIS) {
      add("fault", s(3)); add("phase", s(4)); add("what", s(5)); add("why", s(6)); add("error", s(7)); add("number", r[2] || 0);
      add("on", r.slice(8).map((k) => str(m, k)).join(", "));
    } else if (m.kind[i] === SERVER) {
      const pttl = r[8] || 0;
      add("node", s(2)); add("client", s(3)); add("command", s(4)); add("key", s(5)); add("reply", s(6)); add("owner afterwards", s(7) || "nobody");
      add("time to live", pttl === -1 ? "none: the key has no expiry" : pttl === -2 ? "the key is absent" : pttl + " ms");
      add("the node's clock", time(t + (r[9] || 0)) + (r[9] ? " (" + signed(r[9]) + ")" : "")); add("value", s(10));
    } else {
      add("client", s(2)); add("process", r[3] || 0); add("acquisition", r[4] || null); add("call", s(5)); add("had seen version", r[6] || 0);
      add("version before", r[8] || 0); add("version after", r[7] || 0); add("applied", r[9] === 1 ? "yes" : "no"); add("fence", opt(r[10])); add("refused", s(11));
    }
    return out;
  }

  // sentence says an event in one line.
  function sentence(m, i) {
    const r = m.rows[i], s = (k) => str(m, r[k]), at = " at " + time(m.T[i]);
    switch (m.kind[i]) {
      case OP: {
        const type = s(5), acq = r[7] ? " (acquisition " + r[7] + ")" : "";
        if (type === "note" && s(4) === "phase") return "phase " + s(13) + " begins" + at;
        if (type === "note") return s(3) + ": " + s(4) + acq + at;
        return s(3) + " " + s(4) + " " + type + acq + at + (s(12) ? ", " + s(12) : "");
      }
      case NEMESIS:
        return "fault " + s(3) + " " + s(4) + (s(5) ? ": " + s(5) : "") + at;
      case SERVER:
        return s(2) + " " + s(4) + (s(3) ? " from " + s(3) : "") + at + (s(6) ? ", replied " + s(6) : "") + "; the key belongs to " + (s(7) && r[8] !== -2 ? s(7) : "nobody");
    }
    const k = mark(m, i);
    return s(2) + " " + (k ? k.says : s(5)) + at + ", version " + (r[7] || 0);
  }

  // time writes nanoseconds as seconds, as exact as it is short.
  function time(ns) {
    const s = ns / 1e9;
    const digits = Math.abs(ns) < 1e6 && ns !== 0 ? 6 : 4;
    return String(Number(s.toFixed(digits))) + " s";
  }

  function signed(ns) { return (ns < 0 ? "-" : "+") + time(Math.abs(ns)); }

  // ticks are round instants in a stretch, no more than fit.
  function ticks(from, to, most) {
    const span = to - from;
    if (!(span > 0) || most < 1) return [];
    const raw = span / most;
    const unit = Math.pow(10, Math.floor(Math.log10(raw)));
    const step = [1, 2, 5, 10].map((x) => x * unit).find((x) => x >= raw) || 10 * unit;
    const whole = Math.max(1, Math.round(step));
    const out = [];
    for (let t = Math.ceil(from / whole) * whole; t <= to && out.length <= most + 1; t += whole) out.push({ t, label: tickLabel(t, whole) });
    return out;
  }

  function tickLabel(t, step) {
    const digits = Math.min(9, Math.max(0, -Math.floor(Math.log10(step / 1e9) + 1e-9)));
    return (t / 1e9).toFixed(digits) + " s";
  }

  // The view is the stretch that is drawn. It never leaves the run, and never
  // shows less than a microsecond.
  const least = 1000;
  function clamp(view, end) {
    const all = Math.max(end, least);
    const span = Math.min(Math.max(view.to - view.from, least), all);
    let from = Math.min(Math.max(view.from, 0), all - span);
    return { from, to: from + span };
  }
  function zoom(view, factor, at, end) {
    return clamp({ from: at - (at - view.from) * factor, to: at + (view.to - at) * factor }, end);
  }
  function pan(view, by, end) { return clamp({ from: view.from + by, to: view.to + by }, end); }

  // around is a view with some room on both sides of a stretch.
  function around(from, to, ttl, end) {
    const room = Math.max((to - from) * 0.15, ttl / 8, least);
    return clamp({ from: from - room, to: to + room }, end);
  }

  // nearest is the event of a lane that is closest to t, not farther than the
  // tolerance, and at one instant the gravest; -1 for none.
  function nearest(m, lane, t, tolerance) {
    const events = m.lanes[lane].events;
    let best = -1, dist = tolerance, rank = -1;
    for (let k = firstEvent(m, events, t - tolerance); k < events.length && m.T[events[k]] <= t + tolerance; k++) {
      const d = Math.abs(m.T[events[k]] - t), g = m.rank[events[k]];
      if (d < dist || (d === dist && g > rank)) { best = events[k]; dist = d; rank = g; }
    }
    return best;
  }

  // step is the neighbour of an event in its lane.
  function step(m, i, lane, by) {
    const events = m.lanes[lane].events;
    const at = events.indexOf(i);
    if (at < 0) return events.length ? events[0] : -1;
    return events[Math.min(Math.max(at + by, 0), events.length - 1)];
  }

  // place reads the address: "#op-12" and "#violation-2".
  function place(hash) {
    const found = /^#(op|violation)-(\d{1,9})$/.exec(hash || "");
    return found ? { what: found[1], number: Number(found[2]) } : null;
  }

  // search lists the events whose sentence has all the words, from one on.
  function search(m, query, from, most) {
    const words = query.toLowerCase().split(/\s+/).filter((w) => w !== "");
    const found = [];
    let i = from;
    for (; i < m.n && found.length < most; i++) {
      if (words.length > 0) {
        const text = sentence(m, i).toLowerCase();
        if (!words.every((w) => text.includes(w))) continue;
      }
      found.push(i);
    }
    return { found, next: i };
  }

  // clip shortens a text to a width that measure gives.
  function clip(text, width, measure) {
    if (measure(text) <= width) return text;
    let lo = 0, hi = text.length;
    while (lo < hi) {
      const mid = (lo + hi + 1) >> 1;
      if (measure(text.slice(0, mid) + "\u2026") <= width) lo = mid; else hi = mid - 1;
    }
    return lo === 0 ? "" : text.slice(0, lo) + "\u2026";
  }

  // packed puts faults into as few rows as they need without touching.
  function packed(faults, most) {
    const rows = [];
    const row = faults.map((f) => {
      let at = rows.findIndex((end) => end <= f.from);
      if (at < 0) at = rows.length < most ? rows.push(-1) - 1 : most - 1;
      rows[at] = Math.max(rows[at], f.to);
      return at;
    });
    return { row, count: rows.length };
  }

  return { grave, OP, NEMESIS, SERVER, RESOURCE, decode, mark, fields, sentence, time, signed, ticks, clamp, zoom, pan, around, nearest, step, place, search, clip, packed, firstReaching, firstEvent, str };
})();
