package sweep

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

// disagree says how the sweep and the reference differ about a history, or "",
// and whether both had an answer in time.
func disagree(rules Rules, ops []Op) (how string, got Report, compared bool) {
	got = Check(rules, ops)
	if got.Verdict == Undecided {
		return "", got, false
	}
	model, history := referenceFor(rules, ops)
	want := porcupine.CheckOperationsTimeout(model, history, patience)
	if want != porcupine.Unknown && (want == porcupine.Ok) != (got.Verdict == Linearizable) {
		return fmt.Sprintf("the reference says %v, the sweep %v (%v: %s)", want, got.Verdict, got.Ops, got.Text), got, true
	}
	return "", got, want != porcupine.Unknown
}

// shrink takes calls away and makes times smaller as long as the two disagree.
func shrink(rules Rules, ops []Op) []Op {
	bad := func(ops []Op) bool { d, _, _ := disagree(rules, ops); return d != "" }
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
	case os.Getenv("HOLDFAST_LONG") != "" && strings.HasPrefix(t.Name(), "TestAgreesWithReference"):
		return 1_000_000
	case os.Getenv("HOLDFAST_LONG") != "":
		return 200_000
	case testing.Short():
		return 300
	}
	return 4000
}

// tally counts what became of the histories, over all workers.
type tally struct {
	mu    sync.Mutex
	count map[string]int
	wrong string
}

func (c *tally) add(names ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range names {
		c.count[n]++
	}
}

// fail keeps the first complaint, and says whether there is one.
func (c *tally) fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.wrong == "" {
		c.wrong = fmt.Sprintf(format, args...)
	}
}

func (c *tally) failed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wrong != ""
}

// spread judges histories on all cores, in blocks of seeds.
func spread(n int, c *tally, one func(seed uint64)) {
	const block = 256
	var next atomic.Uint64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for {
				end := next.Add(block)
				if end-block >= uint64(n) || c.failed() {
					return
				}
				for seed := end - block; seed < min(end, uint64(n)); seed++ {
					one(seed)
				}
			}
		})
	}
	workers.Wait()
}

// TestAgreesWithReference compares the sweep with porcupine on histories of a
// correct lock, untouched and with a few changes.
func TestAgreesWithReference(t *testing.T) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			c := &tally{count: map[string]int{}}
			started, n := time.Now(), rounds(t)
			spread(n, c, func(seed uint64) { c.compare(m.model, seed) })
			if c.wrong != "" {
				t.Fatal(c.wrong)
			}
			t.Log(c.count, time.Since(started))
			if judged := c.count["linearizable"] + c.count["illegal"] + c.count["undecided"]; judged != n {
				t.Errorf("%d histories judged, not %d", judged, n)
			}
			if c.count["illegal"] < n/20 || c.count["linearizable"] < n/4 || c.count["gave up"] > n/50 || c.count["not compared"] > n/50 {
				t.Errorf("the histories are too much alike: %v", c.count)
			}
		})
	}
}

// compare judges the history of a seed.
func (c *tally) compare(m Model, seed uint64) {
	r := rand.New(rand.NewPCG(seed, uint64(m)+seedBase()))
	rules := randomRules(r, m)
	ops, changed := draw(r, rules)
	d, got, compared := disagree(rules, ops)
	if d != "" {
		ops = shrink(rules, ops)
		d, _, _ = disagree(rules, ops)
		c.fail("seed %d: %s\n%s", seed, d, timeline(rules, ops))
		return
	}
	gaveUp := got.Verdict == Undecided && got.Searched
	if !changed && got.Verdict != Linearizable && !gaveUp {
		c.fail("seed %d: a correct lock is %v: %s%s\n%s", seed, got.Verdict, got.Reason, got.Text, timeline(rules, ops))
		return
	}
	what := []string{got.Verdict.String()}
	if got.Searched {
		what = append(what, "searched")
	}
	if gaveUp {
		what = append(what, "gave up")
	}
	if !compared && got.Verdict != Undecided {
		what = append(what, "not compared")
	}
	c.add(what...)
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
