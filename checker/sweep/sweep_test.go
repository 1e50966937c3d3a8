package sweep

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// Builders make a history readable. A call's ID is its place, from 1.

func acquire(hold int, call, ret int64) Op {
	return Op{Hold: hold, Owner: hold, Call: call, Return: ret}
}
func release(hold int, call, ret int64) Op {
	return Op{Hold: hold, Owner: hold, Kind: Release, Call: call, Return: ret}
}
func read(hold int, call, ret int64) Op {
	return Op{Hold: hold, Owner: hold, Kind: RAcquire, Call: call, Return: ret}
}
func readDone(hold int, call, ret int64) Op {
	return Op{Hold: hold, Owner: hold, Kind: RRelease, Call: call, Return: ret}
}
func (o Op) refused() Op         { o.Outcome = Busy; return o }
func (o Op) lost() Op            { o.Outcome, o.Return = Unknown, 0; return o }
func (o Op) by(owner int) Op     { o.Owner = owner; return o }
func (o Op) fenced(f uint64) Op  { o.Fence = f; return o }
func (o Op) leased(end int64) Op { o.LeaseEnd = end; return o }
func history(ops ...Op) (out []Op) {
	for i, op := range ops {
		op.ID = i + 1
		out = append(out, op)
	}
	return out
}

var strict = Rules{StrictBusy: true}

// histories are the must-pass and must-fail of every rule. Those that fail name
// the calls to blame and a part of the sentence.
var histories = []struct {
	name  string
	rules Rules
	ops   []Op
	blame []int // nil for a legal history
	says  string
}{
	{name: "nothing"},
	{name: "hand-over", ops: history(acquire(1, 1, 2), release(1, 5, 8), acquire(2, 3, 6), release(2, 9, 10))},
	{name: "two at once", ops: history(acquire(1, 1, 2), release(1, 7, 8), acquire(2, 3, 6)),
		blame: []int{1, 3, 2}, says: "acquire 3 was granted by 6 although acquire 1, granted by 2, was released not before 7 (release 2)"},
	{name: "touching at an instant", ops: history(acquire(1, 1, 2), release(1, 6, 8), acquire(2, 3, 6))},
	{name: "never released", ops: history(acquire(1, 1, 2), acquire(2, 5, 6)), blame: []int{1, 2}, says: "was never released"},
	{name: "after the lease", ops: history(acquire(1, 1, 2).leased(5), acquire(2, 3, 6))},
	{name: "inside the lease", ops: history(acquire(1, 1, 2).leased(7), acquire(2, 3, 6)), blame: []int{1, 2}, says: "had a lease until 7"},
	{name: "a yes proves that the lease went on", ops: history(acquire(1, 1, 2).leased(5), acquire(2, 6, 7), release(1, 8, 9)),
		blame: []int{1, 2, 3}, says: "released not before 8"},
	{name: "a lenient yes does not", rules: Rules{LenientRelease: true},
		ops: history(acquire(1, 1, 2).leased(5), acquire(2, 6, 7), release(1, 8, 9))},
	{name: "a no after the lease", ops: history(acquire(1, 1, 2).leased(5), release(1, 8, 9).refused())},
	{name: "a no inside the lease", ops: history(acquire(1, 1, 2).leased(50), release(1, 8, 9).refused()),
		blame: []int{1, 2}, says: "had a lease until 50"},
	{name: "two yeses", ops: history(acquire(1, 1, 2), release(1, 3, 4), release(1, 5, 6)), blame: []int{1, 2, 3}, says: "only once"},
	{name: "a yes for a refused acquire", ops: history(acquire(1, 1, 2).refused(), release(1, 3, 4)), blame: []int{1, 2}, says: "had been refused"},
	{name: "lost release frees", ops: history(acquire(1, 1, 2), release(1, 3, 4).lost(), acquire(2, 5, 6))},
	{name: "lost release does not free before its call", ops: history(acquire(1, 1, 2), acquire(2, 3, 4), release(1, 5, 6).lost()),
		blame: []int{1, 2, 3}},
	{name: "lost acquire is dropped", ops: history(acquire(1, 1, 2).lost(), acquire(2, 3, 4))},
	{name: "lost acquire that was released", ops: history(acquire(1, 1, 2).lost(), acquire(2, 3, 4), release(1, 5, 6)),
		blame: []int{1, 2, 3}, says: "acquire 1 held the lock at some moment between 5 and 6"},
	{name: "lost acquire that took effect late", ops: history(acquire(1, 1, 2).lost(), acquire(2, 3, 4), release(2, 5, 6), release(1, 5, 8))},
	{name: "over before its caller heard", ops: history(acquire(1, 1, 9).leased(5), acquire(2, 4, 5), release(2, 6, 7))},
	{name: "over, but no room for it", ops: history(acquire(1, 3, 9).leased(5), acquire(2, 1, 2), release(2, 10, 11)),
		blame: []int{2, 1, 3}, says: "others held it all that time"},

	{name: "fences rise", rules: Rules{Model: Fenced}, ops: history(acquire(1, 1, 2).fenced(3), release(1, 3, 4), acquire(2, 5, 6).fenced(4))},
	{name: "fences fall", rules: Rules{Model: Fenced}, ops: history(acquire(1, 1, 2).fenced(4), release(1, 3, 4), acquire(2, 5, 6).fenced(3)),
		blame: []int{1, 3}, says: "acquire 3 got fence 3 but was not called before 5"},
	{name: "fences repeat", rules: Rules{Model: Fenced}, ops: history(acquire(1, 1, 2).fenced(4), release(1, 3, 4), acquire(2, 5, 6).fenced(4)),
		blame: []int{1, 3}, says: "both got fence 4"},
	{name: "fences place holds", rules: Rules{Model: Fenced},
		ops:   history(acquire(1, 1, 20).fenced(3).leased(2), acquire(2, 3, 4).fenced(2), release(2, 18, 19), acquire(3, 18, 19).fenced(4), release(3, 30, 31)),
		blame: nil},
	{name: "fences leave no place", rules: Rules{Model: Fenced},
		ops:   history(acquire(1, 1, 20).fenced(3).leased(2), acquire(2, 3, 4).fenced(2), release(2, 24, 25)),
		blame: []int{1, 2, 3}, says: "after the grants of all lower fences"},
	{name: "fences order the grants of an instant", rules: Rules{Model: Fenced},
		ops:   history(acquire(1, 4, 5).fenced(1), release(1, 9, 10), acquire(2, 3, 5).fenced(2).leased(4)),
		blame: []int{3, 1, 2}},
	{name: "a mutex reads no fences", ops: history(acquire(1, 1, 2).fenced(4), release(1, 3, 4), acquire(2, 5, 6).fenced(4))},

	{name: "re-entry", rules: Rules{Model: Reentrant}, ops: history(acquire(1, 1, 2), acquire(2, 3, 4).by(1), release(2, 5, 6).by(1), release(1, 7, 8), acquire(3, 7, 9))},
	{name: "half released", rules: Rules{Model: Reentrant}, ops: history(acquire(1, 1, 2), acquire(2, 3, 4).by(1), release(2, 5, 6).by(1), acquire(3, 7, 9)),
		blame: []int{1, 4}},
	{name: "a mutex has no re-entry", ops: history(acquire(1, 1, 2), acquire(2, 3, 4).by(1)), blame: []int{1, 2}},
	{name: "own re-entry refused", rules: Rules{Model: Reentrant, StrictBusy: true}, ops: history(acquire(1, 1, 2), acquire(2, 3, 4).by(1).refused()),
		blame: []int{1, 2}},
	{name: "a nest repeats its fence", rules: Rules{Model: ReentrantFenced}, ops: history(acquire(1, 1, 2).fenced(7), acquire(2, 3, 4).by(1).fenced(7))},
	{name: "the next nest may not", rules: Rules{Model: ReentrantFenced},
		ops: history(acquire(1, 1, 2).fenced(7), release(1, 3, 4), acquire(2, 5, 6).by(1).fenced(7)), blame: []int{3}},
	{name: "an inner fence pulls the outer grant", rules: Rules{Model: ReentrantFenced},
		ops: history(acquire(1, 1, 10).fenced(5), acquire(2, 2, 6).by(1).fenced(6), release(2, 6, 7).by(1), acquire(3, 7, 8), release(3, 9, 10)), blame: []int{1, 2, 4}, says: "before acquire 2"},

	{name: "at one instant, the fences say which came first", rules: Rules{Model: Fenced},
		ops: history(acquire(1, 1, 5).fenced(1), release(1, 9, 10), acquire(2, 4, 5).fenced(2), release(2, 5, 6)), blame: []int{1, 3, 4, 2}},
	{name: "at one instant, without fences", ops: history(acquire(1, 1, 5), release(1, 9, 10), acquire(2, 4, 5), release(2, 5, 6))},
	{name: "room, but not in the order of the fences", rules: Rules{Model: Fenced},
		ops: history(acquire(1, 4, 5).fenced(1), release(1, 11, 12), acquire(2, 1, 10).fenced(2).leased(3)), blame: []int{3, 1, 2}},
	{name: "room without fences", ops: history(acquire(1, 4, 5), release(1, 11, 12), acquire(2, 1, 10).leased(3))},
	{name: "over before its caller hears of it", rules: Rules{Model: Fenced},
		ops: history(acquire(1, 1, 5).fenced(1).leased(2), acquire(2, 3, 4), release(2, 6, 7))},
	{name: "the rest of a nest is granted before it ends", rules: Rules{Model: ReentrantFenced},
		ops: history(acquire(1, 1, 2).fenced(7), release(1, 4, 5), acquire(2, 3, 9).by(1).fenced(7))},
	{name: "a permit given back is taken at once", rules: Rules{Model: Semaphore},
		ops: history(acquire(1, 1, 2), release(1, 5, 5), acquire(2, 4, 5), release(2, 8, 9))},
	{name: "a read refused by the writer after the readers", rules: Rules{Model: ReadWrite, StrictBusy: true},
		ops: history(read(1, 1, 2), readDone(1, 9, 10), read(2, 4, 13).refused(), acquire(3, 11, 12))},
	{name: "a refusal at the instant of a hold", rules: strict, ops: history(acquire(1, 1, 5), release(1, 5, 5), acquire(2, 3, 5).refused())},
	{name: "a write refused after the instant of a write", rules: Rules{Model: ReadWrite, StrictBusy: true},
		ops: history(acquire(1, 1, 5), release(1, 5, 5), acquire(2, 7, 8).refused()), blame: []int{3}},
	{name: "a write refused at the instant of a write", rules: Rules{Model: ReadWrite, StrictBusy: true},
		ops: history(acquire(1, 1, 5), release(1, 5, 5), acquire(2, 3, 5).refused())},
	{name: "refused by one that comes and goes", rules: strict,
		ops: history(acquire(1, 4, 5).refused(), acquire(2, 6, 7), release(2, 8, 9), acquire(3, 1, 12).leased(5))},

	{name: "a nest broken at an instant", rules: Rules{Model: ReentrantFenced},
		ops: history(acquire(1, 5, 5).fenced(2).leased(9), acquire(2, 9, 9).leased(6), acquire(3, 9, 9).by(1).fenced(2)), blame: []int{1, 2, 3}},

	{name: "readers share", rules: Rules{Model: ReadWrite}, ops: history(read(1, 1, 2), read(2, 3, 4), readDone(1, 5, 6), readDone(2, 5, 6), acquire(3, 3, 5))},
	{name: "a writer among readers", rules: Rules{Model: ReadWrite}, ops: history(read(1, 1, 2), read(2, 3, 4), readDone(1, 5, 6), acquire(3, 3, 6)),
		blame: []int{2, 4}},
	{name: "a reader under a writer", rules: Rules{Model: ReadWrite}, ops: history(acquire(1, 1, 2), read(2, 3, 4)), blame: []int{1, 2}},
	{name: "a read refused by readers", rules: Rules{Model: ReadWrite, StrictBusy: true}, ops: history(read(1, 1, 2), read(2, 3, 4).refused()), blame: []int{1, 2}},
	{name: "a write refused by readers", rules: Rules{Model: ReadWrite, StrictBusy: true}, ops: history(read(1, 1, 2), acquire(2, 3, 4).refused())},

	{name: "a lost reader stays too long", rules: Rules{Model: ReadWrite, StrictBusy: true},
		ops: history(acquire(1, 1, 2), release(1, 3, 4), read(2, 1, 1).lost().leased(50), acquire(3, 6, 7).refused(),
			read(4, 9, 10), readDone(4, 12, 13), acquire(5, 20, 21), release(5, 22, 23)),
		blame: []int{4, 5, 6, 7}, says: "it would still hold when acquire 7 was granted, by 21"},
	{name: "a lost reader leaves in time", rules: Rules{Model: ReadWrite, StrictBusy: true},
		ops: history(acquire(1, 1, 2), release(1, 3, 4), read(2, 1, 1).lost().leased(21), acquire(3, 6, 7).refused(),
			read(4, 9, 10), readDone(4, 12, 13), acquire(5, 20, 21), release(5, 22, 23))},
	{name: "the first of two releases came too early", rules: Rules{Model: ReadWrite, StrictBusy: true, LenientRelease: true},
		ops: history(acquire(1, 4, 4).lost(), release(1, 6, 6), release(1, 5, 8), read(2, 8, 8).refused(), read(3, 8, 8))},
	{name: "a reader may have stayed", rules: Rules{Model: ReadWrite, StrictBusy: true},
		ops: history(acquire(1, 4, 4), release(1, 8, 8), read(2, 9, 9), readDone(2, 9, 9).lost(), read(3, 10, 10), readDone(3, 14, 14), acquire(4, 17, 17).refused())},

	{name: "two permits", rules: Rules{Model: Semaphore, Permits: 2}, ops: history(acquire(1, 1, 2), acquire(2, 1, 2), release(1, 3, 4), acquire(3, 3, 4))},
	{name: "a permit too many", rules: Rules{Model: Semaphore, Permits: 2}, ops: history(acquire(1, 1, 2), acquire(2, 1, 2), release(1, 5, 6), acquire(3, 3, 4)),
		blame: []int{1, 2, 4, 3}, says: "all 2 permits were taken"},
	{name: "the permit whose release returned first is free", rules: Rules{Model: Semaphore, Permits: 2, StrictBusy: true},
		ops: history(acquire(1, 1, 2), release(1, 3, 30), acquire(2, 1, 2), release(2, 3, 7), acquire(3, 4, 5), acquire(4, 8, 9).refused())},
	{name: "refused with a permit left", rules: Rules{Model: Semaphore, Permits: 2, StrictBusy: true}, ops: history(acquire(1, 1, 2), acquire(2, 3, 4).refused()),
		blame: []int{1, 2}},

	{name: "refused by nobody", rules: strict, ops: history(acquire(1, 1, 2), release(1, 3, 4), acquire(2, 5, 6).refused(), acquire(3, 7, 8)),
		blame: []int{1, 2, 3, 4}, says: "acquire 1 was freed by 4; acquire 4 was not called before 7"},
	{name: "refused by nobody, but it may be spurious", ops: history(acquire(1, 1, 2), release(1, 3, 4), acquire(2, 5, 6).refused(), acquire(3, 7, 8))},
	{name: "refused by a release that lasted", rules: strict, ops: history(acquire(1, 1, 2), release(1, 3, 6), acquire(2, 5, 6).refused(), acquire(3, 7, 8))},
	{name: "refused by an acquire that was early", rules: strict, ops: history(acquire(2, 5, 6).refused(), acquire(3, 3, 8))},
	{name: "refused by a lost acquire", rules: strict, ops: history(acquire(1, 1, 2).lost(), acquire(2, 5, 6).refused())},
	{name: "a lost acquire finds no room", rules: strict, ops: history(acquire(1, 1, 2).lost().leased(9), acquire(2, 5, 6).refused(), acquire(3, 7, 8)),
		blame: []int{2, 3}},
	{name: "a lost acquire serves once", rules: strict,
		ops:   history(acquire(1, 1, 2).lost().leased(2), acquire(2, 3, 4).refused(), acquire(3, 5, 6), release(3, 7, 8), acquire(4, 9, 10).refused(), acquire(5, 11, 12)),
		blame: []int{3, 4, 5, 6}, says: "1 acquires without an answer"},
	{name: "two refusals in one gap", rules: strict,
		ops: history(acquire(1, 1, 2).lost().leased(2), acquire(2, 3, 4).refused(), acquire(4, 9, 10).refused(), acquire(5, 11, 12))},
	{name: "two cores of an instant, the first called comes last", rules: strict,
		ops: history(acquire(1, 1, 5), release(1, 5, 20), acquire(2, 3, 5), release(2, 5, 9), acquire(3, 15, 15).refused())},
	{name: "two cores of an instant, it cannot also come first", rules: strict,
		ops:   history(acquire(1, 1, 5), release(1, 5, 20), acquire(2, 3, 5), release(2, 5, 9), acquire(3, 15, 15).refused(), acquire(4, 2, 2).refused()),
		blame: []int{1, 6, 3, 2, 4, 5}},
	{name: "extremes go together", rules: strict,
		ops: history(acquire(1, 1, 2), release(1, 5, 20), acquire(2, 4, 20), acquire(3, 7, 8).refused(), acquire(4, 12, 13).refused())},
	{name: "a lost release keeps it until the next grant", rules: strict,
		ops: history(acquire(1, 1, 2), release(1, 3, 4).lost(), acquire(2, 8, 9).refused(), acquire(3, 10, 12))},
}

func TestHistories(t *testing.T) {
	for _, c := range histories {
		t.Run(c.name, func(t *testing.T) {
			got := Check(c.rules, c.ops)
			want := Linearizable
			if c.blame != nil {
				want = Illegal
			}
			if got.Verdict != want || !slices.Equal(got.Ops, c.blame) || !strings.Contains(got.Text, c.says) {
				t.Errorf("got %v %v %q, want %v %v %q", got.Verdict, got.Ops, got.Text, want, c.blame, c.says)
			}
			if legal := porcupine.CheckOperations(referenceFor(c.rules, c.ops)); legal != (want == Linearizable) {
				t.Errorf("the reference says %v", legal)
			}
		})
	}
}

// TestNoHistory: calls that are no history at all are undecided, with a reason.
func TestNoHistory(t *testing.T) {
	for _, c := range []struct {
		says string
		ops  []Op
	}{
		{"call 1 returned before it was made", history(acquire(1, 2, 1))},
		{"two acquires name the acquisition 1", history(acquire(1, 1, 2), acquire(1, 3, 4))},
		{"which no acquire does", history(release(1, 1, 2))},
		{"was called before acquire 1 had returned", history(acquire(1, 1, 5), release(1, 3, 8))},
	} {
		if got := Check(Rules{}, c.ops); got.Verdict != Undecided || !strings.Contains(got.Reason, c.says) {
			t.Errorf("got %v %q, want %q", got.Verdict, got.Reason, c.says)
		}
	}
	if got := Check(Rules{Model: 99}, nil); got.Verdict != Undecided {
		t.Errorf("an unknown model is %v", got.Verdict)
	}
}

// TestGivesUp: the search stays within its budget and says so. Twelve holds
// that may be over before their callers hear of them fit between refusals in
// very many orders.
func TestGivesUp(t *testing.T) {
	var ops []Op
	for i := range 12 {
		ops = append(ops, acquire(i, 1, 100+int64(i)).leased(2).by(i))
		ops = append(ops, acquire(100+i, 3*int64(i)+3, 3*int64(i)+4).refused().by(i))
	}
	ops = append(ops, acquire(500, 50, 51).refused(), acquire(501, 1, 40), release(501, 49, 49), acquire(502, 52, 60))
	got := Check(Rules{Model: Reentrant, StrictBusy: true, Budget: 200}, history(ops...))
	if got.Verdict != Undecided || got.Reason == "" || got.Steps > 400 {
		t.Errorf("got %+v", got)
	}
}

// TestOrderOfCallsDoesNotMatter: the verdict depends on the times only.
func TestOrderOfCallsDoesNotMatter(t *testing.T) {
	for _, c := range histories {
		back := slices.Clone(c.ops)
		slices.Reverse(back)
		if one, two := Check(c.rules, c.ops), Check(c.rules, back); one.Verdict != two.Verdict {
			t.Errorf("%s: %v forwards, %v backwards", c.name, one.Verdict, two.Verdict)
		}
	}
}

// TestManyLostAcquires: with an acquire without an answer for each refusal, and
// owners to choose from, the search ends in good time, if need be undecided.
func TestManyLostAcquires(t *testing.T) {
	for _, m := range models {
		for _, lease := range []int64{5, 300, 5000} {
			r := rand.New(rand.NewPCG(3, 3))
			var ops []Op
			for now := int64(0); len(ops) < 4000; now += 30 {
				kind := Acquire
				if m.model == ReadWrite && r.IntN(2) == 0 {
					kind = RAcquire
				}
				n := len(ops)
				ops = append(ops,
					Op{ID: n, Hold: n, Owner: r.IntN(6), Kind: kind, Outcome: Unknown, Call: now, LeaseEnd: now + lease + r.Int64N(50)},
					Op{ID: n + 1, Hold: n + 1, Owner: r.IntN(6), Kind: kind, Outcome: Busy, Call: now + r.Int64N(20), Return: now + 20 + r.Int64N(5)})
				if owner := r.IntN(6); r.IntN(7) == 0 {
					ops = append(ops,
						Op{ID: n + 2, Hold: n + 2, Owner: owner, Call: now + 26 - r.Int64N(60), Return: now + 26},
						Op{ID: n + 3, Hold: n + 2, Owner: owner, Kind: Release, Call: now + 27, Return: now + 29})
				}
			}
			began := cpu()
			got := Check(Rules{Model: m.model, Permits: 2, StrictBusy: true}, ops)
			took := cpu() - began
			t.Logf("%s, lease %d: %v, %d steps, %v %s", m.name, lease, got.Verdict, got.Steps, took, got.Reason)
			if took > 10*time.Second {
				t.Errorf("%s, lease %d: took %v", m.name, lease, took)
			}
		}
	}
}
