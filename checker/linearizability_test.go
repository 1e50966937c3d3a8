package checker

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-io/holdfast/checker/sweep"
	"github.com/holdfast-io/holdfast/history"
)

func TestLinearizability(t *testing.T) {
	const acquire, release = history.Acquire, history.Release
	try(t, linearizabilityName, []trial{
		{name: "one after the other", want: Pass, history: story(join(
			grant(1, "c1", 1), invoke(5, "c1", release, 1), ok(5.1, "c1", release, 1), grant(5.2, "c2", 2))...)},
		{name: "granted while held", want: Violation, kind: NotLinearizable, ops: []int{1, 3},
			summary: []string{"c2 was granted the lock at 5.00s, when c1 held it since 1.00s with a lease until 10.90s"},
			history: story(join(grant(1, "c1", 1), grant(5, "c2", 2))...)},
		{name: "the lease ended", want: Pass, history: story(join(grant(1, "c1", 1), grant(11, "c2", 2))...)},
		{name: "late release says no", want: Pass, history: story(join(
			grant(1, "c1", 1), grant(11, "c2", 2), invoke(12, "c1", release, 1), fail(12.1, "c1", release, 1), invoke(13, "c2", release, 2), ok(13.1, "c2", release, 2))...)},
		{name: "late release says yes and frees nothing", want: Pass, history: story(join(
			grant(1, "c1", 1), grant(11, "c2", 2), invoke(12, "c1", release, 1), ok(12.1, "c1", release, 1), invoke(13, "c2", release, 2), ok(13.1, "c2", release, 2))...)},
		{name: "a late release does not free another's lock", want: Violation, kind: NotLinearizable, ops: []int{3, 7},
			history: story(join(grant(1, "c1", 1), grant(11, "c2", 2), invoke(12, "c1", release, 1), ok(12.1, "c1", release, 1), grant(13, "c3", 3))...)},
		{name: "a turn that came after more than a TTL", want: Pass, history: story(join(
			invoke(0.5, "c2", acquire, 2), grant(1, "c1", 1), note(9, "c1", history.Worked, 1), invoke(10.5, "c1", release, 1), ok(10.6, "c1", release, 1), ok(12, "c2", acquire, 2), invoke(13, "c2", release, 2), ok(13.1, "c2", release, 2))...)},
		{name: "unknown release may have freed", want: Pass, history: story(join(
			grant(1, "c1", 1), invoke(2, "c1", release, 1), info(3, "c1", release, 1), grant(4, "c2", 2))...)},
		{name: "a release that left no client frees nothing", want: Violation, kind: NotLinearizable, ops: []int{1, 5},
			history: story(join(grant(1, "c1", 1), invoke(2, "c1", release, 1), code(fail(3, "c1", release, 1), unreachable), grant(4, "c2", 2))...)},
		{name: "not held is the service's word", want: Pass, history: story(join(
			grant(1, "c1", 1), invoke(2, "c1", release, 1), code(fail(3, "c1", release, 1), "UNLOCK_FAILED"), grant(4, "c2", 2))...)},
		{name: "a loss notice is the lock's word", want: Pass, history: story(join(grant(1, "c1", 1), note(3, "c1", history.Lost, 1), grant(4, "c2", 2))...)},
		{name: "granted as the release is invoked", want: Pass, history: story(join(
			grant(1, "c1", 1), invoke(1.5, "c2", acquire, 2), invoke(2, "c1", release, 1), ok(2, "c2", acquire, 2))...)},
		{name: "a second release changes nothing", want: Pass, history: story(join(grant(1, "c1", 1), invoke(2, "c1", release, 1), ok(2.1, "c1", release, 1),
			invoke(3, "c1", release, 1), code(fail(3.1, "c1", release, 1), unreachable), grant(4, "c2", 2))...)},
		{name: "a refused extend is the service's word", want: Pass, history: story(join(
			grant(1, "c1", 1), invoke(2, "c1", history.Extend, 1), code(fail(3, "c1", history.Extend, 1), "UNLOCK_FAILED"), grant(4, "c2", 2))...)},
		{name: "an extend that the server had no memory for says nothing of who holds it", want: Violation, kind: NotLinearizable, ops: []int{1, 5}, history: story(join(
			grant(1, "c1", 1), invoke(2, "c1", history.Extend, 1), code(fail(3, "c1", history.Extend, 1), "OOM"), grant(4, "c2", 2))...)},
		{name: "an extend that left no client is not", want: Violation, kind: NotLinearizable, ops: []int{1, 5}, history: story(join(
			grant(1, "c1", 1), invoke(2, "c1", history.Extend, 1), code(fail(3, "c1", history.Extend, 1), unreachable), grant(4, "c2", 2))...)},
		{name: "unknown acquire dropped", want: Pass, history: story(join(
			invoke(0, "c1", acquire, 1), info(1, "c1", acquire, 1), grant(2, "c2", 2), invoke(3, "c2", release, 2), ok(3.1, "c2", release, 2), grant(4, "c3", 3))...)},
		{name: "unknown acquire that took effect", want: Pass, history: story(join(
			invoke(0, "c1", acquire, 1), info(1, "c1", acquire, 1), invoke(2, "c2", acquire, 2), fail(3, "c2", acquire, 2), grant(11, "c2", 3))...)},
		{name: "an extend keeps the lease", want: Violation, kind: NotLinearizable, ops: []int{1, 5}, history: story(join(
			grant(1, "c1", 1), invoke(8, "c1", history.Extend, 1), ok(8.1, "c1", history.Extend, 1), grant(12, "c2", 2))...)},
		{name: "pause in acquire", want: Pass, history: story(join(
			invoke(0, "c1", acquire, 1), grant(10.5, "c2", 2), ok(15, "c1", acquire, 1))...)},
		{name: "no free moment since it asked", want: Violation, kind: NotLinearizable, ops: []int{0, 1, 2, 3},
			summary: []string{"c2 was granted the lock at 3.00s", "since it asked at 2.00s"},
			history: story(join(grant(1, "c1", 1), invoke(2, "c2", acquire, 2), ok(3, "c2", acquire, 2), invoke(3, "c2", release, 2), ok(4, "c2", release, 2))...)},
		{name: "no acquire succeeded", want: Unknown, reason: "no acquire succeeded", history: story(invoke(1, "c1", acquire, 1))},
	})
}

// TestLinearizabilityOfALongHistory: length is no excuse. One grant inside
// another's lease is found among half a million calls, and nothing where there
// is nothing.
func TestLinearizabilityOfALongHistory(t *testing.T) {
	holds := make([]hold, 250_000)
	for i := range holds {
		at := int64(i) * 10
		holds[i] = hold{a: &Acquisition{Acq: i + 1}, invoked: at, granted: at + 1, free: at + 2, freedBy: at + 3}
	}
	f := Gather(story())
	r := Result{Verdict: Pass}
	f.linearize(&r, holds)
	if r.Verdict != Pass || len(r.Violations) > 0 {
		t.Errorf("a lawful history: %s %s %v", r.Verdict, r.Reason, r.Violations)
	}
	holds[123_456].free, holds[123_456].freedBy = holds[123_456].granted+500, never
	f.linearize(&r, holds)
	if len(r.Violations) != 1 {
		t.Errorf("%d violations, want the one grant inside a lease", len(r.Violations))
	}
}

// TestLinearizabilityAgainstFullModel compares the check, which leaves unknown
// acquires out and frees each hold once, with a model that keeps everything:
// unknown acquires as steps that may be dropped, releases and expiries apart.
func TestLinearizabilityAgainstFullModel(t *testing.T) {
	verdicts := map[Verdict]int{}
	for seed := range uint64(400) {
		h := scramble(rand.New(rand.NewPCG(seed, 3)))
		f := Gather(h)
		got := linearizability(f)
		if got.Verdict == Unknown {
			continue
		}
		verdicts[got.Verdict]++
		want := porcupine.CheckOperations(fullModel(), fullOperations(f))
		if (got.Verdict == Pass) != want {
			t.Fatalf("seed %d: the check says %s, the full model %v\n%v", seed, got.Verdict, want, h.Events)
		}
	}
	if verdicts[Pass] < 50 || verdicts[Violation] < 50 {
		t.Errorf("the histories are one-sided: %v", verdicts)
	}
}

// scramble makes a history of a lock that grants and refuses at random.
func scramble(r *rand.Rand) *history.History {
	var events []history.Event
	t, acq := 0.0, 0
	tick := func() float64 { t += 0.1 + r.Float64()*3; return t }
	process := map[string]string{"c1": "c1/1", "c2": "c2/2", "c3": "c3/3"}
	state := map[string]int{} // acquisition, and a step of its life
	stage := map[string]string{}
	next := 3
	for range 6 + r.IntN(14) {
		c := []string{"c1", "c2", "c3"}[r.IntN(3)]
		p := process[c]
		outcomes := []func(float64, string, string, int) history.Event{ok, ok, ok, fail, info}
		outcome := outcomes[r.IntN(len(outcomes))]
		switch stage[c] {
		case "":
			acq++
			state[c] = acq
			events = append(events, invoke(tick(), p, history.Acquire, acq))
			stage[c] = history.Acquire
		case "held":
			events = append(events, invoke(tick(), p, history.Release, state[c]))
			stage[c] = history.Release
		default:
			e := outcome(tick(), p, stage[c], state[c])
			events = append(events, e)
			held := stage[c] == history.Acquire && e.Op.Type == history.OK
			stage[c] = ""
			if held {
				stage[c] = "held"
			}
			if e.Op.Type == history.Info {
				next++
				process[c] = c + "/" + string(rune('0'+next%10)) + string(rune('0'+next/10))
			}
		}
	}
	return story(events...)
}

type fullStep struct {
	acq            int
	free, optional bool
}

func fullOperations(f *Facts) []porcupine.Operation {
	var ops []porcupine.Operation
	add := func(s fullStep, from, to int64) {
		ops = append(ops, porcupine.Operation{Input: s, Call: from, Return: max(from, to)})
	}
	for _, a := range f.Acquisitions {
		switch a.Outcome {
		case history.OK:
			add(fullStep{acq: a.Acq}, a.Invoked, a.Done)
			add(fullStep{acq: a.Acq, free: true, optional: true}, a.LeaseEnd, never)
			if a.ReleaseIndex >= 0 && a.ReleaseOutcome == history.OK {
				add(fullStep{acq: a.Acq, free: true, optional: true}, a.ReleaseInvoked, a.ReleaseDone)
			} else if a.ReleaseIndex >= 0 {
				add(fullStep{acq: a.Acq, free: true, optional: true}, a.ReleaseInvoked, never)
			}
		case history.Info:
			add(fullStep{acq: a.Acq, optional: true}, a.Invoked, never)
			add(fullStep{acq: a.Acq, free: true, optional: true}, a.Invoked, never)
		}
	}
	return ops
}

func fullModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{0} },
		Step: func(state, input, _ any) []any {
			s, in := state.(int), input.(fullStep)
			var next []any
			if in.optional {
				next = append(next, s)
			}
			if in.free && s == in.acq {
				next = append(next, 0)
			}
			if !in.free && s == 0 {
				next = append(next, in.acq)
			}
			return next
		},
		Hash: func(state any) uint64 { return uint64(state.(int)) },
	}
	return m.ToModel()
}

// TestCorrectLock runs a correct lock with leases in a small simulation, with
// lost replies, slow replies and crashes. Nothing it does is broken or not
// linearizable; holders may outlive their leases.
func TestCorrectLock(t *testing.T) {
	overruns := 0
	for seed := range uint64(500) {
		h := simulate(rand.New(rand.NewPCG(seed, 9)))
		if p := history.Validate(h); len(p) > 0 {
			t.Fatalf("seed %d: malformed: %v", seed, p)
		}
		f := Gather(h)
		if r := linearizability(f); r.Verdict == Violation || r.Verdict == Error {
			t.Fatalf("seed %d: %+v\n%v", seed, r.Violations, h.Events)
		}
		r := exclusion(f)
		if r.Kind == Broken {
			t.Fatalf("seed %d: %+v\n%v", seed, r.Violations, h.Events)
		}
		if r.Kind == Overrun {
			overruns++
		}
	}
	if overruns < 20 {
		t.Errorf("only %d runs with an overrun: the simulation is too tame", overruns)
	}
}

// TestContradictionsAreMinimal: of the grants that a violation lists, none can be
// left out: the others have an order.
func TestContradictionsAreMinimal(t *testing.T) {
	kinds := map[string]func(*history.Header){
		"fenced":    func(h *history.Header) { h.Abilities = []string{"fence"} },
		"readers":   readersAndWriters,
		"reentrant": reentrant,
		"permits":   permits(2),
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			judged, long := 0, 0
			for seed := range uint64(600) {
				rng := rand.New(rand.NewPCG(seed, 7))
				var events []history.Event
				for n := range 10 {
					at := 1.5*float64(n) + rng.Float64()
					who := []string{"c1", "c2", "c3"}[n%3]
					events = append(events, grantOf(rng, at, who, n+1)...)
				}
				f := Gather(with(story(timely(events)...), kind))
				r := linearizability(f)
				if r.Verdict != Violation {
					continue
				}
				judged++
				involved := map[int]*Acquisition{}
				for _, i := range r.Violations[0].Ops {
					acq := f.History.Events[i].Op.Acq
					involved[acq] = f.ByAcq[acq]
				}
				if len(involved) > 2 {
					long++
				}
				for out := range involved {
					var rest []*Acquisition
					for _, a := range f.Acquisitions {
						if involved[a.Acq] != nil && a.Acq != out {
							rest = append(rest, a)
						}
					}
					if sweep.Check(f.rules(), f.operations(newHolds(rest))).Verdict == sweep.Illegal {
						t.Fatalf("seed %d: %v is a contradiction without acquisition %d", seed, r.Violations[0].Ops, out)
					}
				}
			}
			if judged < 50 || name == "permits" && long < 10 {
				t.Errorf("%d contradictions, %d of more than two grants: too few", judged, long)
			}
		})
	}
}

// grantOf is a grant with a fence and a mode, and its release if it has one.
func grantOf(rng *rand.Rand, at float64, who string, acq int) []history.Event {
	who += "/" + strconv.Itoa(100+acq)
	invoked, granted := invoke(at, who, history.Acquire, acq), fence(ok(at+0.2+3*rng.Float64(), who, history.Acquire, acq), uint64(acq+rng.IntN(3)))
	invoked.Op.Mode = []string{history.Reading, history.Writing}[rng.IntN(2)]
	granted.Op.Mode = invoked.Op.Mode
	out := []history.Event{invoked, granted}
	if free := float64(granted.T)/1e9 + 0.3*rng.Float64(); rng.IntN(20) > 0 {
		out = append(out, invoke(free, who, history.Release, acq), ok(free+0.1+rng.Float64(), who, history.Release, acq))
	}
	return out
}

// timely puts events in the order of their times.
func timely(events []history.Event) []history.Event {
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.T, b.T) })
	return events
}
