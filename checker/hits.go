package checker

import (
	"slices"
	"sort"
	"strings"
)

// standstill are the faults that keep a node from running commands, or a
// client from sending them.
var standstill = []string{"stall", "kill", "error-reply", "pause", "crash"}

// hits says whether a fault keeps a client and a node from talking: the client
// is stopped, the node runs nothing, or a link between them is cut or slow. What
// happens to a single command does not: the next request gets through.
func (x *Fault) hits(client, node string) bool {
	switch {
	case x.Fault == "failover":
		return len(x.On) > 0 && x.On[0] == node
	case slices.Contains(standstill, x.Fault):
		return slices.Contains(x.On, client) || slices.Contains(x.On, node)
	case x.Fault == "lose-reply" || x.Fault == "strike":
		return false
	}
	return slices.Contains(x.On, client+"->"+node) || slices.Contains(x.On, node+"->"+client)
}

// ends is when a fault was over. What has died stays dead: a crash, and the
// primary that a failover has killed.
func (x *Fault) ends() int64 {
	if x.StopIndex < 0 && (x.Fault == "crash" || x.Fault == "failover") {
		return never
	}
	return x.Stop
}

// hindered names the fault that kept a client and a node from talking at some
// moment of a stretch of time.
func (f *Facts) hindered(client, node string, from, to int64) (*Fault, bool) {
	for i := range f.Faults {
		x := &f.Faults[i]
		if x.Start <= to && x.ends() >= from && x.hits(client, node) {
			return x, true
		}
	}
	return nil, false
}

// longestWay is for how many TTLs a request may be under way: a link that is
// slower by a TTL or two, or a node that stands still with requests in its
// queue, delivers them long after the fault has been healed.
const longestWay = 3

// heldUp says whether a command that a node ran at a time may be one that a
// fault had held up. Then its sender may have been done with it long ago.
func (f *Facts) heldUp(client, node string, t int64) bool {
	return f.heldUpIn(client, node, t-longestWay*int64(f.History.Header.TTL), t)
}

// heldUpIn says whether a command that was sent in a stretch of time may have
// been held up.
func (f *Facts) heldUpIn(client, node string, from, to int64) bool {
	_, hindered := f.hindered(client, node, from, to)
	return hindered || slices.ContainsFunc(f.Faults, func(x Fault) bool {
		return x.Start <= to && x.ends() >= from && x.delaysRequest(client, node)
	})
}

// delaysRequest says whether a strike on a single command may deliver it late.
// One that loses the command, or its reply, and one that delays the reply do
// not.
func (x *Fault) delaysRequest(client, node string) bool {
	return x.Fault == "strike" && slices.Contains(x.On, client+"->"+node) &&
		!strings.HasPrefix(x.What, "the reply") && !strings.HasSuffix(x.What, "is lost")
}

// paused is for how long a client stood still around a stretch of time. A
// pause counts with its whole length if it touches the stretch: a client that
// is stopped just before its call begins has had its deadline set already.
func (f *Facts) paused(client string, from, to int64) int64 {
	var sum int64
	for i := range f.Faults {
		x := &f.Faults[i]
		if x.Fault == "pause" && slices.Contains(x.On, client) && x.Start <= to && x.Stop >= from {
			sum += x.Stop - x.Start
		}
	}
	return sum
}

// slack is how far times in the history may be off. In the simulator they are
// exact. On real machines the server's clock is read from its own stamps, and
// a loaded machine is late with everything.
func (f *Facts) slack() int64 {
	if f.History.Header.World == "sim" || f.History.Header.World == "" {
		return 0
	}
	return int64(f.History.Header.TTL) / 20
}

// soon is the index of the first event that certainly came after another one.
func (f *Facts) soon(index int) int {
	slack := f.slack()
	if slack == 0 || index < 0 || index >= len(f.History.Events) {
		return index
	}
	limit := f.History.Events[index].T + slack
	return sort.Search(len(f.History.Events), func(i int) bool { return f.History.Events[i].T > limit })
}
