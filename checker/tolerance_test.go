package checker

import (
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/history"
)

// TestTolerated holds every check to what looks odd and is right. Each story is
// followed by the same one with a mistake in it, which some check must find, so
// that none passes for want of looking.
func TestTolerated(t *testing.T) {
	const acquire, release = history.Acquire, history.Release
	five := func(h *history.History) *history.History {
		return with(h, func(h *history.Header) { h.Topology, h.Nodes = "independent", 5 })
	}
	votes := func(t float64, who string, acq int, token string, nodes ...string) []history.Event {
		events := []history.Event{invoke(t-0.1, who, acquire, acq)}
		for i, n := range nodes {
			events = append(events, server(t-0.09+float64(i)/100, n, who, "SET", token, 10))
		}
		return append(events, ok(t, who, acquire, acq))
	}
	deletes := func(t float64, who string, acq int, nodes ...string) []history.Event {
		events := []history.Event{invoke(t, who, release, acq)}
		for i, n := range nodes {
			events = append(events, gone(t+0.01+float64(i)/100, n, who, "EVALSHA"))
		}
		return append(events, ok(t+0.1, who, release, acq))
	}
	expired := gone(10.951, "n1", "", history.Expired)
	first := taken(1, "c1", 1, "c1#1")
	down := func(phase string, at float64) history.Event { return hit(at, 1, phase, "kill", "n5") }

	for _, tt := range []struct {
		name       string
		right, bad *history.History
		found      string // the check that finds the mistake
	}{
		{"the release of an expired lock is refused",
			story(join(first, expired, invoke(12, "c1", release, 1), server(12.05, "n1", "c1", "EVALSHA", "", -0.002), code(fail(12.1, "c1", release, 1), "UNLOCK_FAILED"))...),
			story(join(first, expired, taken(11.5, "c2", 2, "c2#1"), invoke(12, "c1", release, 1), gone(12.05, "n1", "c1", "DEL"), ok(12.1, "c1", release, 1), given(14, "c2", 2))...),
			ownershipName},
		{"the key is absent after a release that was cut, and is asked for again",
			story(join(first, hit(4.9, 1, history.Start, "lose-reply", "n1->c1"), invoke(5, "c1", release, 1), gone(5.05, "n1", "c1", "EVALSHA"),
				replied(server(5.2, "n1", "c1", "EVALSHA", "", -0.002), "0"), info(5.3, "c1", release, 1), taken(6, "c2", 2, "c2#1"), given(8, "c2", 2))...),
			story(join(first, hit(4.9, 1, history.Start, "lose-reply", "n1->c1"), invoke(5, "c1", release, 1), gone(5.05, "n1", "c1", "DEL"),
				taken(6, "c2", 2, "c2#1"), gone(6.2, "n1", "c1", "DEL"), ok(6.3, "c1", release, 1), given(8, "c2", 2))...),
			ownershipName},
		{"NOSCRIPT, and then EVAL",
			story(join(invoke(0.9, "c1", acquire, 1), replied(server(0.93, "n1", "c1", "EVALSHA", "", -0.002), "NOSCRIPT No matching script."), server(0.95, "n1", "c1", "EVAL", "c1#1", 10), ok(1, "c1", acquire, 1),
				invoke(5, "c1", release, 1), replied(server(5.01, "n1", "c1", "EVALSHA", "c1#1", 5.94), "NOSCRIPT No matching script."), gone(5.05, "n1", "c1", "EVAL"), ok(5.1, "c1", release, 1))...),
			story(join(server(0, "n1", "c2", "SET", "c2#1", 10), invoke(0.9, "c1", acquire, 1), replied(server(0.93, "n1", "c1", "EVALSHA", "c2#1", 9.07), "NOSCRIPT No matching script."), ok(1, "c1", acquire, 1), note(2, "c1", history.Worked, 1))...),
			leaseName},
		{"a minority of the nodes is down",
			five(story(join(down(history.Start, 0), votes(1, "c1", 1, "c1#1", "n1", "n2", "n3", "n4"), deletes(5, "c1", 1, "n1", "n2", "n3", "n4"), down(history.Stop, 6),
				votes(7, "c2", 2, "c2#1", "n1", "n2", "n3", "n4", "n5"), deletes(8, "c2", 2, "n1", "n2", "n3", "n4", "n5"))...)),
			five(story(join(down(history.Start, 0), votes(1, "c1", 1, "c1#1", "n1", "n2"), deletes(5, "c1", 1, "n1", "n2"))...)),
			leaseName},
		{"a loss is told a little early",
			able(story(join(invoke(0.9, "c1", acquire, 1), server(0.95, "n1", "c1", "SET", "c1#1", 10), until(ok(1, "c1", acquire, 1), 10.8), note(10.7, "c1", history.Lost, 1), expired,
				invoke(11, "c1", release, 1), server(11.05, "n1", "c1", "EVALSHA", "", -0.002), code(fail(11.1, "c1", release, 1), "UNLOCK_FAILED"))...), "lost", "until"),
			able(story(join(first, gone(2, "n1", "", history.Lostkeys), note(9, "c1", history.Worked, 1), note(20, "c1", history.Lost, 1))...), "lost"),
			lossNoticeName},
		{"an acquisition anew under the old token, when the first had expired",
			story(join(first, expired, invoke(12, "c1", release, 1), server(12.05, "n1", "c1", "EVALSHA", "", -0.002), code(fail(12.1, "c1", release, 1), "UNLOCK_FAILED"),
				taken(13, "c1", 2, "c1#1"), given(15, "c1", 2))...),
			story(join(first, expired, invoke(12, "c1", history.Extend, 1), server(12.05, "n1", "c1", "SET", "c1#1", 10), ok(12.1, "c1", history.Extend, 1), given(15, "c1", 1))...),
			continuityName},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, h := range []*history.History{tt.right, tt.bad} {
				h.Header.LivenessBound = 5 * time.Second
				if p := history.Validate(h); len(p) > 0 {
					t.Fatalf("the test's history is malformed: %v", p)
				}
			}
			judged := 0
			for _, r := range Judge(tt.right) {
				if r.Verdict == Violation || r.Verdict == Error {
					t.Errorf("%s: %s %s %+v", r.Name, r.Verdict, r.Reason, r.Violations)
				}
				if r.Verdict == Pass {
					judged++
				}
			}
			if judged < 8 {
				t.Errorf("only %d checks could judge it", judged)
			}
			found := false
			for _, r := range Judge(tt.bad) {
				found = found || r.Name == tt.found && r.Verdict == Violation
			}
			if !found {
				t.Errorf("%s does not find the mistake", tt.found)
			}
		})
	}
}
