package reports

import (
	"fmt"
	"math"

	"github.com/holdfast-io/holdfast/checker"
)

// Rate is a share of runs with its 95 % confidence interval: what the runs
// that were played allow one to say about those that were not. A clean sheet of
// few runs says little:
//
//	0 of   3 runs: the true rate may be as high as 56 %
//	0 of 100 runs: it may be as high as 3.7 %
type Rate struct {
	// Hits of Of runs. Runs that proved nothing do not count.
	Hits int `json:"hits"`
	Of   int `json:"of"`
	// Low and High are from 0 to 1; 0 and 1 where there are no runs.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// z95 is the quantile of the normal distribution for 95 % between both tails.
const z95 = 1.959963984540054

// RateOf gives the interval of Wilson's score, which, unlike the textbook's,
// is right for few runs and for rates near 0 and 1. Source: E. B. Wilson,
// "Probable inference, the law of succession, and statistical inference",
// Journal of the American Statistical Association 22 (1927).
func RateOf(hits, of int) Rate {
	if of <= 0 {
		return Rate{High: 1}
	}
	n, p := float64(of), float64(hits)/float64(of)
	scale := 1 / (1 + z95*z95/n)
	middle := scale * (p + z95*z95/(2*n))
	half := scale * z95 * math.Sqrt(p*(1-p)/n+z95*z95/(4*n*n))
	r := Rate{Hits: hits, Of: of, Low: max(0, middle-half), High: min(1, middle+half)}
	if hits == 0 {
		r.Low = 0 // and no rounding error
	}
	if hits == of {
		r.High = 1
	}
	return r
}

// Violations is the share of runs with a violation among those with an answer.
func Violations(runs []Run) Rate {
	hits, of := 0, 0
	for _, r := range runs {
		switch r.Verdict {
		case checker.Violation:
			hits++
			of++
		case checker.Pass:
			of++
		}
	}
	return RateOf(hits, of)
}

// Interval says the interval in percent: "(84-100 %)".
func (r Rate) Interval() string {
	if r.Of == 0 {
		return ""
	}
	return fmt.Sprintf("(%s-%s %%)", percent(r.Low), percent(r.High))
}

// percent writes a share with one decimal where it is small, and with two
// digits where even that would be none.
func percent(p float64) string {
	p *= 100
	switch {
	case p > 0 && p < 0.095:
		return trim(p)
	case p > 0 && p < 9.95:
		return fmt.Sprintf("%.1f", p)
	}
	return fmt.Sprintf("%.0f", p)
}
