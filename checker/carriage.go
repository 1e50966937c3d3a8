package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/history"
)

// lapse is a stretch of time in which a granted acquisition was not on record:
// fewer nodes than its quorum carried its token.
type lapse struct {
	Interval
	// index of the event at which it began, and the words for its cause.
	index int
	cause string
	// by is the client whose command caused it, if one did.
	by string
}

// Causes of a lapse.
const (
	lapseNever       = "never-there"
	lapseExpired     = "expired"
	lapseDeleted     = "deleted"
	lapseOverwritten = "overwritten"
	lapseLost        = "lost"
	// lapseDeposed: granted by a node, named in by, that had been replaced as the
	// primary.
	lapseDeposed = "deposed"
)

// carriage goes through the server trace and finds, for every granted
// acquisition whose token is known, when the nodes did not carry it, from the
// grant to the end of its watch: release invoked, loss seen, given up, crashed,
// or the end of the history.
//
// In a replicated topology only the primary counts. A replica that is promoted
// has what its promotion reports, and nothing else:
//
//	0    c1's SET runs on n1, the primary
//	0.1  n1 dies, n2 is promoted and reports no key: c1's lapse begins
//
// In a Redis Cluster the same holds key by key: the node that counts is the one
// that serves the key's slot, and a slot may move with its keys as well:
//
//	0    c1's SET runs on n1
//	0.1  n2 reports that the key has moved there: now n2 counts, and has it
//	0.1  n1 reports that the key is gone: no lapse
type carriage struct {
	facts  *Facts
	quorum int
	owners map[place]string
	// primary is the node that counts, and demoted are those that did, by
	// [Facts.realm]; both are empty where all nodes count.
	primary map[string]string
	demoted map[place]bool
	// active acquisitions by their token; to is where their watch ends.
	active map[string][]*Acquisition
	// last is the step that took a token from a node last.
	last map[string]*touch
}

func (f *Facts) carry() {
	c := &carriage{
		facts: f, quorum: f.quorum(), owners: map[place]string{}, primary: map[string]string{}, demoted: map[place]bool{},
		active: map[string][]*Acquisition{}, last: map[string]*touch{},
	}
	var granted []*Acquisition
	for _, a := range f.Acquisitions {
		counted := a.Alias == "" && f.History.Header.Kind != "" // by a key that names nobody
		if a.Held() && !counted && (a.Alias == "" || a.key != "") {
			granted = append(granted, a)
		}
	}
	slices.SortFunc(granted, func(x, y *Acquisition) int { return cmp.Compare(x.DoneIndex, y.DoneIndex) })
	moves := f.failovers()
	for i := range f.keys.touches {
		s := &f.keys.touches[i]
		for len(moves) > 0 && moves[0].StartIndex < s.index {
			granted = c.grant(granted, moves[0].StartIndex)
			c.promote("", moves[0].On[1], moves[0].StartIndex, moves[0].Start)
			moves = moves[1:]
		}
		granted = c.grant(granted, s.index)
		c.step(s)
	}
	for _, m := range moves {
		granted = c.grant(granted, m.StartIndex)
		c.promote("", m.On[1], m.StartIndex, m.Start)
	}
	c.grant(granted, len(f.History.Events))
}

// failovers are the faults that made another node the primary.
func (f *Facts) failovers() []Fault {
	if !f.History.Header.Replicates() {
		return nil
	}
	var out []Fault
	for _, x := range f.Faults {
		if (x.Fault == "failover" || x.Fault == history.Promotion) && len(x.On) == 2 {
			out = append(out, x)
		}
	}
	return out
}

// watchEnd is the index of the event up to which an acquisition's token has to
// be on record, if its lease lasts that long.
func (f *Facts) watchEnd(a *Acquisition) int {
	end := len(f.History.Events)
	for _, i := range []int{a.ReleaseIndex, a.CrashIndex, a.AbandonIndex} {
		if i >= 0 {
			end = min(end, i)
		}
	}
	if a.BeliefWhy == EndLost {
		end = min(end, a.BeliefEndIndex)
	}
	return end
}

// grant takes up the acquisitions that were granted before an event.
func (c *carriage) grant(granted []*Acquisition, before int) []*Acquisition {
	for len(granted) > 0 && granted[0].DoneIndex < before {
		a := granted[0]
		granted = granted[1:]
		if a.Alias == "" {
			c.nameless(a)
			continue
		}
		c.active[a.Alias] = append(c.active[a.Alias], a)
		if c.carrying(a) >= c.quorum {
			continue
		}
		l := lapse{Interval: Interval{From: a.Done, To: never}, index: a.DoneIndex, cause: lapseNever}
		if node := c.elsewhere(a); node != "" {
			l.cause, l.by = lapseDeposed, node
		}
		// Had a quorum carried it, the lease would have begun: what was given
		// back by a failed attempt before is no cause. A permit's lease does not
		// begin with a command; there its being taken away says that it was there.
		s := c.last[a.Alias]
		if s != nil && s.t >= a.LeaseStart && (a.LeaseStart > a.Invoked || c.facts.permits() > 0) {
			l.cause, l.by, l.index = causeOf(s), s.Client, s.index
		}
		a.lapses = append(a.lapses, l)
	}
	return granted
}

// nameless takes a grant during which its client was seen to put no token of
// its own on any node. If it has none there from before either, as a
// re-entrant lock has, and has written nothing, it was granted thin air.
func (c *carriage) nameless(a *Acquisition) {
	for _, owners := range c.owners {
		for _, token := range strings.Split(owners, ",") {
			if ownerOf(token) == a.Client {
				return
			}
		}
	}
	k := c.facts.keys
	sent := k.of(a.Client, a.InvokeIndex, a.DoneIndex)
	for _, i := range sent {
		if k.touches[i].wrote() {
			return
		}
	}
	if k.anonymous == 0 && c.facts.slack() == 0 {
		a.unasked = len(sent) == 0 && c.facts.complete()
		a.lapses = []lapse{{Interval: Interval{From: a.Done, To: never}, index: a.DoneIndex, cause: lapseNever}}
	}
}

// complete says whether the server trace has every command, so that what is not
// in it did not happen: only the simulator can promise that.
func (f *Facts) complete() bool { return f.History.Header.World == "sim" && f.untraced() == "" }

// baseless says of a grant that no quorum had given it when its client was told
// of it, in words; empty where one had. A slow answer is no excuse, nor has it a
// lease that could be over:
//
//	0    c1 asks; the lock says yes to itself, and takes its time
//	3    c2 is granted the lock by the server, and believes
//	11   c1 hears "yes": it has not outlived anything, it never had it
func (f *Facts) baseless(a *Acquisition) string {
	switch {
	case !f.complete() || len(a.lapses) == 0 || a.lapses[0].cause != lapseNever:
		return ""
	case a.unasked:
		return "it had asked no node"
	case f.quorum() > 1:
		return fmt.Sprintf("fewer than %d nodes had granted it", f.quorum())
	}
	return "no node had granted it"
}

// carrying counts the nodes that carry an acquisition's token.
func (c *carriage) carrying(a *Acquisition) int {
	if primary := c.primary[c.facts.realm(a.key)]; primary != "" {
		if carries(c.owners[place{primary, a.key}], a.Alias) {
			return 1
		}
		return 0
	}
	n := 0
	for _, p := range c.facts.keys.places {
		if p.key == a.key && carries(c.owners[p], a.Alias) {
			n++
		}
	}
	return n
}

// elsewhere is a node that carries an acquisition's token and is the primary no
// more; empty where there is none.
func (c *carriage) elsewhere(a *Acquisition) string {
	realm := c.facts.realm(a.key)
	for _, p := range c.facts.keys.places {
		if p.key == a.key && p.node != c.primary[realm] && c.demoted[place{p.node, realm}] && carries(c.owners[p], a.Alias) {
			return p.node
		}
	}
	return ""
}

func (c *carriage) step(s *touch) {
	c.follow(s)
	was := c.owners[s.place]
	c.owners[s.place] = s.Owner
	if was == s.Owner {
		return
	}
	for _, token := range strings.Split(was, ",") {
		if token != "" && !carries(s.Owner, token) {
			c.last[token] = s
			c.recount(token, s.index, s.t, causeOf(s), s.Client)
		}
	}
	for _, token := range strings.Split(s.Owner, ",") {
		if token != "" && !carries(was, token) {
			c.recount(token, s.index, s.t, "", s.Client)
		}
	}
}

// follow finds out from a step which node is the primary of its realm, where one
// counts at a time.
//
// Where nodes elect their primary, its promotion is on record. A replica's word
// that it has become one is not enough: the election may come to nothing, and
// no client is led there then. Nor is a command of a client, which may read on a
// replica, or ask a script that the replica refuses; only a primary takes a
// write. A primary that was replaced and goes on serving the clients on its side
// is none:
//
//	0    c1's SET runs on n1; n1 is cut off from the others
//	1.5  n2 is promoted, and has no key: c1's lapse begins
//	2    c1 releases on n1, and is granted the lock there anew: never on record
//	2.1  c2 is granted the lock on n2
func (c *carriage) follow(s *touch) {
	if !c.facts.oneCounts() {
		return
	}
	elected := c.facts.History.Header.Topology == "sentinel"
	realm := c.facts.realm(s.Key)
	switch primary := c.primary[realm]; {
	case primary == "" && s.Client != "":
		c.primary[realm] = s.Node
	case s.Node == primary:
	case s.Cmd == history.Promoted && !elected, s.Cmd == history.Moved,
		s.Client != "" && !c.demoted[place{s.Node, realm}] && (!elected || s.wrote() && s.sure):
		c.promote(realm, s.Node, s.index, s.t)
	}
}

// promote makes a node the one that counts in a realm. What the trace knew of it
// before is what it had as a replica, or before it died.
func (c *carriage) promote(realm, node string, index int, t int64) {
	old := c.primary[realm]
	if old == node {
		return
	}
	if old != "" {
		c.demoted[place{old, realm}] = true
		c.facts.successions = append(c.facts.successions, succession{place: place{old, realm}, t: t})
	}
	c.primary[realm] = node
	delete(c.demoted, place{node, realm})
	for p := range c.owners {
		if p.node == node && c.facts.realm(p.key) == realm {
			c.owners[p] = ""
		}
	}
	for token, all := range c.active {
		if len(all) > 0 && c.facts.realm(all[0].key) == realm {
			c.recount(token, index, t, lapseLost, "")
		}
	}
}

// recount opens or closes the lapses of the acquisitions with a token.
func (c *carriage) recount(token string, index int, t int64, cause, by string) {
	kept := c.active[token][:0]
	for _, a := range c.active[token] {
		if index > c.facts.watchEnd(a) {
			continue
		}
		kept = append(kept, a)
		n := len(a.lapses)
		open := n > 0 && a.lapses[n-1].To == never
		switch whole := c.carrying(a) >= c.quorum; {
		case whole && open:
			a.lapses[n-1].To = t
		case !whole && !open:
			l := lapse{Interval: Interval{From: t, To: never}, index: index, cause: cause, by: by}
			// Permits do not expire by themselves: whoever asks next sweeps them.
			if cause == lapseOverwritten && c.facts.permits() > 0 && by != a.Client && a.LeaseEnd-t < int64(c.facts.History.Header.TTL)/ttlTolerance {
				l.cause, l.by = lapseExpired, ""
			}
			a.lapses = append(a.lapses, l)
		}
	}
	c.active[token] = kept
}

func causeOf(s *touch) string {
	switch {
	case s.Cmd == history.Expired:
		return lapseExpired
	case s.Client == "" || !s.sure:
		return lapseLost
	case s.Owner != "":
		return lapseOverwritten
	}
	return lapseDeleted
}

// homes notes on which key each acquisition's token was put.
func (f *Facts) homes() {
	for _, a := range f.Acquisitions {
		if a.Alias == "" {
			continue
		}
		for _, i := range f.keys.of(a.Client, a.InvokeIndex, a.DoneIndex) {
			if s := &f.keys.touches[i]; carries(s.Owner, a.Alias) {
				a.key = s.Key
			}
		}
		if a.within != nil {
			a.key = a.within.key
		}
		if a.Held() && a.key != "" {
			f.keys.homes[a.key] = true
		}
	}
}

// of are the steps of a client between two events.
func (k *keys) of(client string, from, to int) []int {
	steps := k.byClient[client]
	lo, _ := slices.BinarySearchFunc(steps, from, func(i, at int) int { return cmp.Compare(k.touches[i].index, at) })
	hi, _ := slices.BinarySearchFunc(steps, to, func(i, at int) int { return cmp.Compare(k.touches[i].index, at) })
	return steps[lo:max(lo, hi)]
}
