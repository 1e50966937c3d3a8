package checker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

// active are the faults that were active at some moment of a stretch of time.
func (f *Facts) active(from, to int64) []*Fault {
	var out []*Fault
	for i := range f.Faults {
		if x := &f.Faults[i]; x.Start <= to && x.Stop >= from {
			out = append(out, x)
		}
	}
	return out
}

// blame are the faults that were active in a stretch of time that ended with a
// command, or else those that may have held it up.
func (f *Facts) blame(from, to int64) []*Fault {
	if faults := f.active(from, to); len(faults) > 0 {
		return faults
	}
	return f.active(min(from, to-longestWay*int64(f.History.Header.TTL)), to)
}

// blameSince are the faults that were active from the moment at which the first
// of some acquisitions (nil ones do not count) was granted on the server: a flush
// may strike between the command that was granted and its reply.
//
//	0      c1's script runs, token 1
//	0.001  the node loses all keys
//	0.002  c1 hears that it holds the lock: no fault is active from here on
//	0.2    c2 is granted the lock, token 1 again
//
// If there was none, they are those during its whole acquire, and then those that
// may have held up a command of an earlier one.
func (f *Facts) blameSince(to int64, acqs ...*Acquisition) []*Fault {
	granted, asked := to, to
	for _, a := range acqs {
		if a == nil {
			continue
		}
		asked = min(asked, a.Invoked)
		if a.Alias != "" {
			granted = min(granted, a.LeaseStart)
		} else {
			granted = min(granted, a.Done)
		}
	}
	if faults := f.active(granted, to); len(faults) > 0 {
		return faults
	}
	return f.blame(asked, min(granted, to))
}

// leftBehind are the kinds of violations that any earlier fault may have led to,
// by the state that it left behind.
var leftBehind = []string{NoGrant, ShutOut, NoTTLKey}

// attribute puts a violation's suspects into words: those that were active, or
// else those that were over before its first op and may be its cause all the
// same. Others are not named:
//
//	0.5   the partition begins
//	20.5  it is healed
//	55    c1 outlives a lease that it was granted at 40: no fault was active, and
//	      no request that the partition may have held up has to do with it
func (f *Facts) attribute(v *Found) {
	first := f.beginning(v)
	var active, earlier []*Fault
	for _, x := range v.suspects {
		switch {
		case x.ends() >= first:
			active = append(active, x)
		case slices.Contains(leftBehind, v.Kind), v.Kind != Overrun && x.ends() >= first-x.holds(f.History.Header.TTL) && f.heldUpFor(x, v):
			earlier = append(earlier, x)
		}
	}
	v.Fault = inWords(active)
	if len(active) == 0 {
		v.Earlier = inWords(earlier)
	}
}

// beginning is when a violation's first op began: an acquisition with its grant
// on the server, or with its invoke where the invoke is listed or the trace does
// not show the grant.
func (f *Facts) beginning(v *Found) int64 {
	first := int64(never)
	for _, i := range v.Ops {
		e := &f.History.Events[i]
		acq, t := 0, e.T
		switch {
		case e.Op != nil:
			acq = e.Op.Acq
		case e.Resource != nil:
			acq = e.Resource.Acq
		}
		if a := f.ByAcq[acq]; a != nil {
			t = min(t, a.Invoked)
			if a.Held() && a.Alias != "" && i != a.InvokeIndex {
				t = a.LeaseStart
			}
		}
		first = min(first, t)
	}
	return first
}

// holds is for how long after its end a fault may still deliver a request that it
// held up. What stood still goes on at once, give or take a retransmission; a slow
// link takes the time that it takes.
func (x *Fault) holds(ttl time.Duration) int64 {
	switch x.Fault {
	case "delay", "strike":
		return longestWay * int64(ttl)
	case "pause", "stall", "cut", "partition":
		return int64(ttl) / roundGap
	}
	return 0
}

// heldUpFor says whether a fault may have held up a request of a client that has
// a part in a violation.
func (f *Facts) heldUpFor(x *Fault, v *Found) bool {
	nodes := []string{"resource"}
	for _, p := range f.keys.places {
		nodes = append(nodes, p.node)
	}
	return slices.ContainsFunc(v.Ops, func(i int) bool {
		client := clientOf(&f.History.Events[i])
		return client != "" && slices.ContainsFunc(nodes, func(node string) bool {
			return x.holds(f.History.Header.TTL) > 0 && (x.hits(client, node) || x.delaysRequest(client, node))
		})
	})
}

func clientOf(e *history.Event) string {
	switch {
	case e.Op != nil:
		return e.Op.Client
	case e.Server != nil:
		return e.Server.Client
	case e.Resource != nil:
		return e.Resource.Client
	}
	return ""
}

// mostFaults is how many faults a sentence names.
const mostFaults = 3

func inWords(faults []*Fault) string {
	var words []string
	for i, x := range faults {
		if i == mostFaults {
			words = append(words, fmt.Sprintf("and %d more", len(faults)-i))
			break
		}
		words = append(words, x.words)
	}
	return strings.Join(words, "; ")
}
