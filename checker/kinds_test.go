package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

// as makes the acquires among some events those of a mode.
func as(mode string, events ...history.Event) []history.Event {
	for _, e := range events {
		if e.Op != nil && e.Op.F == history.Acquire {
			e.Op.Mode = mode
		}
	}
	return events
}

// by makes some events those of a client's thread.
func by(thread int, events ...history.Event) []history.Event {
	for _, e := range events {
		if e.Op != nil {
			e.Op.Thread = thread
		}
	}
	return events
}

// kept is a key of another name than the lock's own.
func kept(key, value string, e history.Event) history.Event {
	e.Server.Key, e.Server.Value = key, value
	return e
}

// look is a reader's read as it arrived at the resource.
func look(t float64, client string, acq int, version int64) history.Event {
	return history.Event{T: ns(t), Resource: &history.Resource{Client: client, Acq: acq, F: history.Read, Version: version, Before: version, Applied: true}}
}

func over(t float64, who string, acq int) []history.Event {
	return []history.Event{invoke(t, who, history.Release, acq), ok(t+0.1, who, history.Release, acq)}
}

func TestExclusionByKind(t *testing.T) {
	const acquire, release = history.Acquire, history.Release
	read := func(t float64, who string, acq int) []history.Event {
		return as(history.Reading, grant(t, who, acq)...)
	}
	write := func(t float64, who string, acq int) []history.Event {
		return as(history.Writing, grant(t, who, acq)...)
	}
	worked := note(30, "c9", history.Crash, 0) // lets time go on
	try(t, exclusionName, []trial{
		{name: "readers beside readers", want: Pass, history: with(story(join(read(1, "c1", 1), read(2, "c2", 2), over(5, "c1", 1), over(5.2, "c2", 2), write(6, "c3", 3))...), readersAndWriters)},
		{name: "a writer beside a reader", want: Violation, kind: Broken, ops: []int{1, 3}, summary: []string{"c3 was granted the lock at 3.00s while c1 still believed it held it"},
			history: with(story(join(read(1, "c1", 1), write(3, "c3", 3), note(4, "c3", history.Worked, 3))...), readersAndWriters)},
		{name: "a reader beside a writer", want: Violation, kind: Broken, ops: []int{1, 3},
			history: with(story(join(write(1, "c1", 1), read(3, "c3", 3), note(4, "c3", history.Worked, 3))...), readersAndWriters)},
		{name: "the reader outlived its lease", want: Violation, kind: Overrun, ops: []int{1, 3, 4}, summary: []string{"c1 outlived its lease by"},
			history: with(story(join(read(1, "c1", 1), write(12, "c3", 3), invoke(13, "c1", release, 1))...), readersAndWriters)},
		{name: "no mode is a writer's", want: Violation, kind: Broken, ops: []int{1, 3},
			history: with(story(join(grant(1, "c1", 1), read(3, "c3", 3), note(4, "c3", history.Worked, 3))...), readersAndWriters)},
		{name: "a mutex knows no readers", want: Violation, kind: Broken, ops: []int{1, 3},
			history: story(join(read(1, "c1", 1), read(3, "c3", 3), note(4, "c3", history.Worked, 3))...)},

		{name: "as many as there are permits", want: Pass, history: with(story(join(grant(1, "c1", 1), grant(2, "c2", 2), over(5, "c1", 1), grant(6, "c3", 3), note(7, "c2", history.Worked, 2))...), permits(2))},
		{name: "one more", want: Violation, kind: Broken, ops: []int{1, 3, 5},
			summary: []string{"at 3.00s 3 believed that they hold one of the 2 permits of the lock, c1 (granted at 1.00s), c2 (granted at 2.00s) and c3 (granted at 3.00s), although the lease of each was guaranteed"},
			history: with(story(join(grant(1, "c1", 1), grant(2, "c2", 2), grant(3, "c3", 3), note(4, "c3", history.Worked, 3))...), permits(2))},
		{name: "one outlived its lease", want: Violation, kind: Overrun, ops: []int{1, 3, 5, 6}, summary: []string{"and c1, whose lease had ended at 10.90s, outlived it by"},
			history: with(story(join(grant(1, "c1", 1), grant(8, "c2", 2), grant(12, "c3", 3), invoke(14, "c1", release, 1))...), permits(2))},
		{name: "told once for each grant too many", want: Violation, kind: Broken, ops: []int{1, 3, 5}, count: 2,
			history: with(story(join(grant(1, "c1", 1), grant(2, "c2", 2), grant(3, "c3", 3), grant(4, "c4", 4), note(5, "c3", history.Worked, 3))...), permits(2))},
		{name: "three leases, but never three at once", want: Violation, kind: Overrun, ops: []int{1, 3, 5, 6},
			history: with(story(join(grant(1, "c1", 1), grant(9, "c2", 2), grant(11, "c3", 3), invoke(11.2, "c1", release, 1), note(15, "c3", history.Worked, 3))...), permits(2))},

		{name: "a thread takes its lock again", want: Pass, history: with(story(join(grant(1, "c1", 1), grant(2, "c1", 2), over(3, "c1", 2), over(4, "c1", 1), grant(5, "c2", 3))...), reentrant)},
		{name: "the inner release let go of everything", want: Violation, kind: Broken, ops: []int{1, 7}, summary: []string{"c2 was granted the lock at 3.50s while c1 still believed it held it (granted at 1.00s)"},
			history: with(story(join(grant(1, "c1", 1), grant(2, "c1", 2), over(3, "c1", 2), grant(3.5, "c2", 3), worked)...), reentrant)},
		{name: "another thread of the client is another", want: Violation, kind: Broken, ops: []int{1, 3},
			history: with(story(join(grant(1, "c1/1", 1), by(1, grant(2, "c1/4", 2)...), by(1, note(3, "c1/4", history.Worked, 2)))...), reentrant)},
		{name: "not promised", want: Violation, kind: Broken, ops: []int{1, 3}, history: story(join(grant(1, "c1", 1), grant(2, "c1", 2), note(3, "c1", history.Worked, 2))...)},
		{name: "nobody was granted anything", want: Unknown, reason: "no acquire succeeded", history: with(story(invoke(1, "c1", acquire, 1)), permits(2))},
	})
}

func TestLinearizabilityByKind(t *testing.T) {
	const acquire, release = history.Acquire, history.Release
	fenced := func(t float64, who string, acq int, n uint64) []history.Event {
		events := grant(t, who, acq)
		events[1] = fence(events[1], n)
		return events
	}
	refusedAt := func(t float64, who string, acq int) []history.Event {
		return []history.Event{invoke(t, who, acquire, acq), code(fail(t+0.5, who, acquire, acq), notObtained)}
	}
	try(t, linearizabilityName, []trial{
		{name: "readers share", want: Pass, history: with(story(as(history.Reading, join(grant(1, "c1", 1), grant(2, "c2", 2))...)...), readersAndWriters)},
		{name: "a writer does not", want: Violation, kind: NotLinearizable, ops: []int{0, 1, 2, 3}, summary: []string{"c2 was granted the lock at 2.00s, when c1 held it since 1.00s"},
			history: with(story(join(as(history.Reading, grant(1, "c1", 1)...), as(history.Writing, grant(2, "c2", 2)...))...), readersAndWriters)},
		{name: "two permits", want: Pass, history: with(story(join(grant(1, "c1", 1), grant(2, "c2", 2))...), permits(2))},
		{name: "and a third holder", want: Violation, kind: NotLinearizable, ops: []int{0, 1, 2, 3, 4, 5}, summary: []string{"c3 was granted a permit of the lock at 3.00s, and no order of the calls leaves one of the 2 free"},
			history: with(story(join(grant(1, "c1", 1), grant(2, "c2", 2), grant(3, "c3", 3))...), permits(2))},
		{name: "re-entered", want: Pass, history: with(story(join(grant(1, "c1", 1), grant(2, "c1", 2), over(3, "c1", 2), over(4, "c1", 1), grant(5, "c2", 3))...), reentrant)},
		{name: "let in beside the outer hold", want: Violation, kind: NotLinearizable, ops: []int{0, 1, 6, 7},
			history: with(story(join(grant(1, "c1", 1), grant(2, "c1", 2), over(3, "c1", 2), grant(3.5, "c2", 3))...), reentrant)},
		{name: "fences that rise", want: Pass, history: able(story(join(fenced(1, "c1", 1, 7), over(2, "c1", 1), fenced(3, "c2", 2, 9))...), "fence")},
		{name: "fences that fall", want: Violation, kind: NotLinearizable, ops: []int{0, 1, 4, 5}, summary: []string{"the fencing tokens of the lock rise in no order of the calls that explains the answers: c1 9 (asked at 0.90s), c2 7 (asked at 2.90s)"},
			history: able(story(join(fenced(1, "c1", 1, 9), over(2, "c1", 1), fenced(3, "c2", 2, 7))...), "fence")},

		{name: "refused while another holds", want: Pass, history: story(join(grant(1, "c1", 1), refusedAt(2, "c2", 2), over(3, "c1", 1))...)},
		{name: "refused by nobody", want: Violation, kind: RefusedFree, ops: []int{4, 5}, summary: []string{"c2 asked for the lock at 4.00s and was refused at 4.50s, but nobody can have held it"},
			history: story(join(grant(1, "c1", 1), over(2, "c1", 1), refusedAt(4, "c2", 2))...)},
		{name: "an acquire without an answer may be in the way", want: Pass, history: story(join(invoke(1, "c1", acquire, 1), info(2, "c1", acquire, 1), refusedAt(4, "c2", 2), grant(20, "c3", 3))...)},
		{name: "a key may outlast its lease", want: Pass, history: story(join(grant(1, "c1", 1), refusedAt(14, "c2", 2))...)},
		{name: "after a fault a refusal may meet what the fault left", want: Pass,
			history: story(join(grant(1, "c1", 1), over(2, "c1", 1), hit(3, 1, history.Start, "lose-reply", "c3"), hit(3, 1, history.Stop, "lose-reply", "c3"), refusedAt(4, "c2", 2))...)},
		{name: "votes may split", want: Pass, history: with(story(join(grant(1, "c1", 1), over(2, "c1", 1), refusedAt(4, "c2", 2))...), func(h *history.Header) { h.Topology, h.Nodes = "independent", 3 })},
		{name: "a writer's key turns readers away", want: Pass, history: with(story(join(grant(1, "c1", 1), over(2, "c1", 1), refusedAt(4, "c2", 2))...), readersAndWriters)},
		{name: "another error is no refusal", want: Pass, history: story(join(grant(1, "c1", 1), over(2, "c1", 1), invoke(4, "c2", acquire, 2), code(fail(4.5, "c2", acquire, 2), "OOM"))...)},
		{name: "a permit was free", want: Violation, kind: RefusedFree, ops: []int{2, 3}, history: with(story(join(grant(1, "c1", 1), refusedAt(2, "c2", 2))...), permits(2))},
		{name: "its own holder was refused", want: Violation, kind: RefusedFree, ops: []int{1, 2, 3}, summary: []string{"c1 asked at 2.00s for the lock, which it held since 1.00s and which promises to be re-entrant, and was refused at 2.50s"},
			history: with(story(join(grant(1, "c1", 1), refusedAt(2, "c1", 2), invoke(3, "c1", release, 1))...), reentrant)},
	})
}

func TestReadersSeeOneVersion(t *testing.T) {
	held := join(as(history.Reading, grant(1, "c1", 1)...), as(history.Writing, grant(2, "c2", 2)...)) // events 0 to 3
	try(t, updatesName, []trial{
		{name: "the same version twice", want: Pass, history: with(story(join(held, look(2, "c1", 1, 0), look(3, "c1", 1, 0), arrive(4, "c2", 2, 0, 0, true))...), readersAndWriters)},
		{name: "a write in between", want: Violation, kind: ReadChanged, ops: []int{4, 5, 6},
			summary: []string{"c1 read version 0 at 2.00s and version 1 at 4.00s under one lock for reading, written by c2 at 3.00s: the resource changed under a reader"},
			history: with(story(join(held, look(2, "c1", 1, 0), arrive(3, "c2", 2, 0, 0, true), look(4, "c1", 1, 1))...), readersAndWriters)},
		{name: "a writer reads what it likes", want: Pass, history: with(story(join(held, look(2, "c2", 2, 0), arrive(3, "c2", 2, 0, 0, true), look(4, "c2", 2, 1))...), readersAndWriters)},
		{name: "a lost update is the graver", want: Violation, kind: LostUpdate, ops: []int{5, 7}, count: 2,
			history: with(story(join(held, look(2, "c1", 1, 0), arrive(3, "c2", 2, 0, 0, true), look(4, "c1", 1, 1), arrive(5, "c2", 2, 0, 1, true))...), readersAndWriters)},
		{name: "permits put no order on writes", want: Unknown, skipped: true, reason: "no order", history: with(story(join(held, arrive(3, "c2", 2, 5, 0, true))...), permits(2))},
	})
}

// TestTokensByKind: whose token a key carries, where it carries several, or
// counts, or is shared by the holds of a client.
func TestTokensByKind(t *testing.T) {
	const acquire = history.Acquire
	in := func(t float64, who string, acq int, owners string) []history.Event {
		return []history.Event{invoke(t-0.1, who, acquire, acq), server(t-0.05, "n1", who, "EVALSHA", owners, 10), ok(t, who, acquire, acq)}
	}
	counted := func(t float64, who string, acq int, n string) []history.Event {
		return as(history.Reading, invoke(t-0.1, who, acquire, acq), kept("readers:a", n, server(t-0.05, "n1", who, "EVALSHA", "c1#1", 10)), ok(t, who, acquire, acq))
	}
	worked := func(t float64, who string, acq int) history.Event { return note(t, who, history.Worked, acq) }
	try(t, leaseName, []trial{
		{name: "permits beside each other", want: Pass, history: with(story(join(in(1, "c1", 1, "c1#1"), in(2, "c2", 2, "c2#1,c1#1"), worked(5, "c2", 2))...), permits(2))},
		{name: "a live permit was swept", want: Violation, kind: Overwritten, ops: []int{2, 7}, summary: []string{"the node lost c1's token at 2.95s to a command of c3"},
			history: with(story(join(in(1, "c1", 1, "c1#1"), in(2, "c2", 2, "c2#1,c1#1"), in(3, "c3", 3, "c2#1,c3#1"), worked(5, "c1", 1))...), permits(2))},
		{name: "a permit counts from its invoke", want: Pass,
			history: with(story(join(invoke(0, "c1", acquire, 1), server(4, "n1", "c1", "EVALSHA", "c1#1", 10), ok(4.1, "c1", acquire, 1), in(10.5, "c2", 2, "c2#1"), worked(12, "c1", 1))...), permits(1))},
		{name: "readers that are only counted are told by nobody", want: Unknown, reason: "no granted acquisition's token",
			history: with(story(join(counted(1, "c1", 1, "1"), counted(1.5, "c2", 2, "2"), kept("readers:a", "", gone(2, "n1", "c3", "EVALSHA")), worked(3, "c2", 2))...), readersAndWriters)},
		{name: "a hold within a hold has its token", want: Violation, kind: Deleted, ops: []int{2, 5}, count: 2, summary: []string{"the node lost c1's token at 3.00s to a command of c1 that deleted it"},
			history: with(story(join(in(1, "c1", 1, "c1#1"), invoke(2, "c1", acquire, 2), ok(2, "c1", acquire, 2), gone(3, "n1", "c1", "EVALSHA"), worked(4, "c1", 2))...), reentrant)},
		{name: "and has it no more when the outer lease is over", want: Violation, kind: NeverThere, ops: []int{5},
			history: with(story(join(in(1, "c1", 1, "c1#1"), gone(10.951, "n1", "", history.Expired), invoke(12, "c1", acquire, 2), ok(12, "c1", acquire, 2), worked(13, "c1", 2))...), reentrant)},
	})
	try(t, orphansName, []trial{
		{name: "a thread that was let in keeps the key", want: Pass, history: with(story(join(in(1, "c1", 1, "c1#1"), by(1, invoke(2, "c1/4", acquire, 2), ok(2, "c1/4", acquire, 2)), over(3, "c1", 1),
			by(1, invoke(9, "c1/4", history.Release, 2)), gone(9.05, "n1", "c1", "EVALSHA"), by(1, ok(9.1, "c1/4", history.Release, 2)))...), reentrant)},
	})
	try(t, ttlName, []trial{
		{name: "the TTL of all permits is nobody's", want: Unknown, skipped: true, reason: "permits share a key", history: with(story(in(1, "c1", 1, "c1#1")...), permits(2))},
	})
	asking := join(in(1, "c1", 1, "c1#1"), invoke(1.1, "c1", acquire, 2), asks(1.2, 100), fail(8, "c1", acquire, 2), over(9, "c1", 1))
	try(t, loadName, []trial{
		{name: "asking for the lock again is no storm of a holder", want: Pass, history: with(story(asking...), reentrant)},
		{name: "a holder's own commands are", want: Violation, kind: Storm, ops: []int{2, 3, 132}, history: with(story(join(in(1, "c1", 1, "c1#1"), asks(1.2, 130), over(9, "c1", 1))...), reentrant)},
	})
}

// asks are scripts of c1 that find its own key, twenty a second.
func asks(from float64, n int) []history.Event {
	var out []history.Event
	for i := range n {
		t := from + 0.05*float64(i)
		out = append(out, server(t, "n1", "c1", "EVALSHA", "c1#1", 10.95-t))
	}
	return out
}
