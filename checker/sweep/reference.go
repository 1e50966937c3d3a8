package sweep

import (
	"bytes"
	"strings"

	"github.com/anishathalye/porcupine"
)

// The reference is the sequential lock itself, for porcupine to search with: what
// the sweep is tested against, and what porcupine's viewer shows. It shares
// nothing with the sweep: each call is one operation over the whole
// interval in which it can have happened, the end of a lease is one more, and
// the state is what became of each acquisition.

// refInput is an operation of the reference.
type refInput struct {
	op     Op
	expiry bool
	at     int // the acquisition's place in the state, -1 for a refused acquire
	// label says the operation in the viewer.
	label string
}

// refState says for each acquisition whether it is yet to be granted ('.'),
// holds ('h') or has ended ('e'), what the last fence is, and whether the lock
// was held without a break since it was given.
type refState struct {
	holds string
	fence uint64
	nest  bool
}

type reference struct {
	rules Rules
	// acquires by place.
	acquires []Op
}

func referenceFor(rules Rules, ops []Op) (porcupine.Model, []porcupine.Operation) {
	ref := &reference{rules: rules}
	place := map[int]int{}
	for _, op := range ops {
		if (op.Kind == Acquire || op.Kind == RAcquire) && op.Outcome != Busy {
			place[op.Hold] = len(ref.acquires)
			ref.acquires = append(ref.acquires, op)
		}
	}
	var history []porcupine.Operation
	for _, op := range ops {
		at, ok := place[op.Hold]
		if !ok {
			at = -1
		}
		end := op.Return
		if op.Outcome == Unknown {
			end = Infinity
		}
		history = append(history, porcupine.Operation{Input: refInput{op: op, at: at}, Call: op.Call, Return: end})
		if at >= 0 && (op.Kind == Acquire || op.Kind == RAcquire) && op.LeaseEnd != 0 && op.LeaseEnd != Infinity {
			history = append(history, porcupine.Operation{Input: refInput{op: op, at: at, expiry: true},
				Call: op.LeaseEnd, Return: Infinity})
		}
	}
	model := porcupine.NondeterministicModel{
		Init: func() []any { return []any{refState{holds: strings.Repeat(".", len(ref.acquires))}} },
		Step: func(state, input, _ any) []any {
			var out []any
			for _, s := range ref.step(state.(refState), input.(refInput)) {
				out = append(out, s)
			}
			return out
		},
		Equal: func(a, b any) bool { return a == b },
	}
	return model.ToModel(), history
}

func (s refState) set(at int, to byte) refState {
	b := []byte(s.holds)
	b[at] = to
	return refState{holds: string(b), fence: s.fence, nest: s.nest && bytes.IndexByte(b, 'h') >= 0}
}

func (ref *reference) step(s refState, in refInput) []refState {
	switch {
	case in.expiry:
		if s.holds[in.at] == 'h' {
			return []refState{s, s.set(in.at, 'e')}
		}
		return []refState{s}
	case in.op.Kind == Acquire || in.op.Kind == RAcquire:
		return ref.acquire(s, in)
	default:
		return ref.release(s, in)
	}
}

func (ref *reference) acquire(s refState, in refInput) []refState {
	free := ref.grantable(s, in.op)
	switch in.op.Outcome {
	case Busy:
		if ref.rules.StrictBusy && free {
			return nil
		}
		return []refState{s}
	case Unknown:
		if !free {
			return []refState{s}
		}
		return []refState{s, s.set(in.at, 'h')}
	}
	if !free {
		return nil
	}
	n := s.set(in.at, 'h')
	if f := in.op.Fence; f != 0 && (ref.rules.Model == Fenced || ref.rules.Model == ReentrantFenced) {
		if f < s.fence || f == s.fence && !s.nest {
			return nil
		}
		n.fence, n.nest = f, true
	}
	return []refState{n}
}

// grantable says whether the lock can be granted to a caller.
func (ref *reference) grantable(s refState, op Op) bool {
	holders := 0
	for i, a := range ref.acquires {
		if s.holds[i] != 'h' {
			continue
		}
		holders++
		switch ref.rules.Model {
		case Mutex, Fenced:
			return false
		case Reentrant, ReentrantFenced:
			if a.Owner != op.Owner {
				return false
			}
		case ReadWrite:
			if a.Kind == Acquire || op.Kind == Acquire {
				return false
			}
		}
	}
	return ref.rules.Model != Semaphore || holders < max(1, ref.rules.Permits)
}

func (ref *reference) release(s refState, in refInput) []refState {
	status, sure := byte('.'), false
	if in.at >= 0 {
		status, sure = s.holds[in.at], ref.acquires[in.at].Outcome == OK
	}
	if status == '.' && sure {
		return nil // a release never comes before the acquire that it names
	}
	switch in.op.Outcome {
	case Unknown:
		if status == 'h' {
			return []refState{s, s.set(in.at, 'e')}
		}
		return []refState{s}
	case Busy:
		if status == 'h' {
			return nil
		}
		return []refState{s}
	}
	switch {
	case status == 'h':
		return []refState{s.set(in.at, 'e')}
	case ref.rules.LenientRelease:
		return []refState{s}
	}
	return nil
}
