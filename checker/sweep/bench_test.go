package sweep

import (
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// workload is the history of a busy lock: clients that wait for it in turn,
// lost replies and, if asked for, refusals. It is legal.
type workload struct {
	rules    Rules
	ops      int
	refusals bool
	lost     int // one acquire in so many has no answer, 0 for none
	number   int // of the last acquisition
}

func (w workload) history() []Op {
	r := rand.New(rand.NewPCG(1, 1))
	ops := make([]Op, 0, w.ops+4+2*w.rules.permits())
	now := int64(1000)
	for hold := 0; len(ops) < w.ops; hold++ {
		granted := now + r.Int64N(3)
		returned := granted + r.Int64N(30)
		released := returned + r.Int64N(50)
		freed := released + r.Int64N(10)
		for permit := range w.rules.permits() { // others take what they can at the same time
			w.number++
			op := Op{ID: len(ops), Hold: w.number, Owner: (hold + permit) % 8, Call: granted - r.Int64N(400), Return: returned,
				LeaseEnd: granted + 10_000, Fence: uint64(hold + 1)}
			if w.rules.Model == ReadWrite && r.IntN(2) == 0 {
				op.Kind = RAcquire
			}
			ops = append(ops, op, Op{ID: len(ops) + 1, Hold: w.number, Owner: op.Owner, Kind: op.Kind + 1,
				Call: released, Return: freed + r.Int64N(10)})
		}
		if w.lost > 0 && hold%w.lost == 0 {
			w.number++
			ops = append(ops, Op{ID: len(ops), Hold: w.number, Owner: 9, Outcome: Unknown,
				Call: granted, LeaseEnd: granted + 500})
		}
		if w.refusals && r.IntN(3) == 0 {
			at := granted + r.Int64N(freed-granted+1)
			w.number++
			ops = append(ops, Op{ID: len(ops), Hold: w.number, Owner: 10, Outcome: Busy,
				Call: at - r.Int64N(5), Return: at + r.Int64N(5)})
		}
		now = freed
	}
	return ops
}

func (r Rules) permits() int {
	if r.Model == Semaphore {
		return max(1, r.Permits)
	}
	return 1
}

// workloads of the benchmarks. Those called strict hold the lock to every
// refusal, and have acquires without an answer.
var workloads = []struct {
	name string
	workload
}{
	{"mutex", workload{rules: Rules{Model: Mutex}}},
	{"fenced", workload{rules: Rules{Model: Fenced}}},
	{"reentrant", workload{rules: Rules{Model: Reentrant}}},
	{"reentrant-fenced", workload{rules: Rules{Model: ReentrantFenced}}},
	{"read-write", workload{rules: Rules{Model: ReadWrite}}},
	{"semaphore", workload{rules: Rules{Model: Semaphore, Permits: 3}}},
	{"mutex-strict", workload{rules: Rules{Model: Mutex, StrictBusy: true}, refusals: true, lost: 100}},
	{"fenced-strict", workload{rules: Rules{Model: Fenced, StrictBusy: true}, refusals: true, lost: 100}},
	{"reentrant-strict", workload{rules: Rules{Model: Reentrant, StrictBusy: true}, refusals: true, lost: 100}},
	{"reentrant-fenced-strict", workload{rules: Rules{Model: ReentrantFenced, StrictBusy: true}, refusals: true, lost: 100}},
	{"read-write-strict", workload{rules: Rules{Model: ReadWrite, StrictBusy: true}, refusals: true, lost: 100}},
	{"semaphore-strict", workload{rules: Rules{Model: Semaphore, Permits: 3, StrictBusy: true}, refusals: true, lost: 100}},
}

// cpu is the time that this process has had. Unlike the time on the wall, it
// says little about what else the machine is doing.
func cpu() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// cold is larger than a processor's caches.
var cold = make([]byte, 96<<20)

// once judges a history as a program does that has just loaded it: once, with
// memory that it must ask for and caches that hold other things. A history of
// 100,000 calls fits the cache of many processors, and judged again and again it
// is up to twice as fast there, which one of 1,000,000 cannot be.
func once(rules Rules, ops []Op) (Report, time.Duration) {
	runtime.GC() // what the judge before left is kept for one collection
	debug.FreeOSMemory()
	for i := 0; i < len(cold); i += 64 {
		cold[i]++
	}
	before := cpu()
	got := Check(rules, ops)
	return got, cpu() - before
}

// figures of one history.
type figures struct {
	took time.Duration
	more float64 // MB beyond the history
}

// alone judges a history five times, each as if it were the only one. The least
// of five: the others had more to do with the machine.
func (w workload) alone(b *testing.B, calls int) figures {
	w.ops = calls
	ops := w.history()
	resetPeak()
	idle := peak()
	f := figures{took: time.Hour}
	for range 5 {
		got, took := once(w.rules, ops)
		if got.Verdict != Linearizable {
			b.Fatal(got)
		}
		f.took = min(f.took, took)
	}
	f.more = peak() - idle
	return f
}

// resetPeak and peak give the most memory that the process had since, with the
// history in it, in MB: 0 where the system does not say.
func resetPeak() {
	runtime.GC() // what the judge before left is kept for one collection
	debug.FreeOSMemory()
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)
}

func peak() float64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if kb, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.Atoi(strings.Fields(kb)[0])
			return float64(n) / 1024
		}
	}
	return 0
}

// BenchmarkSweep prints one line for each model, of processor time and of memory
// beyond the history:
//
//	ms-100k, ms-1M     a history of so many calls, judged once, with cold caches
//	MB-1M              the most memory that takes
//	times-for-10x      ms-1M by ms-100k
//	times-porcupine    how much longer porcupine takes for 100,000 calls, both warm;
//	                   at-least where it had no answer when its time was up
//
// Promised are 1000 ms-1M, 400 MB-1M, 12 times-for-10x and 500 times-porcupine.
func BenchmarkSweep(b *testing.B) {
	for _, c := range workloads {
		b.Run(c.name, func(b *testing.B) {
			small, large := figures{}, figures{}
			for n := 0; b.Loop(); n++ {
				s, l := c.alone(b, 100_000), c.alone(b, 1_000_000)
				if n == 0 || l.took < large.took {
					small, large = s, l
				}
			}
			b.ReportMetric(0, "ns/op") // with the work of making caches cold, which says nothing
			b.ReportMetric(float64(small.took.Microseconds())/1000, "ms-100k")
			b.ReportMetric(float64(large.took.Microseconds())/1000, "ms-1M")
			b.ReportMetric(large.more, "MB-1M")
			b.ReportMetric(float64(large.took)/float64(small.took), "times-for-10x")
			if !c.rules.StrictBusy {
				c.against(b)
			}
		})
	}
}

// plain is the cheapest model that porcupine can be given of each lock: who
// holds it and how often, and the last fence. It knows no leases and no owners
// of acquisitions, and makes do with less than the sweep decides.
type plain struct {
	holder, count int
	fence         uint64
}

func porcupineModel(rules Rules, ops []Op) (porcupine.Model, []porcupine.Operation) {
	history := make([]porcupine.Operation, len(ops))
	for i, op := range ops {
		history[i] = porcupine.Operation{Input: op, Call: op.Call, Return: op.Return}
	}
	return porcupine.Model{
		Init: func() any { return plain{} },
		Step: func(state, input, _ any) (bool, any) {
			s, op := state.(plain), input.(Op)
			who := op.Hold
			switch {
			case rules.Model == Reentrant || rules.Model == ReentrantFenced:
				who = op.Owner
			case rules.Model == Semaphore || op.Kind == RAcquire || op.Kind == RRelease:
				who = -1
			}
			if !op.acquires() {
				return s.count > 0 && s.holder == who, plain{holder: s.holder, count: s.count - 1, fence: s.fence}
			}
			ok := s.count == 0 || s.holder == who && (rules.Model != Semaphore || s.count < rules.Permits)
			if rules.Model == Fenced || rules.Model == ReentrantFenced {
				ok = ok && op.Fence > s.fence
				s.fence = op.Fence
			}
			return ok, plain{holder: who, count: s.count + 1, fence: s.fence}
		},
	}, history
}

// porcupineTakes is the processor time that porcupine needs for an answer, or had
// when it was stopped. It counts its patience on the wall, and on a busy machine
// gets little of that: it is asked again with more until it had so much.
func porcupineTakes(model porcupine.Model, history []porcupine.Operation, enough time.Duration) (porcupine.CheckResult, time.Duration) {
	if os.Getenv("HOLDFAST_LONG") != "" {
		enough = time.Minute
	}
	for patience := enough + enough/4; ; patience *= 2 {
		runtime.GC()
		before := cpu()
		answer := porcupine.CheckOperationsTimeout(model, history, patience)
		took := cpu() - before
		if answer != porcupine.Unknown || took >= enough || patience > 8*enough {
			return answer, took
		}
	}
}

// against judges the same 100,000 calls with both in turn, each with warm caches
// and memory, and compares the medians. Where porcupine's time is up, the sweep is
// faster by at least so much.
func (w workload) against(b *testing.B) {
	w.ops = 100_000
	ops := w.history()
	model, history := porcupineModel(w.rules, ops)
	answer, took := porcupineTakes(model, history, 3*time.Second)
	if answer == porcupine.Illegal {
		b.Fatal("porcupine says that it is illegal")
	}
	var ours, theirs []time.Duration
	for range 3 {
		for range 15 {
			runtime.GC() // so that memory is used again
			before := cpu()
			if got := Check(w.rules, ops); got.Verdict != Linearizable {
				b.Fatal(got)
			}
			ours = append(ours, cpu()-before)
		}
		if answer == porcupine.Ok { // the first time was to be warm
			_, took = porcupineTakes(model, history, 3*time.Second)
		}
		theirs = append(theirs, took)
	}
	unit := "times-porcupine"
	if answer == porcupine.Unknown {
		unit += "-at-least"
	}
	b.ReportMetric(float64(median(theirs))/float64(median(ours)), unit)
}

func median(list []time.Duration) time.Duration {
	slices.Sort(list)
	return list[len(list)/2]
}

func answered(r porcupine.CheckResult) float64 {
	if r == porcupine.Unknown {
		return 0
	}
	return 1
}

// amongUnknowns is a history of 301 calls, of which 17 acquires have no answer,
// and with one grant too many. A search tries every subset of the 17.
func amongUnknowns() []Op {
	ops := workload{ops: 283}.history()
	for i := range 17 {
		ops = append(ops, Op{ID: len(ops), Hold: 1000 + i, Outcome: Unknown, Call: ops[i*14].Call, LeaseEnd: ops[i*14].Call + 30})
	}
	wrong := ops[200]
	wrong.ID, wrong.Hold, wrong.Fence = len(ops), 5000, 0
	return append(ops, wrong)
}

// BenchmarkRefutation is of that history. With
// HOLDFAST_LONG, porcupine gets a minute, and does not answer either.
func BenchmarkRefutation(b *testing.B) {
	ops := amongUnknowns()
	best := time.Hour
	for b.Loop() {
		began := time.Now()
		if got := Check(Rules{}, ops); got.Verdict != Illegal {
			b.Fatal(got)
		}
		best = min(best, time.Since(began))
	}
	model, history := referenceFor(Rules{}, ops)
	answer, took := porcupineTakes(model, history, 2*time.Second)
	b.ReportMetric(float64(best.Nanoseconds())/1e6, "ms")
	b.ReportMetric(took.Seconds(), "porcupine-cpu-s")
	b.ReportMetric(answered(answer), "porcupine-answered")
}

// TestRefutesAmongUnknowns: in 10 ms.
func TestRefutesAmongUnknowns(t *testing.T) {
	ops := amongUnknowns()
	for _, strict := range []bool{false, true} {
		began := cpu()
		got := Check(Rules{StrictBusy: strict}, ops)
		if took := cpu() - began; took > 10*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if got.Verdict != Illegal || len(ops) < 301 {
			t.Errorf("%d calls: %+v", len(ops), got)
		}
		t.Log(got.Text)
	}
}

// TestMillionCalls holds the promise about time and memory, for the plainest lock
// and for the one that takes most.
func TestMillionCalls(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("measures time")
	}
	for _, rules := range []Rules{{StrictBusy: true}, {Model: Semaphore, Permits: 3, StrictBusy: true}} {
		ops := workload{rules: rules, ops: 1_000_000, refusals: true, lost: 100}.history()
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := cpu()
		got := Check(rules, ops)
		took := cpu() - began
		runtime.ReadMemStats(&after)
		if got.Verdict != Linearizable {
			t.Fatal(got)
		}
		asked := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("model %d: %d calls in %v, %d MB allocated", rules.Model, len(ops), took, asked)
		// Twice the promised second, for slower machines.
		if took > 2*time.Second || asked > 300 {
			t.Errorf("model %d: %v and %d MB", rules.Model, took, asked)
		}
	}
}
