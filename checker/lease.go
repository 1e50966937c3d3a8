package checker

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

// unreachable is the code of a call of which the client knows that no request
// left, so that nothing can have changed on a server. Every other refusal was a
// server's answer.
const unreachable = "REDIS_CONNECTION"

// errorReplies are the codes of a server that answered with an error of its own:
// it did not look at who holds the lock, so it has not said "not you" either.
var errorReplies = []string{"OOM", "LUA_SCRIPT"}

// stampLag is how much earlier than its stamp plus the TTL a key may lawfully
// vanish on a real server. That Redis counts in whole milliseconds is no reason
// for it: a key is gone when the clock reads more than its end, so that it lives
// for the whole TTL and up to a millisecond longer.
//
//	0.9 ms    SET PX 10 runs; the clock reads 0, the key ends at 10
//	10.95 ms  the clock reads 10, which is not more: the key is there
//	11 ms     the key is gone, 10.1 ms after the SET
//
// But the server reads its clock once when it begins a command, or a whole
// script, and counts the end from there; what the trace has is a later reading.
// In the simulator the two are one.
const stampLag = time.Millisecond

// askedOf is the length of the lease that a lock can ask a server for: whole
// milliseconds. A run with a TTL of 1.5 ms promises 1 ms.
func askedOf(ttl time.Duration) time.Duration {
	if ttl < time.Millisecond {
		return ttl
	}
	return ttl.Truncate(time.Millisecond)
}

// extension is an extend that the service confirmed.
type extension struct {
	index         int
	invoked, done int64
}

// lease works out how long the service stood by its promise: from the grant
// to the first of release invoked and one TTL, less the lock's own drift
// allowance, after the last confirmed acquire or extend.
//
// An op is counted from its invoke: the server cannot have run it earlier.
// Where the server trace shows the command itself, its own time counts, since
// an acquire may have waited for long, and a lock that renews by itself shows
// its client's history no extends at all:
//
//	0    c1 invokes acquire and polls, c2 holds the lock
//	12   c1's SET runs: the lease runs to 12 + TTL, not to 0 + TTL
//	12.1 c1 hears of it
func (g *gatherer) lease(a *Acquisition) {
	f := g.facts
	l := &leaser{
		a: a, token: f.token, ttl: f.History.Header.TTL, quorum: f.quorum(),
		nodes: map[string]int64{}, from: a.Done,
	}
	l.length = askedOf(l.ttl) - time.Duration(float64(l.ttl)*f.History.Header.Drift)
	if f.slack() > 0 {
		l.lag = stampLag
	}
	a.LeaseStart, l.end = a.Invoked, after(a.Invoked, l.length)

	trace := g.trace[a.Client]
	lo := sort.SearchInts(trace, a.InvokeIndex)
	granted := max(lo, sort.SearchInts(trace, a.DoneIndex))
	a.Alias, l.key = g.alias(a, trace[lo:granted])
	if f.permits() > 0 {
		// A permit ends by a score that the trace does not show, and that may
		// come from the client's clock: it counts from the invoke.
		trace = trace[:lo]
		granted = lo
	}
	if a.Alias == "" {
		f.inherit(a)
	}
	for _, i := range trace[lo:granted] {
		l.command(i, &f.History.Events[i])
	}
	if at, ok := l.sealed(); ok {
		a.LeaseStart = max(a.LeaseStart, at)
	}
	a.Renewals = nil // what came before the grant is the grant

	extends := a.extends
	for _, i := range trace[granted:] {
		e := &f.History.Events[i]
		for len(extends) > 0 && extends[0].index < i {
			l.extend(extends[0])
			extends = extends[1:]
		}
		if a.ReleaseIndex >= 0 && i > a.ReleaseIndex || e.T > l.end && len(extends) == 0 {
			break
		}
		l.command(i, e)
	}
	for _, x := range extends {
		l.extend(x)
	}
	l.close()
}

// quorum is how many nodes have to carry a token.
func (f *Facts) quorum() int {
	if n := f.History.Header.Quorum; n > 0 {
		return n
	}
	if f.History.Header.Topology == "independent" {
		return f.History.Header.Nodes/2 + 1
	}
	return 1
}

// alias finds the token of an acquisition: the owner that the client's own
// commands left on the lock's key during its acquire, on most nodes. The last
// command on a node counts, since a refused attempt of another thread of the
// same client leaves that thread's token in view.
//
// Of a key that names several, such as the permits of a semaphore, it is the
// token that the command added. Readers that a key only counts have none: the
// count does not tell them apart.
func (g *gatherer) alias(a *Acquisition, trace []int) (alias, key string) {
	f := g.facts
	last, keys := map[string]string{}, map[string]string{}
	for _, i := range trace {
		s := f.History.Events[i].Server
		if len(f.Locks) > 1 && !strings.Contains(s.Key, a.Lock) || a.Mode == history.Reading && s.Value != "" {
			continue
		}
		owner := s.Owner
		if strings.Contains(owner, ",") {
			owner = ""
			for _, token := range g.joined[i] {
				if ownerOf(token) == a.Client {
					owner = token
				}
			}
		}
		if ownerOf(owner) == a.Client {
			token := f.token(owner)
			last[s.Node] = token
			keys[token] = s.Key
		}
	}
	count := map[string]int{}
	for _, owner := range last {
		count[owner]++
	}
	best := ""
	for owner, n := range count {
		if n > count[best] || n == count[best] && owner > best {
			best = owner
		}
	}
	return best, keys[best]
}

// inherit gives a re-entrant hold that put no token on a node the token of the
// hold that its client has already, its own or another thread's: a lock that
// counts in the client does not ask again.
func (f *Facts) inherit(a *Acquisition) {
	if !f.History.Header.Reentrant {
		return
	}
	for _, outer := range slices.Backward(f.Acquisitions) {
		if outer.InvokeIndex < a.InvokeIndex && outer.Client == a.Client && outer.Lock == a.Lock && outer.Held() &&
			outer.Alias != "" && outer.Done <= a.Done && a.Done < outer.BeliefEnd {
			a.Alias, a.within = outer.Alias, outer
			return
		}
	}
}

// leaser runs through the confirmations of one acquisition.
type leaser struct {
	a           *Acquisition
	token       func(owner string) string
	key         string // on which the token was granted: another key renews nothing
	ttl, length time.Duration
	lag         time.Duration
	quorum      int
	// nodes maps a node to the last time at which it set the token's expiry.
	nodes     map[string]int64
	from, end int64
	// broken is set once a lease had ended before it was confirmed again.
	broken bool
}

// reading are commands that cannot set an expiry, whatever they report: on a
// node whose clock jumped back, a GET shows a longer PTTL than before.
var reading = []string{"GET", "HGET", "HGETALL", "HEXISTS", "EXISTS", "PTTL", "TTL", "STRLEN", "TYPE", "WATCH"}

// command takes a command of the holder's client. It is a renewal if the key
// names the acquisition's token afterwards and has clearly more time to live
// than it would have had without: at least a twentieth of the TTL, so that a
// slow clock on the node does not look like a renewal.
func (l *leaser) command(i int, e *history.Event) {
	s := e.Server
	if l.a.Alias == "" || l.token(s.Owner) != l.a.Alias || s.Key != l.key || isError(s.Reply) || slices.Contains(reading, s.Cmd) {
		return
	}
	left := time.Duration(s.PTTL) * time.Millisecond
	if left <= l.ttl/2 || e.T > l.end && e.T > l.a.Done {
		return
	}
	if set, ok := l.nodes[s.Node]; ok && int64(left) <= after(set, l.ttl)-e.T+int64(l.ttl/20) {
		return
	}
	// A lock that sends an absolute expiry has used up its request's way to the
	// node: the key ends TTL after the request was made, not after it ran.
	set := e.T
	if short := l.ttl - left; short > 0 && short <= l.ttl/20 {
		set -= int64(short)
	}
	l.nodes[s.Node] = set
	l.a.Renewals = append(l.a.Renewals, i)
	if at, ok := l.sealed(); ok {
		l.end = max(l.end, after(at, max(0, l.length-l.lag)))
	}
}

// roundGap is the share of a TTL within which the votes of one round follow one
// another: an acquire or a renewal goes from node to node.
const roundGap = 10

// sealed is the time from which a quorum of nodes counts its TTL: with five
// nodes set at 1, 2, 3, 8 and 9, three of them carry the token until 3 + TTL.
//
// What was set in the same round counts from the round's first vote, as Redlock
// counts its validity: it promises to survive a minority that is lost.
//
//	0.000 to 0.004  c1 gets the votes of n1 to n5
//	3               n3 loses its data: four nodes carry the token
//	10.001          n2's key ends: two are left, before 0.002 + TTL, and rightly
func (l *leaser) sealed() (int64, bool) {
	if len(l.nodes) < l.quorum {
		return 0, false
	}
	set := make([]int64, 0, len(l.nodes))
	for _, t := range l.nodes {
		set = append(set, t)
	}
	slices.SortFunc(set, func(a, b int64) int { return cmp.Compare(b, a) })
	first := max(l.quorum, 1) - 1
	for first+1 < len(set) && set[first]-set[first+1] <= int64(l.ttl/roundGap) {
		first++
	}
	return set[first], true
}

// extend takes a confirmed extend. One that was invoked after the lease had
// ended promises nothing for the time between, in which another client may
// have held the lock lawfully; it starts a new lease.
func (l *leaser) extend(x extension) {
	if l.a.ReleaseIndex >= 0 && x.index > l.a.ReleaseIndex {
		return
	}
	until := after(x.invoked, l.length)
	if x.invoked <= l.end {
		l.end = max(l.end, until)
		return
	}
	l.close()
	l.from, l.end = x.done, until
}

// close writes down the lease up to its end or to the release.
func (l *leaser) close() {
	a, end := l.a, l.end
	if !l.broken {
		a.LeaseEnd = l.end
	}
	if a.ReleaseIndex >= 0 {
		end = min(end, a.ReleaseInvoked)
	}
	if !l.broken {
		a.GuaranteedEnd = end
	}
	if end > l.from {
		a.Guaranteed = append(a.Guaranteed, Interval{From: l.from, To: end})
	}
	l.broken = true
}

// isError tells an error reply from an answer: Redis begins errors with a
// word in capitals, such as READONLY.
func isError(reply string) bool {
	word, _, _ := strings.Cut(reply, " ")
	if word == "" || word == "OK" || word == "QUEUED" {
		return false
	}
	return strings.Trim(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
