// Package reports tells verdicts to people and machines: text with a lane
// diagram, JSON, markdown, and the matrix of locks against scenarios. All say
// the same thing.
//
// It judges nothing (package checker does) and runs nothing. The JSON types
// below are the published format.
package reports

import (
	"github.com/holdfast-io/holdfast/checker"
)

// Schema names the JSON format.
const Schema = "holdfast/verdict/v1"

// Document is what --format json prints.
type Document struct {
	Schema string `json:"schema"`
	Runs   []Run  `json:"runs"`
}

// Run is one judged run.
type Run struct {
	Scenario string `json:"scenario"`
	About    string `json:"about,omitempty"`
	Lock     string `json:"lock"`
	World    string `json:"world"`
	Topology string `json:"topology"`
	Seed     uint64 `json:"seed"`
	TTLNanos int64  `json:"ttl_ns"`
	// Verdict is the worst of the checks that apply.
	Verdict checker.Verdict `json:"verdict"`
	// Outcome is the one word for a matrix cell: the kind of the gravest
	// violation (overrun, broken, lost-update, ...) or the verdict.
	Outcome string `json:"outcome"`
	// Expected maps each check to what the scenario expects of this lock; a
	// check that is not named must not be violated.
	Expected map[string]string `json:"expected"`
	// Matched says that every expectation was met.
	Matched bool `json:"matched"`
	// Mismatches says in words which were not.
	Mismatches []string `json:"mismatches,omitempty"`
	// History is the path of the stored history, if it was stored.
	History       string `json:"history,omitempty"`
	HistorySHA256 string `json:"history_sha256"`
	// Report is the path of the HTML report, if one was written.
	Report string `json:"report,omitempty"`
	Ops    int    `json:"ops"`

	VirtualSeconds float64          `json:"virtual_seconds"`
	WallSeconds    float64          `json:"wall_seconds"`
	Checks         []checker.Result `json:"checks"`
	// Errors counts, by code, what clients were told and what was found.
	Errors []ErrorCount `json:"errors,omitempty"`
	// Error is set where the run itself failed; the checks then judge what
	// was recorded until then.
	Error string `json:"error,omitempty"`
	// Leaks are goroutines or connections that the lock left behind.
	Leaks []string `json:"leaks,omitempty"`
	// Repeat is the command that repeats this run.
	Repeat string `json:"repeat"`
}
