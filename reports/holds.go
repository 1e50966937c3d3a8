package reports

import (
	"time"

	"github.com/holdfast-io/holdfast/history"
)

// acqKey names one acquisition. Numbers may repeat between clients that are
// separate operating system processes, so the client is part of the name.
type acqKey struct {
	client string
	acq    int
}

// hold is one acquisition as its holder saw it, in nanoseconds since the start.
type hold struct {
	key acqKey
	// invoked is when the acquire was called; from is when it returned.
	invoked, from int64
	// lease is where the guaranteed lease would end if nothing ended it early.
	lease int64
	// good is where the guaranteed lease ends, until where the belief ends.
	good, until int64
	// renewed says that an extend was confirmed.
	renewed bool
	open    bool
}

// holdsOf reads the acquisitions out of a history, in the order of their
// grants. It draws pictures and judges nothing: whether two holds may overlap
// is for package checker to say.
func holdsOf(h *history.History) []*hold {
	lease := int64(float64(h.Header.TTL) * (1 - h.Header.Drift))
	var holds []*hold
	live := map[acqKey]*hold{}
	invoked := map[acqKey]int64{}
	end := int64(0)
	for _, e := range h.Events {
		end = max(end, e.T)
		if e.Op == nil {
			continue
		}
		op, key := e.Op, acqKey{client: e.Op.Client, acq: e.Op.Acq}
		switch {
		case op.Type == history.Invoke && (op.F == history.Acquire || op.F == history.Extend):
			invoked[key] = e.T
		case op.Type == history.OK && op.F == history.Acquire:
			start, known := invoked[key]
			if !known {
				start = e.T
			}
			hd := &hold{key: key, invoked: start, from: e.T, lease: start + lease, open: true}
			live[key] = hd
			holds = append(holds, hd)
		case op.Type == history.OK && op.F == history.Extend:
			if hd := live[key]; hd != nil && hd.open {
				hd.lease, hd.renewed = invoked[key]+lease, true
			}
		default:
			closeHolds(live, key, op, e.T)
		}
	}
	for _, hd := range holds {
		if hd.open {
			hd.until = end
		}
		hd.good = min(hd.lease, hd.until)
	}
	return holds
}

// closeHolds ends beliefs: a crash ends all that the client has, the others
// end the acquisition that they name.
func closeHolds(live map[acqKey]*hold, key acqKey, op *history.Op, t int64) {
	ends := op.F == history.Release && op.Type == history.Invoke ||
		op.Type == history.Note && (op.F == history.Lost || op.F == history.Abandon)
	crash := op.Type == history.Note && op.F == history.Crash
	if !ends && !crash {
		return
	}
	for k, hd := range live {
		if (ends && k == key) || (crash && k.client == key.client) {
			hd.until, hd.open = t, false
			delete(live, k)
		}
	}
}

func seconds(ns int64) float64 {
	return time.Duration(ns).Seconds()
}
