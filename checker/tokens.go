package checker

import (
	"sort"
	"strings"
)

// followTokens finds locks that change their token with every renewal, and lets
// all tokens of one hold count as the first. A token follows another if a
// command of the client replaces the one by the other, on a key that named the
// first, while the client holds the lock and asks for no other:
//
//	0    c1's SET leaves c1#1, TTL 10; c1 is granted the lock
//	3    c1's script finds c1#1 and leaves c1#2, TTL 10: the same hold goes on
//	13   c1#2 ends, and c1's lease with it
//
// A token that has been seen before follows none: an old request brought it back.
func (f *Facts) followTokens() {
	f.follows = map[string]string{}
	seen := map[string]bool{}
	owners := map[place]string{}
	byClient := map[string][]*Acquisition{}
	for _, a := range f.Acquisitions {
		byClient[a.Client] = append(byClient[a.Client], a)
	}
	for i := range f.History.Events {
		e := &f.History.Events[i]
		s := e.Server
		if s == nil {
			continue
		}
		p := place{s.Node, s.Key}
		was := owners[p]
		owners[p] = s.Owner
		if s.PTTL == -2 {
			owners[p] = ""
		}
		fresh := s.Owner != "" && !seen[s.Owner]
		seen[s.Owner] = true
		if was == s.Owner || was == "" || strings.Contains(was+s.Owner, ",") || isError(s.Reply) {
			continue
		}
		if _, ok := f.follows[s.Owner]; !ok && !fresh {
			continue
		}
		if s.Client != "" && ownerOf(was) == s.Client && ownerOf(s.Owner) == s.Client && holdsOnly(byClient[s.Client], e.T) && f.token(was) != s.Owner {
			f.follows[s.Owner] = f.token(was)
		}
	}
}

// token is the token of a hold, whichever of its tokens a key names.
func (f *Facts) token(owner string) string {
	if first, ok := f.follows[owner]; ok {
		return first
	}
	return owner
}

// holdsOnly says whether a client holds a lock at a time and has no acquire
// under way. Its acquisitions are in the order of their invokes.
func holdsOnly(all []*Acquisition, t int64) bool {
	n := sort.Search(len(all), func(i int) bool { return all[i].Invoked > t })
	holds := false
	for i := n - 1; i >= max(0, n-mostThreads); i-- {
		a := all[i]
		switch {
		case a.Pending() || a.Done >= t:
			return false
		case a.Held() && (a.ReleaseIndex < 0 || a.ReleaseInvoked > t):
			holds = true
		}
	}
	return holds
}
