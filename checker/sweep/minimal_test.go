package sweep

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
)

// TestMinimal: on random illegal histories, the calls of the cut are illegal by
// themselves, for the reference too; and without any one of them, they are not.
func TestMinimal(t *testing.T) {
	for _, m := range models {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			count := map[string]int{}
			for seed := range uint64(rounds(t)) / 4 {
				r := rand.New(rand.NewPCG(seed, 33+uint64(m.model)))
				rules := randomRules(r, m.model)
				ops, _ := draw(r, rules)
				report := Check(rules, ops)
				if report.Verdict != Illegal {
					continue
				}
				ids, cut := Minimal(rules, ops, report)
				if !cut {
					t.Fatalf("seed %d: not cut: %s\n%s", seed, report.Text, timeline(rules, ops))
				}
				count["judged"]++
				count["calls"] += len(ids)
				if len(ids) > 4 {
					count["long"]++
				}
				if why := minimalNot(rules, ops, ids); why != "" {
					t.Fatalf("seed %d: %s: %v of %v: %s\n%s", seed, why, ids, report.Ops, report.Text, timeline(rules, ops))
				}
			}
			t.Log(count)
			if count["judged"] < rounds(t)/40 {
				t.Errorf("too few histories: %v", count)
			}
		})
	}
}

// minimalNot says why calls are no minimal contradiction. It takes calls away in
// its own way and asks the reference.
func minimalNot(rules Rules, ops []Op, ids []int) string {
	if len(ids) == 0 {
		return "nothing is listed"
	}
	legal := func(listed []int) bool {
		model, history := referenceFor(rules, forgotten(rules, ops, listed))
		return porcupine.CheckOperationsTimeout(model, history, patience) == porcupine.Ok
	}
	if legal(ids) {
		return "they do not contradict each other"
	}
	if plain := rules; rules.StrictBusy {
		plain.StrictBusy = false
		model, history := referenceFor(plain, forgotten(rules, ops, ids))
		if porcupine.CheckOperationsTimeout(model, history, patience) == porcupine.Illegal {
			rules = plain // it needs no refusals
		}
	}
	for _, op := range ops {
		switch {
		case !slices.Contains(ids, op.ID) || op.acquires() && op.Outcome == Unknown || mayExplain(rules, ops, ids, op):
			continue
		case !legal(slices.DeleteFunc(slices.Clone(ids), func(id int) bool { return id == op.ID })):
			return "one is not needed"
		}
	}
	return ""
}

// forgotten keeps what is listed, and acquires without an answer.
func forgotten(rules Rules, ops []Op, listed []int) []Op {
	var out []Op
	for _, a := range ops {
		if !a.acquires() {
			continue
		}
		releases := pick(ops, func(o Op) bool { return o.Hold == a.Hold && !o.acquires() })
		proven := !rules.LenientRelease && slices.ContainsFunc(releases, func(o Op) bool { return o.Outcome == OK })
		kept := pick(releases, func(o Op) bool { return slices.Contains(listed, o.ID) })
		switch {
		case a.Outcome == Unknown && !proven:
			out = append(append(out, a), releases...)
		case slices.Contains(listed, a.ID):
			if len(kept) < len(releases) {
				a.LeaseEnd = cmp.Or(a.Call, -1)
			}
			out = append(append(out, a), kept...)
		}
	}
	return out
}

// mayExplain says that a call belongs to an acquisition that overlaps a listed
// refusal of somebody whom it excludes.
func mayExplain(rules Rules, ops []Op, ids []int, of Op) bool {
	c := newCutter(rules, ops)
	a := &c.acqs[c.of.get(of.Hold)]
	for i := range c.acqs {
		r := &c.acqs[i]
		if rules.StrictBusy && c.refusal(r) && slices.Contains(ids, ops[r.acquire].ID) && of.acquires() && c.blocks(a, r) {
			return true
		}
	}
	return false
}
