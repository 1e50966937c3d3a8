package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const loadName = "load"

// Kinds of a load violation.
const (
	// Storm: a holder sends far more commands than its renewal needs.
	Storm = "storm"
	// AfterRelease: a client goes on sending when it holds and asks for nothing.
	AfterRelease = "after-release"
)

const (
	// mostPerTTL is how many commands a holder may send in one TTL of holding
	// without being told to: a renewal every third of a TTL, each tried ten
	// times with a script that has to be loaded, makes sixty.
	mostPerTTL = 60
	// mostIdle is how many commands a client may send that has neither a call
	// under way nor a hold: one or two are what was in flight.
	mostIdle = 3
	// settle is the share of a TTL after a call during which its commands may
	// still come in.
	settle = 500
)

// load counts what a lock costs, and finds renewals that nobody waits for: a
// renewer that goes on when its hold is over. Commands that a fault held up are
// not counted against anybody, nor is anything that a client that never asked
// for the lock may send.
//
//	0    c1 releases and thinks for a while
//	3.3  a renewal of c1 arrives, and another every 3.3 from then on
func load(f *Facts) Result {
	if why := f.untraced(); why != "" {
		return Result{Verdict: Unknown, Reason: why + ", so no command was counted"}
	}
	r := Result{Verdict: Pass, Applies: true}
	var found []Found
	l := &costs{facts: f}
	for _, client := range f.clients() {
		found = append(found, l.idle(client)...)
	}
	for _, a := range f.Acquisitions {
		if a.Held() {
			if v, ok := l.holding(a); ok {
				found = append(found, v)
			}
		}
	}
	commands := 0
	for _, c := range f.keys.byClient {
		commands += len(c)
	}
	r.Figures = map[string]float64{"commands": float64(commands), "idle_commands": float64(l.idleCommands), "holding_commands": float64(l.holdingCommands)}
	if l.held > 0 {
		r.Figures["commands_per_held_second"] = float64(commands) / (float64(l.held) / 1e9)
		r.Figures["holder_commands_per_held_second"] = float64(l.holdingCommands) / (float64(l.held) / 1e9)
	}
	if commands == 0 {
		r.Verdict, r.Reason = Unknown, "no command of a client was seen"
	}
	return r.with(found, []string{AfterRelease, Storm})
}

type costs struct {
	facts                         *Facts
	held                          int64
	idleCommands, holdingCommands int
}

// clients in the order of their first acquires.
func (f *Facts) clients() []string {
	var out []string
	seen := map[string]bool{}
	for _, a := range f.Acquisitions {
		if !seen[a.Client] {
			seen[a.Client] = true
			out = append(out, a.Client)
		}
	}
	return out
}

// idle finds commands of a client outside all its calls and holds.
func (l *costs) idle(client string) []Found {
	f := l.facts
	var busy []tenure
	for _, a := range f.Acquisitions {
		if a.Client == client {
			busy = append(busy, f.tenure(a))
		}
	}
	slices.SortStableFunc(busy, func(x, y tenure) int { return cmp.Compare(x.From, y.From) })
	room := int64(f.History.Header.TTL)/settle + f.slack()
	var ops []int
	var last tenure
	lengthened := false
	to := int64(-1)
	for _, i := range f.keys.byClient[client] {
		s := &f.keys.touches[i]
		for len(busy) > 0 && busy[0].From <= s.t {
			if busy[0].To > to {
				to, last = busy[0].To, busy[0]
			}
			busy = busy[1:]
		}
		if to < 0 || s.t <= to+room || last.a.CrashIndex >= 0 {
			continue
		}
		if f.heldUp(client, s.Node, s.t) {
			continue
		}
		l.idleCommands++
		lengthened = lengthened || s.moved > 0 && ownerOf(s.Owner) == client
		ops = append(ops, s.index)
	}
	if len(ops) < mostIdle && !lengthened {
		return nil
	}
	t := f.History.Events[ops[0]].T
	return []Found{{Kind: AfterRelease, Ops: ops[:min(len(ops), 4)], suspects: f.active(t, t),
		Summary: fmt.Sprintf("%s sent %d commands for the lock's key, the first at %s, while it held nothing and no call of it was under way: something of an earlier hold still runs.",
			client, len(ops), f.at(t))}}
}

// forHold are a client's commands from a grant up to an event, without those of
// acquires that it has under way meanwhile: it asks for the next lock, or for
// the same one in another thread.
func (l *costs) forHold(a *Acquisition, end int) []int {
	f := l.facts
	sent := f.keys.of(a.Client, a.DoneIndex, end)
	if len(f.Locks) == 1 && !f.shared() {
		return sent
	}
	return slices.DeleteFunc(slices.Clone(sent), func(i int) bool {
		s := &f.keys.touches[i]
		if len(f.Locks) > 1 && !strings.Contains(s.key, a.Lock) {
			return true
		}
		return slices.ContainsFunc(f.Acquisitions, func(b *Acquisition) bool {
			return b.Client == a.Client && b.InvokeIndex > a.DoneIndex && b.InvokeIndex < s.index && (b.Pending() || s.index < b.DoneIndex)
		})
	})
}

// shared says whether a client has several acquires under way at once, or
// acquires while it holds.
func (f *Facts) shared() bool {
	return f.History.Header.Reentrant || slices.ContainsFunc(f.Acquisitions, func(a *Acquisition) bool { return a.Thread > 0 })
}

// holding counts what a holder's client sends from the grant to the release.
func (l *costs) holding(a *Acquisition) (Found, bool) {
	f := l.facts
	end := f.watchEnd(a)
	to := f.End
	if end < len(f.History.Events) {
		to = f.History.Events[end].T
	}
	sent := l.forHold(a, end)
	l.held += to - a.Done
	l.holdingCommands += len(sent)
	allowed := mostPerTTL * (1 + (to-a.Done)/max(int64(f.History.Header.TTL), 1))
	if int64(len(sent)) <= allowed {
		return Found{}, false
	}
	return Found{Kind: Storm, Ops: []int{a.DoneIndex, f.keys.touches[sent[0]].index, f.keys.touches[sent[len(sent)-1]].index}, suspects: f.active(a.Done, to),
		Summary: fmt.Sprintf("%s sent %d commands for the lock's key while it held %s for %s: at most %d are what renewals need.",
			a.Client, len(sent), f.theLock(a.Lock), f.long(to-a.Done), allowed)}, true
}
