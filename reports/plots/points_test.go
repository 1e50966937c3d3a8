package plots

import (
	"gonum.org/v1/plot/plotter"

	"github.com/holdfast-io/holdfast/checker"
)

// facts is a run of so many seconds.
func facts(end int64) *checker.Facts { return &checker.Facts{End: end * 1e9} }

// points are spread over a run and over heights from 1 to 8.
func points(n int, end float64) plotter.XYs {
	out := make(plotter.XYs, n)
	for i := range out {
		out[i] = plotter.XY{X: float64(i) / float64(n) * end, Y: 1 + float64(i%8)}
	}
	return out
}
