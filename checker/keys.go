package checker

import (
	"slices"
	"sort"
	"strings"

	"github.com/holdfast-io/holdfast/history"
)

// place is one key on one node.
type place struct{ node, key string }

// touch is what one server event did to a place.
type touch struct {
	index int
	t     int64
	*history.Server
	place
	// before is who the key named before the event, empty where it was absent.
	before string
	// maker is the client that made the key which was there before: the one
	// that wrote its token first, unless several clients write the same. Empty
	// where nobody saw it being made.
	maker string
	// written is when a client last made the key, or set its time to live,
	// before the event.
	written int64
	// sure is false where the trace may have missed something before the
	// event, as around the restart of a real server. What the event changed is
	// not known then: it counts as if it had found what it left.
	sure bool
	// moved says that the key's time to live is not what the event before
	// left of it, in milliseconds by the node's own clock: 0 where it is.
	// A key that was made, or that is gone, has not moved.
	moved int64
}

// change says whether the event changed who owns the key, or until when.
func (s *touch) change() bool { return s.before != s.Owner || s.moved != 0 }

// made says whether the event made the key, or gave it to another owner.
func (s *touch) made() bool { return s.Owner != "" && s.before != s.Owner }

// wrote says whether a client's command made the key, or set its time to live
// anew, for the one who owns it now.
func (s *touch) wrote() bool { return s.Client != "" && s.Owner != "" && s.change() }

// keys is the server trace, key by key: what was there before and after every
// command. Counters, such as fences, have no owner and are left out.
type keys struct {
	touches []touch
	// places in the order of first use.
	places []place
	// byPlace and byClient are indices into touches.
	byPlace  map[place][]int
	byClient map[string][]int
	// several marks places that name several owners at once, such as a queue
	// or the permits of a semaphore, or that only count them. Who may change those is not told by the
	// owner alone.
	several map[place]bool
	// homes are the keys on which grants put their tokens. Others, such as the
	// queue of a fair lock, name clients as well, and have rules of their own.
	homes map[string]bool
	// anonymous commands came from nobody the trace knows by name.
	anonymous int
	// noise is how far two readings of one expiry may lie apart, in
	// milliseconds.
	noise int64
}

// judged says whether a place's owner holds the lock: it is no such key if
// grants put their tokens elsewhere, or if it names several at once.
func (k *keys) judged(p place) bool {
	return !k.several[p] && (len(k.homes) == 0 || k.homes[p.key])
}

// pseudo are the events of the trace that are no client's command.
var pseudo = []string{history.Expired, history.Lostkeys, history.Promoted, history.Moved, history.Left}

// noise: each reading is rounded to a millisecond. On a real server the node's
// clock is worked out by a process that may be kept waiting between two looks
// at two clocks; nothing a lock does moves an expiry by less than a tenth of
// its TTL.
func (f *Facts) noise() int64 {
	if f.slack() == 0 {
		return 2
	}
	return max(2, f.History.Header.TTL.Milliseconds()/10)
}

// trackKeys reads the server trace once.
func (f *Facts) trackKeys() *keys {
	k := &keys{noise: f.noise(), byPlace: map[place][]int{}, byClient: map[string][]int{}, several: map[place]bool{}, homes: map[string]bool{}}
	owned, counter := map[place]bool{}, map[place]bool{}
	for i := range f.History.Events {
		if s := f.History.Events[i].Server; s != nil {
			p := place{s.Node, s.Key}
			owned[p] = owned[p] || s.Owner != ""
			counter[p] = counter[p] || s.Value != ""
		}
	}
	for i := range f.History.Events {
		e := &f.History.Events[i]
		if s := e.Server; s != nil && (owned[place{s.Node, s.Key}] || !counter[place{s.Node, s.Key}]) {
			k.add(f, i, e.T, s)
		}
	}
	return k
}

func (k *keys) add(f *Facts, i int, t int64, s *history.Server) {
	if s.PTTL == -2 && s.Owner != "" { // an expiry that still names who it took the key from
		gone := *s
		gone.Owner = ""
		s = &gone
	}
	if first := f.token(s.Owner); first != s.Owner {
		same := *s
		same.Owner = first
		s = &same
	}
	p := place{s.Node, s.Key}
	n := touch{index: i, t: t, Server: s, place: p, sure: true}
	if steps := k.byPlace[p]; len(steps) > 0 {
		last := &k.touches[steps[len(steps)-1]]
		if s.Cmd == history.Expired {
			last.expiredUnder()
		}
		n.after(last, k.noise)
		n.inherit(last)
		if f.slack() > 0 && f.restarted(s.Node, last.t, t) {
			n.sure, n.before, n.moved = false, s.Owner, 0
		}
	} else {
		k.places = append(k.places, p)
	}
	at := len(k.touches)
	k.touches = append(k.touches, n)
	k.byPlace[p] = append(k.byPlace[p], at)
	if s.Client != "" {
		k.byClient[s.Client] = append(k.byClient[s.Client], at)
	} else if !slices.Contains(pseudo, s.Cmd) {
		k.anonymous++
	}
	counted := f.History.Header.Kind == history.KindRW && s.Value != "" // readers without names
	if strings.Contains(s.Owner, ",") || counted {
		k.several[p] = true
	}
}

// after fills in what the key was before, from the event before on the same
// place. Redis keeps the moment at which a key ends by its own wall clock, so
// that moment is what is compared: a clock that jumps moves no expiry.
func (s *touch) after(last *touch, noise int64) {
	s.before = last.Owner
	if last.PTTL < 0 {
		if s.Owner == last.Owner && s.PTTL >= 0 && s.Owner != "" {
			s.moved = s.PTTL // it had no expiry and has one now
		}
		return
	}
	was, now := last.Clock/1e6+last.PTTL, s.Clock/1e6
	if now > was+noise && s.Cmd != history.Expired && s.Client != "" {
		s.before = "" // nobody had looked at it since its time was up
		return
	}
	switch {
	case s.Owner != last.Owner || s.PTTL == -2:
	case s.PTTL == -1:
		s.moved = never
	case now+s.PTTL-was > noise || was-(now+s.PTTL) > noise:
		s.moved = now + s.PTTL - was
	}
}

// expiredUnder corrects a command that seems to have deleted a key which, as the
// next event says, expired. A deleted key cannot expire: a real server's trace
// tells a script's effect when the script is over, and the key's time may have
// been up by then.
//
//	0.95  the trace sees c3's script begin
//	1.00  c1's key expires; the script is reported now, and finds it absent
//	1.01  the expiry is reported
func (s *touch) expiredUnder() {
	if s.Owner == "" && s.Client != "" && s.before != "" {
		before := *s.Server
		before.Owner, before.PTTL = s.before, 0
		s.Server = &before
	}
}

// inherit takes over who made the key, and when it was last written.
func (s *touch) inherit(last *touch) {
	s.maker, s.written = last.maker, last.written
	if last.wrote() {
		s.written = last.t
	}
	switch {
	case !last.sure:
		s.maker = "" // made unseen
	case last.made():
		if s.maker = last.Client; s.maker == "" {
			s.maker = ownerOf(last.Owner)
		}
	}
}

// restarted says whether a node died or came back in a stretch of time.
func (f *Facts) restarted(node string, from, to int64) bool {
	for _, x := range f.Faults {
		died := x.Fault == "kill" && slices.Contains(x.On, node) || x.Fault == "failover" && len(x.On) > 0 && x.On[0] == node
		if died && x.Start <= to && from <= x.Stop {
			return true
		}
	}
	return false
}

// first is the first step at an event or after it.
func (k *keys) first(index int) int {
	return sort.Search(len(k.touches), func(i int) bool { return k.touches[i].index >= index })
}

// ownerOf is the client that wrote a token first: c1 for c1#2.
func ownerOf(token string) string {
	client, _, _ := strings.Cut(token, "#")
	return client
}

// carries says whether a key's owners include a token.
func carries(owners, token string) bool {
	return owners == token || strings.Contains(","+owners+",", ","+token+",")
}

// mutual says why the ownership of keys tells nothing about a lock: several
// holders at once share a key, so that it names none of them alone.
func (f *Facts) mutual() string {
	if f.permits() > 0 {
		return "the lock has several holders at once, and its keys do not tell them apart"
	}
	return ""
}

// untraced says why the server trace cannot tell who did what; empty where it
// can.
func (f *Facts) untraced() string {
	switch {
	case len(f.keys.touches) == 0 && !f.traced:
		return "the history has no server trace"
	case f.keys.anonymous > 0 && len(f.keys.byClient) == 0:
		return "the server trace does not say which client sent a command"
	}
	return ""
}
