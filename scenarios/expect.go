package scenarios

import (
	"slices"

	"github.com/goccy/go-yaml/ast"
)

// checks that an expectation may name, in the order of reports.
var checks = []string{
	"assumptions", "independence", "exclusion", "updates", "fencing", "linearizability",
	"lease", "ownership", "continuity", "validity", "ttl", "orphans", "loss-notice", "renewal", "answers", "deadline", "order", "load",
	"liveness", "coverage",
}

// verdicts that may be expected of every check. "any" leaves open which answer
// a check gives, as long as it gives one: whether Redlock's fences go backwards
// in a run is luck. "error" is none of them: a scenario that expects the
// harness to fail expects nothing of a lock.
var verdicts = []string{"pass", "violation", "unknown", "any"}

// kinds of violation that may be expected instead of the plain word, as package
// checker names them: overrun is the holder's doing, broken the lock service's.
var kinds = map[string][]string{
	"independence":    {"one-cluster", "copies"},
	"exclusion":       {"overrun", "broken"},
	"updates":         {"lost-update", "read-changed"},
	"fencing":         {"fence-not-monotonic", "fence-repeated", "stale-write", "newest-refused", "unfenced-write", "fence-missing", "fence-undeclared"},
	"linearizability": {"not-linearizable", "refused-free"},
	"lease":           {"never-there", "data-lost", "overwritten", "deleted", "expired-early"},
	"ownership":       {"foreign-delete", "foreign-overwrite", "stale-release", "foreign-extend", "shared-token"},
	"continuity":      {"owner-between", "gap"},
	"validity":        {"too-late", "over-at-grant"},
	"ttl":             {"no-ttl", "gone", "too-long", "too-short", "shrinks"},
	"orphans":         {"left-for-ever", "kept-alive", "orphan"},
	"loss-notice":     {"no-notice", "late-notice", "false-notice"},
	"renewal":         {"stopped"},
	"answers":         {"no-but-kept", "no-but-quorum", "no-but-valid", "yes-but-gone", "yes-but-kept", "no-but-deleted", "gave-up-early"},
	"deadline":        {"never-returned", "late-return"},
	"order":           {"overtaken"},
	"load":            {"after-release", "storm"},
	"liveness":        {"no-grant", "no-ttl-key", "deadlock", "shut-out"},
}

// values that may be expected of a check.
func values(check string) []string { return append(slices.Clone(verdicts), kinds[check]...) }

// decodeYAML reads either form: a flat map from checks to values, which holds
// for all locks, or a map from locks to such maps.
func (e *Expect) decodeYAML(d *decoder, path string, n ast.Node) {
	pairs, ok := d.pairs(path, n)
	if !ok {
		return
	}
	out := Expect{}
	if !slices.ContainsFunc(pairs, func(p pair) bool { _, isMap := p.value.(ast.MapNode); return isMap }) {
		out[Default] = d.expectation(path, pairs)
		*e = out
		return
	}
	for _, p := range pairs {
		at := path + "/" + p.key
		if slices.Contains(checks, p.key) {
			d.failAt(p.at, "%s is a check and stands among locks: put it under default or under a lock", p.key)
			continue
		}
		if of, ok := d.pairs(at, p.value); ok {
			out[p.key] = d.expectation(at, of)
		}
	}
	*e = out
}

// expectation reads a flat map from checks to values.
func (d *decoder) expectation(path string, pairs []pair) map[string]string {
	out := map[string]string{}
	for _, p := range pairs {
		if !slices.Contains(checks, p.key) {
			d.failAt(p.at, "there is no check %q%s", p.key, meant(p.key, checks))
			continue
		}
		at := path + "/" + p.key
		s, ok := text(p.value)
		if !ok {
			d.fail(at, "here belongs a verdict or a kind, not %s", describe(p.value))
			continue
		}
		if d.word(at, s, values(p.key)) {
			out[p.key] = s
		}
	}
	return out
}
