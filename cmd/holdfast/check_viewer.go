package main

import (
	"fmt"
	"slices"

	"github.com/anishathalye/porcupine"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/checker/sweep"
	"github.com/holdfast-io/holdfast/history"
	"github.com/holdfast-io/holdfast/reports"
)

// nearby is how many acquisitions the viewer shows before and behind those of a
// violation of a stored run.
const nearby = 4

// viewStored writes a page of porcupine's viewer with the first violation of
// linearizability in a stored run and what is near it, or with the first calls.
func viewStored(path string, h *history.History, r reports.Run) error {
	facts := checker.Gather(h)
	var blamed []int
	for _, c := range r.Checks {
		if c.Name == "linearizability" && len(c.Violations) > 0 {
			blamed = c.Violations[0].Ops
		}
	}
	from, to := 0, min(len(facts.Acquisitions), firstShown/2)
	if len(blamed) > 0 {
		first, last := len(facts.Acquisitions), -1
		for i, a := range facts.Acquisitions {
			if slices.Contains(blamed, a.InvokeIndex) || slices.Contains(blamed, a.DoneIndex) {
				first, last = min(first, i), max(last, i)
			}
		}
		from, to = max(0, first-nearby), min(len(facts.Acquisitions), last+nearby+1)
	}
	var shown []sweep.Shown
	clients := map[string]int{}
	for i, a := range facts.Acquisitions[min(from, to):to] {
		if _, ok := clients[a.Client]; !ok {
			clients[a.Client] = len(clients)
		}
		shown = append(shown, callsOf(a, i, clients[a.Client])...)
	}
	var notes []porcupine.Annotation
	for _, f := range facts.Faults {
		notes = append(notes, porcupine.Annotation{Tag: "faults", Description: f.String(), Start: f.Start, End: f.Stop})
	}
	// A release may say yes after the lease, and find nothing to free.
	return writeViewer(path, sweep.Rules{Model: sweep.Mutex, LenientRelease: true}, shown, notes)
}

// callsOf puts an acquisition of a run as calls.
func callsOf(a *checker.Acquisition, hold, client int) []sweep.Shown {
	answer := map[history.Type]sweep.Outcome{history.OK: sweep.OK, history.Fail: sweep.Busy}
	outcome := func(t history.Type) sweep.Outcome {
		if o, ok := answer[t]; ok {
			return o
		}
		return sweep.Unknown
	}
	what := "acquire " + string(a.Outcome)
	op := sweep.Op{Hold: hold, Owner: client, Call: a.Invoked, Return: a.Done, Outcome: outcome(a.Outcome), LeaseEnd: a.LeaseEnd}
	if a.Fence != nil {
		what += fmt.Sprintf(", fence %d", *a.Fence)
	}
	shown := []sweep.Shown{{Op: op, Client: client, Who: a.Client, What: what}}
	if a.ReleaseIndex < 0 {
		return shown
	}
	release := sweep.Op{Hold: hold, Owner: client, Kind: sweep.Release, Call: a.ReleaseInvoked, Return: a.ReleaseDone, Outcome: outcome(a.ReleaseOutcome)}
	if release.Outcome == sweep.Busy {
		release.Outcome = sweep.Unknown // why it failed is not known here
	}
	return append(shown, sweep.Shown{Op: release, Client: client, Who: a.Client, What: "release " + string(a.ReleaseOutcome)})
}
