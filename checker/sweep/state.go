package sweep

import (
	"encoding/binary"
	"slices"
)

// state is one way in which the calls so far can have gone. All lists are sorted,
// and never changed but replaced, since states share them.
type state struct {
	// active are the candidates that hold.
	active []int32
	// early are the holds granted although their acquire has not returned.
	early []int32
	// explained are the refusals explained although they have not returned.
	explained []int32
	// spent are the acquires without an answer that took effect, except for
	// those of a pool that may end by now: of these, used counts.
	spent []int32
	used  []int32
	// fence is the last one, and open says that its nest goes on.
	fence uint64
	open  bool
}

func with(list []int32, x int32) []int32 {
	at, _ := slices.BinarySearch(list, x)
	out := make([]int32, 0, len(list)+1)
	return append(append(append(out, list[:at]...), x), list[at:]...)
}

// without drops one x from the list, which need not hold it.
func without(list []int32, x int32) []int32 {
	at, found := slices.BinarySearch(list, x)
	if !found {
		return list
	}
	out := make([]int32, 0, len(list)-1)
	return append(append(out, list[:at]...), list[at+1:]...)
}

func has(list []int32, x int32) bool {
	_, found := slices.BinarySearch(list, x)
	return found
}

// key is equal for states that differ only in what makes one better.
func (s *state) key() string {
	b := make([]byte, 0, 4*(len(s.active)+len(s.early)+1)+8)
	b = binary.LittleEndian.AppendUint64(b, s.fence)
	if s.open {
		b = append(b, 1)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(s.active)))
	for _, list := range [][]int32{s.active, s.early} {
		for _, x := range list {
			b = binary.LittleEndian.AppendUint32(b, uint32(x))
		}
	}
	return string(b)
}

// covers says that s, with the same key, can do whatever o can: it explained at
// least as much and used up no more.
func (s *state) covers(o *state) bool {
	for i, n := range s.used {
		if n > 0 && (i >= len(o.used) || n > o.used[i]) {
			return false
		}
	}
	return subset(s.spent, o.spent) && subset(o.explained, s.explained)
}

func subset(a, b []int32) bool {
	return !slices.ContainsFunc(a, func(x int32) bool { return !has(b, x) })
}

// use counts one more of a pool.
func (s *state) use(pool int32) {
	used := make([]int32, max(len(s.used), int(pool)+1))
	copy(used, s.used)
	used[pool]++
	s.used = used
}

// ripen makes a spent acquire one of those that may end.
func (s *state) ripen(f *frontier, cand, standIn int32) *state {
	n := *s
	n.spent = without(s.spent, f.cands[cand].hold)
	n.use(f.cands[cand].pool)
	if has(s.active, cand) {
		n.active = with(without(s.active, cand), standIn)
	}
	return &n
}

// perState is what it costs to go on from a state, in comparisons of two.
const perState = 16

// alike says that two states have the same key.
func (s *state) alike(o *state) bool {
	return s.fence == o.fence && s.open == o.open && slices.Equal(s.active, o.active) && slices.Equal(s.early, o.early)
}

// collection keeps states that no other one covers.
type collection struct {
	all []*state
	// dropped were in it until another one covered them.
	dropped []*state
	// byKey finds states with the same key, once there are more than a few.
	byKey map[string][]int
	// steps counts comparisons, which are what many states cost.
	steps int
}

// few states are quicker to compare one by one than to look up.
const few = 16

// add says whether the state was new.
func (c *collection) add(s *state) bool {
	c.steps++
	var among []int
	k := ""
	if c.byKey != nil {
		k = s.key()
		among = c.byKey[k]
	} else {
		for i, o := range c.all {
			if o.alike(s) {
				among = append(among, i)
			}
		}
	}
	for _, i := range among {
		c.steps++
		if c.all[i].covers(s) {
			return false
		}
	}
	for _, i := range among {
		if s.covers(c.all[i]) {
			c.dropped = append(c.dropped, c.all[i])
			c.all[i] = s
			return true
		}
	}
	c.all = append(c.all, s)
	switch {
	case c.byKey != nil:
		c.byKey[k] = append(among, len(c.all)-1)
	case len(c.all) > few:
		c.byKey = map[string][]int{}
		for i, o := range c.all {
			k := o.key()
			c.byKey[k] = append(c.byKey[k], i)
		}
	}
	return true
}
