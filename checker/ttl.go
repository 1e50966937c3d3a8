package checker

import (
	"fmt"
	"slices"
	"time"
)

const ttlName = "ttl"

// Kinds of a TTL violation.
const (
	NoTTL    = "no-ttl"
	TooLong  = "too-long"
	TooShort = "too-short"
	Shrinks  = "shrinks"
	Gone     = "gone"
)

var ttlGravity = []string{NoTTL, Gone, TooLong, TooShort, Shrinks}

// ttlTolerance is how far a TTL may be from what was asked for, as a share:
// a twentieth leaves room for a lock that takes its own allowance off.
const ttlTolerance = 20

// timeToLive judges the PTTL that a client's command leaves on a lock's key: at
// most what was asked for, never none, never 0 or absent after a grant that was
// told ok, close to what was asked for, and the same after every renewal.
//
// A key without a TTL is a violation even if the next command sets one: who
// dies in between keeps the lock for ever. Commands of one transaction, which
// a server runs at one instant, are one.
//
//	0       SETNX, no TTL
//	0.001   c1 dies
//	        ... nobody is ever granted the lock again
//	never   PEXPIRE
//
// Where a fault had held a command up, its time under way may be what is missing,
// see [lengths.wait].
func timeToLive(f *Facts) Result {
	if why := f.untraced(); why != "" {
		return Result{Verdict: Unknown, Reason: why + ", so no TTL was seen"}
	}
	if f.permits() > 0 {
		return Result{Verdict: Unknown, Reason: "permits share a key, whose TTL is nobody's"}
	}
	r := Result{Verdict: Pass, Applies: true}
	t := &lengths{facts: f, first: map[string]int64{}}
	granted := map[string]*Acquisition{}
	for _, a := range f.Acquisitions {
		if a.Held() && a.Alias != "" && granted[a.Alias] == nil {
			granted[a.Alias] = a
		}
	}
	for i := range f.keys.touches {
		s := &f.keys.touches[i]
		if s.wrote() && f.keys.judged(s.place) && !isError(s.Reply) && !slices.Contains(reading, s.Cmd) {
			t.judged++
			t.judge(i, s, granted[s.Owner])
		}
	}
	for _, a := range f.Acquisitions {
		if a.Held() && a.Alias == "" {
			t.absent(a)
		}
	}
	r.Figures = map[string]float64{"judged": float64(t.judged), "violations": float64(len(t.found))}
	if t.judged == 0 {
		r.Verdict, r.Reason = Unknown, "no command set a TTL on a lock's key"
	}
	return r.with(t.found, ttlGravity)
}

type lengths struct {
	facts  *Facts
	judged int
	// first maps a token to the PTTL that its key was made with.
	first map[string]int64
	found []Found
}

func (t *lengths) judge(i int, s *touch, granted *Acquisition) {
	f := t.facts
	asked := f.History.Header.TTL.Milliseconds()
	off := max(asked/ttlTolerance, f.keys.noise)
	if s.made() {
		t.first[s.Owner] = s.PTTL
	}
	first, known := t.first[s.Owner]
	switch {
	case s.PTTL == -1:
		if !t.oneInstant(i, s) {
			t.add(NoTTL, s, "no TTL: if it dies now, nobody can take the lock again")
		}
	case s.PTTL > asked+f.keys.noise:
		t.add(TooLong, s, fmt.Sprintf("a TTL of %v, although %v was asked for", millis(s.PTTL), millis(asked)))
	case granted == nil:
	case t.wait(s, granted):
	case s.made() && s.PTTL < asked-off:
		t.add(TooShort, s, fmt.Sprintf("a TTL of %v, although %v was asked for: the lease ends before its time", millis(s.PTTL), millis(asked)))
	case !s.made() && known && first > 0 && s.PTTL < min(first, asked)-off && !t.givesBack(s, granted):
		t.add(Shrinks, s, fmt.Sprintf("a TTL of %v, although it was granted with %v: a renewal made the lease shorter", millis(s.PTTL), millis(first)))
	}
}

// wait says whether a TTL is short by the time for which a fault held its command
// up. An absolute end (PXAT, EXAT, PEXPIREAT), which a script may hide, is one TTL
// after the request was made, whenever it arrives:
//
//	3    c1 makes a renewal, "until 13", and is paused before it sends it
//	6    it goes on; the command leaves 7, and the lease is longer than before
//
// The request cannot have been made before the acquire, nor a renewal before the
// key's last end was set: a lease that became shorter became shorter.
func (t *lengths) wait(s *touch, a *Acquisition) bool {
	f := t.facts
	made := s.t - int64(millis(f.History.Header.TTL.Milliseconds()-s.PTTL))
	if made < a.Invoked || !s.made() && s.moved < 0 {
		return false
	}
	return slices.ContainsFunc(f.Faults, func(x Fault) bool {
		until := int64(never)
		if slices.Contains(standstill, x.Fault) { // at its end, a request goes on its way
			until = after(x.ends(), f.History.Header.TTL/ttlTolerance)
		}
		return x.Start <= s.t && x.ends() >= made && until >= s.t && (x.hits(s.Client, s.Node) || x.delaysRequest(s.Client, s.Node))
	})
}

func millis(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// givesBack says whether a client makes its own key's life shorter because it
// gives the lock back: a release may let the key run out at once.
//
//	0    c1 is granted the lock, TTL 10
//	3    c1 invokes its release
//	3.1  its script finds c1's token: PEXPIRE key 1
//
// Where all holders write one token the trace names the first of them, so nobody
// who took the lock under this token, or under none that is known, may still
// believe in it.
func (t *lengths) givesBack(s *touch, granted *Acquisition) bool {
	gave := false
	for _, a := range t.facts.Acquisitions {
		switch {
		case !a.Held() || a.Lock != granted.Lock || a.Alias != s.Owner && a.Alias != "" || a.InvokeIndex > s.index:
		case a.ReleaseIndex >= 0 && a.ReleaseIndex < s.index:
			gave = gave || a.Client == s.Client && a.Alias == s.Owner
		case a.BeliefEnd >= s.t:
			return false
		}
	}
	return gave
}

// oneInstant says whether the same client set a TTL on the same key in the
// same transaction: at the next command, with no time for a round trip.
func (t *lengths) oneInstant(i int, s *touch) bool {
	const instant = int64(50 * time.Microsecond)
	all := t.facts.keys.byPlace[s.place]
	n, _ := slices.BinarySearch(all, i)
	if n+1 >= len(all) {
		return false
	}
	next := &t.facts.keys.touches[all[n+1]]
	return next.Client == s.Client && next.t-s.t < instant && next.PTTL != -1
}

func (t *lengths) add(kind string, s *touch, what string) {
	f := t.facts
	t.found = append(t.found, Found{Kind: kind, Ops: []int{s.index}, suspects: f.active(s.t, s.t),
		Summary: fmt.Sprintf("the %s of %s at %s left its key on %s with %s.", s.Cmd, s.Client, f.at(s.t), s.Node, what)})
}

// absent takes a grant whose client had commands run on the lock's key, which
// was absent after the last of them on every node: a TTL of 0 deletes.
func (t *lengths) absent(a *Acquisition) {
	f := t.facts
	var last *touch
	for _, i := range f.keys.of(a.Client, a.InvokeIndex, a.DoneIndex) {
		s := &f.keys.touches[i]
		if isError(s.Reply) || slices.Contains(reading, s.Cmd) {
			continue
		}
		if s.Owner != "" {
			return
		}
		last = s
	}
	if last == nil {
		return
	}
	t.found = append(t.found, Found{Kind: Gone, Ops: []int{last.index, a.DoneIndex}, suspects: f.active(a.Invoked, a.Done),
		Summary: fmt.Sprintf("%s was told at %s that it holds %s, but right after its %s at %s the key was absent from %s: a TTL of nothing deletes.",
			a.Client, f.at(a.Done), f.theLock(a.Lock), last.Cmd, f.at(last.t), last.Node)})
}
