package sweep

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
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
}

func (w workload) history() []Op {
	r := rand.New(rand.NewPCG(1, 1))
	ops := make([]Op, 0, w.ops+2)
	now := int64(1000)
	number := 0 // of the last acquisition
	for hold := 0; len(ops) < w.ops; hold++ {
		number++
		granted := now + r.Int64N(3)
		returned := granted + r.Int64N(30)
		released := returned + r.Int64N(50)
		freed := released + r.Int64N(10)
		op := Op{ID: len(ops), Hold: number, Owner: hold % 8, Call: granted - r.Int64N(400), Return: returned,
			LeaseEnd: granted + 10_000, Fence: uint64(hold + 1)}
		if w.rules.Model == ReadWrite && r.IntN(2) == 0 {
			op.Kind = RAcquire
		}
		ops = append(ops, op, Op{ID: len(ops) + 1, Hold: number, Owner: op.Owner, Kind: op.Kind + 1,
			Call: released, Return: freed + r.Int64N(10)})
		if w.lost > 0 && hold%w.lost == 0 {
			number++
			ops = append(ops, Op{ID: len(ops), Hold: number, Owner: 9, Outcome: Unknown,
				Call: granted, LeaseEnd: granted + 500})
		}
		if w.refusals && r.IntN(3) == 0 {
			at := granted + r.Int64N(freed-granted+1)
			number++
			ops = append(ops, Op{ID: len(ops), Hold: number, Owner: 10, Outcome: Busy,
				Call: at - r.Int64N(5), Return: at + r.Int64N(5)})
		}
		now = freed
	}
	return ops
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

// BenchmarkSweep is to judge 1,000,000 calls in a second on one core. From
// 100,000 to 1,000,000 calls the time grows by more than the sorting accounts
// for, since the holds no longer fit the cache.
func BenchmarkSweep(b *testing.B) {
	for _, c := range []struct {
		name string
		workload
	}{
		{"mutex", workload{rules: Rules{Model: Mutex}}},
		{"fenced", workload{rules: Rules{Model: Fenced}}},
		{"mutex-strict", workload{rules: Rules{Model: Mutex, StrictBusy: true}, refusals: true, lost: 100}},
		{"reentrant-strict", workload{rules: Rules{Model: Reentrant, StrictBusy: true}, refusals: true, lost: 100}},
		{"read-write-strict", workload{rules: Rules{Model: ReadWrite, StrictBusy: true}, refusals: true, lost: 100}},
		{"semaphore", workload{rules: Rules{Model: Semaphore, Permits: 3}}},
	} {
		for _, n := range []int{20_000, 100_000, 1_000_000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				c.ops = n
				ops := c.history()
				b.ReportAllocs()
				b.ResetTimer()
				var got Report
				before := cpu()
				for b.Loop() {
					if got = Check(c.rules, ops); got.Verdict != Linearizable {
						b.Fatal(got)
					}
				}
				b.ReportMetric(float64((cpu()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
				b.ReportMetric(float64(got.Steps), "steps")
			})
		}
	}
}

// porcupineMutex is the cheapest model that porcupine can be given: the state
// is the acquisition that holds.
func porcupineMutex(ops []Op) (porcupine.Model, []porcupine.Operation) {
	history := make([]porcupine.Operation, len(ops))
	for i, op := range ops {
		history[i] = porcupine.Operation{Input: op, Call: op.Call, Return: op.Return}
	}
	return porcupine.Model{
		Init: func() any { return 0 },
		Step: func(state, input, _ any) (bool, any) {
			s, op := state.(int), input.(Op)
			if op.Kind == Release {
				return s == op.Hold+1, 0
			}
			return s == 0, op.Hold + 1
		},
		Hash: func(state any) uint64 { return uint64(state.(int)) },
	}, history
}

// BenchmarkPorcupine judges the same plain mutex history.
func BenchmarkPorcupine(b *testing.B) {
	sizes := []int{20_000}
	if os.Getenv("HOLDFAST_LONG") != "" {
		sizes = append(sizes, 100_000)
	}
	for _, n := range sizes {
		b.Run(fmt.Sprintf("mutex/%d", n), func(b *testing.B) {
			ops := workload{rules: Rules{}, ops: n}.history()
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu()
			for b.Loop() {
				if !porcupine.CheckOperations(porcupineMutex(ops)) {
					b.Fatal("illegal")
				}
			}
			b.ReportMetric(float64((cpu()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// TestRefutesAmongUnknowns: 301 calls, of which 17 acquires have no answer, and
// one grant too many. A search tries every subset of the 17.
func TestRefutesAmongUnknowns(t *testing.T) {
	ops := workload{ops: 283}.history()
	for i := range 17 {
		ops = append(ops, Op{ID: len(ops), Hold: -1 - i, Outcome: Unknown, Call: ops[i*14].Call, LeaseEnd: ops[i*14].Call + 30})
	}
	wrong := ops[200]
	wrong.ID, wrong.Hold, wrong.Fence = len(ops), 5000, 0
	ops = append(ops, wrong)
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

// TestMillionCalls holds the promise about time and memory.
func TestMillionCalls(t *testing.T) {
	if testing.Short() || raceEnabled {
		t.Skip("measures time")
	}
	ops := workload{ops: 1_000_000, refusals: true, lost: 100}.history()
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := cpu()
	got := Check(Rules{StrictBusy: true}, ops)
	took := cpu() - began
	runtime.ReadMemStats(&after)
	if got.Verdict != Linearizable {
		t.Fatal(got)
	}
	t.Logf("%d calls in %v, %d MB allocated", len(ops), took, (after.TotalAlloc-before.TotalAlloc)>>20)
	// Twice the promised second, for slower machines.
	if took > 2*time.Second || after.TotalAlloc-before.TotalAlloc > 400<<20 {
		t.Errorf("%v and %d bytes", took, after.TotalAlloc-before.TotalAlloc)
	}
}
