package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-io/holdfast/checker"
	"github.com/holdfast-io/holdfast/history"
)

// ErrorCount is how often one error came up in a run.
type ErrorCount struct {
	// Code of the error: LOCK_TIMEOUT, UNLOCK_FAILED, ...
	Code  string `json:"code"`
	Count int    `json:"count"`
	// Found: nobody was told, a check found it. Otherwise it is what the lock,
	// or the protected resource, told a client.
	Found bool `json:"found"`
	// First is the text of the first one.
	First string `json:"first"`
}

// Errors counts the errors that clients were told, and the findings that amount
// to one, by code and in the order of the codes.
func Errors(h *history.History, checks []checker.Result) []ErrorCount {
	type key struct {
		code  string
		found bool
	}
	counts := map[key]*ErrorCount{}
	add := func(code string, n int, found bool, text string) {
		k := key{code: code, found: found}
		if counts[k] == nil {
			counts[k] = &ErrorCount{Code: code, Found: found, First: text}
		}
		counts[k].Count += n
	}
	for _, e := range h.Events {
		if e.Op != nil && e.Op.Code != "" {
			add(e.Op.Code, 1, false, e.Op.Error)
		}
	}
	for _, c := range checks {
		listed := map[string]int{}
		for _, v := range c.Violations {
			if v.Code != "" {
				listed[v.Code]++
				add(v.Code, 1, true, v.Summary)
			}
		}
		// A check lists only the first of very many. Where all are of one code,
		// its figures count the rest.
		for code, n := range listed {
			if n == len(c.Violations) {
				add(code, found(c)-n, true, "")
			}
		}
	}
	var out []ErrorCount
	for _, c := range counts {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b ErrorCount) int {
		if n := cmp.Compare(a.Code, b.Code); n != 0 {
			return n
		}
		return strings.Compare(a.First, b.First)
	})
	return out
}

// errorLine is "told to clients: LOCK_TIMEOUT 12, UNLOCK_FAILED 1; found:
// CONCURRENT_MODIFICATION 2".
// quote is how a code is written.
func errorLine(r Run, quote func(string) string) string {
	var told, found []string
	for _, e := range r.Errors {
		s := fmt.Sprintf("%s %d", quote(e.Code), e.Count)
		if e.Found {
			found = append(found, s)
		} else {
			told = append(told, s)
		}
	}
	var parts []string
	if len(told) > 0 {
		parts = append(parts, "told to clients: "+strings.Join(told, ", "))
	}
	if len(found) > 0 {
		parts = append(parts, "found: "+strings.Join(found, ", "))
	}
	return strings.Join(parts, "; ")
}
