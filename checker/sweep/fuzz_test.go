package sweep

import "testing"

// decode reads a history off bytes: four for each call.
func decode(m Model, data []byte) (Rules, []Op) {
	if len(data) == 0 {
		return Rules{Model: m}, nil
	}
	rules := Rules{Model: m, StrictBusy: data[0]&1 != 0, LenientRelease: data[0]&2 != 0,
		Permits: 1 + int(data[0]>>2&1), Budget: 1_000_000}
	var ops []Op
	acquires := map[int]int{}
	for rest := data[1:]; len(rest) >= 4 && len(ops) < 10; rest = rest[4:] {
		hold := int(rest[0] & 7)
		op := Op{ID: len(ops), Hold: hold, Owner: int(rest[0] >> 3 & 1), Outcome: Outcome(rest[0] >> 5 % 3),
			Call: int64(rest[1] >> 4), Fence: uint64(rest[3] & 3)}
		op.Return = op.Call + int64(rest[1]&15)
		first, again := acquires[hold]
		switch {
		case again:
			op.Kind, op.Owner, op.Fence = ops[first].Kind+1, ops[first].Owner, 0
			if ops[first].Outcome == OK { // never before its acquire
				op.Call += ops[first].Return
				op.Return += ops[first].Return
			}
		default:
			acquires[hold] = len(ops)
			if m == ReadWrite && rest[2]&1 != 0 {
				op.Kind = RAcquire
			}
			if rest[2]&2 != 0 {
				op.LeaseEnd = op.Call + 1 + int64(rest[2]>>4)
			}
		}
		ops = append(ops, op)
	}
	return rules, ops
}

func fuzz(f *testing.F, m Model) {
	f.Add([]byte{1, 0x00, 0x13, 0x82, 1, 0x00, 0x54, 0, 0, 0x21, 0x33, 0, 2})
	f.Add([]byte{3, 0x40, 0x10, 0, 0, 0x00, 0x32, 0, 0, 0x22, 0x31, 0, 0, 0x23, 0x51, 0, 3})
	f.Fuzz(func(t *testing.T, data []byte) {
		rules, ops := decode(m, data)
		if d, _, _ := disagree(rules, ops); d != "" {
			ops = shrink(rules, ops)
			d, _, _ = disagree(rules, ops)
			t.Fatalf("%s\n%s", d, timeline(rules, ops))
		}
	})
}

func FuzzMutex(f *testing.F)           { fuzz(f, Mutex) }
func FuzzFenced(f *testing.F)          { fuzz(f, Fenced) }
func FuzzReentrant(f *testing.F)       { fuzz(f, Reentrant) }
func FuzzReentrantFenced(f *testing.F) { fuzz(f, ReentrantFenced) }
func FuzzReadWrite(f *testing.F)       { fuzz(f, ReadWrite) }
func FuzzSemaphore(f *testing.F)       { fuzz(f, Semaphore) }
