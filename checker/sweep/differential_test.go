package sweep

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// The models, by the names of their tests.
var models = []struct {
	name  string
	model Model
}{
	{"mutex", Mutex}, {"fenced", Fenced}, {"reentrant", Reentrant},
	{"reentrant-fenced", ReentrantFenced}, {"read-write", ReadWrite}, {"semaphore", Semaphore},
}

// patience with the reference, for one history.
const patience = time.Second

// disagree says how the sweep and the reference differ about a history, or "".
func disagree(rules Rules, ops []Op) (string, Report) {
	got := Check(rules, ops)
	if got.Verdict == Undecided {
		return "", got
	}
	model, history := referenceFor(rules, ops)
	want := porcupine.CheckOperationsTimeout(model, history, patience)
	if want != porcupine.Unknown && (want == porcupine.Ok) != (got.Verdict == Linearizable) {
		return fmt.Sprintf("the reference says %v, the sweep %v (%v: %s)", want, got.Verdict, got.Ops, got.Text), got
	}
	return "", got
}

// shrink takes calls away and makes times smaller as long as the two disagree.
func shrink(rules Rules, ops []Op) []Op {
	bad := func(ops []Op) bool { d, _ := disagree(rules, ops); return d != "" }
	for again := true; again; {
		again = false
		for i := 0; i < len(ops); i++ {
			if less := slices.Delete(slices.Clone(ops), i, i+1); bad(less) {
				ops, again = less, true
				i--
			}
		}
		for i := range ops {
			for _, f := range []func(*Op){
				func(o *Op) { o.Call++ }, func(o *Op) { o.Return-- }, func(o *Op) { o.LeaseEnd = 0 }, func(o *Op) { o.Fence = 0 },
			} {
				try := slices.Clone(ops)
				f(&try[i])
				if try[i] != ops[i] && try[i].Call <= try[i].Return && bad(try) {
					ops, again = try, true
				}
			}
		}
	}
	return ops
}

// draw makes a history, and says whether it is any other than a correct lock's.
func draw(r *rand.Rand, rules Rules) (ops []Op, changed bool) {
	switch r.IntN(4) {
	case 0:
		return simulated(r, rules), false
	case 1:
		ops = simulated(r, rules)
		for range 10 {
			before := slices.Clone(ops)
			mutate(r, ops)
			if got := Check(rules, ops); got.Verdict != Undecided || got.Searched {
				break
			}
			ops = before // not a history at all
		}
		return ops, true
	default:
		return arbitrary(r, rules), true
	}
}

// randomRules draws the options of a model.
func randomRules(r *rand.Rand, m Model) Rules {
	return Rules{Model: m, Permits: 1 + r.IntN(3), StrictBusy: r.IntN(3) > 0, LenientRelease: r.IntN(4) == 0, Budget: 1_000_000}
}

func rounds(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("SWEEP_ROUNDS")); err == nil {
		return n
	}
	switch {
	case os.Getenv("HOLDFAST_LONG") != "":
		return 1_000_000
	case testing.Short():
		return 300
	}
	return 4000
}

// TestAgreesWithReference compares the sweep with porcupine on histories of a
// correct lock, untouched and with a few changes.
func TestAgreesWithReference(t *testing.T) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			count := map[string]int{}
			started, slowest := time.Now(), time.Duration(0)
			for seed := range uint64(rounds(t)) {
				r := rand.New(rand.NewPCG(seed, uint64(m.model)+seedBase()))
				rules := randomRules(r, m.model)
				ops, changed := draw(r, rules)
				began := time.Now()
				d, got := disagree(rules, ops)
				slowest = max(slowest, time.Since(began))
				if d != "" {
					ops = shrink(rules, ops)
					d, _ = disagree(rules, ops)
					t.Fatalf("seed %d: %s\n%s", seed, d, timeline(rules, ops))
				}
				if !changed && got.Verdict != Linearizable && !(got.Verdict == Undecided && got.Searched) {
					t.Fatalf("seed %d: a correct lock is %v: %s%s\n%s", seed, got.Verdict, got.Reason, got.Text, timeline(rules, ops))
				}
				count[got.Verdict.String()]++
				if got.Searched {
					count["searched"]++
				}
				if got.Verdict == Undecided && got.Searched {
					count["gave up"]++
				}
			}
			t.Log(count, time.Since(started), slowest)
			if n := rounds(t); count["illegal"] < n/20 || count["linearizable"] < n/4 || count["gave up"] > n/50 {
				t.Errorf("the histories are too much alike: %v", count)
			}
		})
	}
}

func seedBase() uint64 {
	n, _ := strconv.ParseUint(os.Getenv("SWEEP_SEED"), 10, 64)
	return n
}

// TestContradictionsAreMinimal: the calls that a violation without refusals
// names contradict each other, for the reference too, and without any one of
// the acquisitions they do not.
func TestContradictionsAreMinimal(t *testing.T) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			judged := 0
			for seed := range uint64(rounds(t)) / 4 {
				r := rand.New(rand.NewPCG(seed, 77+uint64(m.model)))
				rules := randomRules(r, m.model)
				rules.StrictBusy = false
				ops, _ := draw(r, rules)
				got := Check(rules, ops)
				if got.Verdict != Illegal || got.Searched {
					continue
				}
				judged++
				blamed := map[int]bool{}
				for _, o := range ops {
					if slices.Contains(got.Ops, o.ID) {
						blamed[o.Hold] = true
					}
				}
				part := pick(ops, func(o Op) bool { return blamed[o.Hold] })
				model, history := referenceFor(rules, part)
				if porcupine.CheckOperationsTimeout(model, history, patience) == porcupine.Ok {
					t.Fatalf("seed %d: %v do not contradict each other: %s\n%s", seed, got.Ops, got.Text, timeline(rules, ops))
				}
				for _, leave := range part {
					less := pick(part, func(o Op) bool { return o.Hold != leave.Hold })
					if Check(rules, less).Verdict == Illegal {
						t.Fatalf("seed %d: of %v, acquisition %d is not needed: %s\n%s", seed, got.Ops, leave.Hold, got.Text, timeline(rules, ops))
					}
				}
			}
			t.Log(judged)
		})
	}
}

func pick(ops []Op, want func(Op) bool) []Op {
	return slices.DeleteFunc(slices.Clone(ops), func(o Op) bool { return !want(o) })
}

// TestWindowsAreEnough: the search in windows agrees with the search through
// all time, on histories that are too long for the reference.
func TestWindowsAreEnough(t *testing.T) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			count := map[string]int{}
			for seed := range uint64(rounds(t)) / 8 {
				r := rand.New(rand.NewPCG(seed, 99+uint64(m.model)))
				rules := randomRules(r, m.model)
				rules.StrictBusy = true
				ops := simulate(r, rules, 30+r.IntN(100), 1000, true)
				if r.IntN(2) == 0 {
					mutate(r, ops)
				}
				one := (&judge{rules: rules, ops: ops}).check()
				two := (&judge{rules: rules, ops: ops, whole: true}).check()
				if one.Verdict != two.Verdict && one.Verdict != Undecided && two.Verdict != Undecided {
					t.Fatalf("seed %d: %v in windows, %v in all\n%s", seed, one.Verdict, two.Verdict, timeline(rules, ops))
				}
				count[one.Verdict.String()]++
				if one.Searched {
					count["searched"]++
				}
				if one.Steps < two.Steps {
					count["fewer steps"]++
				}
				if one.Searched && one.Verdict == Undecided {
					count["gave up"]++
				}
			}
			t.Log(count)
		})
	}
}

// TestRefusalsThatAreNeeded: of the refusals that a violation names, none can
// be taken from the history without making it legal.
func TestRefusalsThatAreNeeded(t *testing.T) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			judged := 0
			for seed := range uint64(rounds(t)) / 4 {
				r := rand.New(rand.NewPCG(seed, 55+uint64(m.model)))
				rules := randomRules(r, m.model)
				rules.StrictBusy = true
				ops, _ := draw(r, rules)
				got := Check(rules, ops)
				if got.Verdict != Illegal || !got.Searched {
					continue
				}
				judged++
				for _, leave := range ops {
					if leave.Outcome != Busy || leave.Kind == Release || leave.Kind == RRelease || !slices.Contains(got.Ops, leave.ID) {
						continue
					}
					// Others that are not named may be contradictions of their own.
					less := pick(ops, func(o Op) bool {
						refused := o.Outcome == Busy && (o.Kind == Acquire || o.Kind == RAcquire)
						return o.Hold != leave.Hold && (!refused || slices.Contains(got.Ops, o.ID))
					})
					if Check(rules, less).Verdict == Illegal {
						t.Fatalf("seed %d: of %v, refusal %d is not needed: %s\n%s", seed, got.Ops, leave.ID, got.Text, timeline(rules, ops))
					}
				}
			}
			t.Log(judged)
		})
	}
}
