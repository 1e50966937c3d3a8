package suite

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-io/holdfast/scenarios"
)

// Shard is one part of a suite, I of Of, counted from 1. The zero value is the
// whole.
type Shard struct{ I, Of int }

// MaxShards bounds a slip of the finger.
const MaxShards = 10_000

// ParseShard reads "2/5"; an empty word is the whole.
func ParseShard(s string) (Shard, error) {
	if s == "" {
		return Shard{1, 1}, nil
	}
	i, of, ok := strings.Cut(s, "/")
	a, err1 := strconv.Atoi(i)
	n, err2 := strconv.Atoi(of)
	switch {
	case !ok || err1 != nil || err2 != nil:
		return Shard{}, fmt.Errorf("%q is not a shard: write 1/4 for the first of four", s)
	case a < 1 || a > n:
		return Shard{}, fmt.Errorf("%q is not a shard: the first of %d is 1/%d, and the last is %d/%d", s, max(n, 1), max(n, 1), max(n, 1), max(n, 1))
	case n > MaxShards:
		return Shard{}, fmt.Errorf("%q: at most %d shards", s, MaxShards)
	}
	return Shard{a, n}, nil
}

// Cut gives the shard's jobs: every n-th, so that slow scenarios are shared out.
func (s Shard) Cut(jobs []Job) []Job {
	if s.Of <= 1 {
		return jobs
	}
	var out []Job
	for i := s.I - 1; i < len(jobs); i += s.Of {
		out = append(out, jobs[i])
	}
	return out
}

// ByRounds sorts jobs so that every pair of lock and scenario gets its first
// seed before any gets its second: what a budget leaves out is then the least
// that can be.
func ByRounds(jobs []Job) []Job {
	out := slices.Clone(jobs)
	slices.SortStableFunc(out, func(a, b Job) int { return a.Round - b.Round })
	return out
}

// Fingerprint is the same for two lists of jobs only if they are the same
// runs of the same scenarios: shards are joined only then.
func Fingerprint(jobs []Job, load func(string) (*scenarios.Scenario, error)) (string, error) {
	sum := sha256.New()
	told := map[string]bool{}
	for _, j := range jobs {
		if !told[j.Scenario] {
			told[j.Scenario] = true
			sc, err := load(j.Scenario)
			if err != nil {
				return "", err
			}
			text, err := scenarios.Encode(sc)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(sum, "%d\n%s\n", len(text), text)
		}
		fmt.Fprintf(sum, "%q %q %q %q %d %d\n", j.Name, j.Lock, j.World, j.Topology, j.Seed, j.TTL)
		if place := j.Resource.String(); place != "" {
			fmt.Fprintf(sum, "%q\n", place)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
