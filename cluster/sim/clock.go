package sim

import (
	"math"
	"time"
)

// clock is a node's wall clock. It runs beside the bubble's time, which plays
// the part of every machine's monotonic clock and is never touched.
type clock struct {
	since time.Time // bubble time of the last change
	wall  time.Time // what the clock showed then
	rate  float64
	skew  time.Duration // of a healthy clock
}

func newClock(now time.Time, skew time.Duration) clock {
	return clock{since: now, wall: now.Add(skew), rate: 1, skew: skew}
}

// now is the wall clock at a bubble time.
func (c *clock) now(t time.Time) time.Time {
	d := t.Sub(c.since)
	if c.rate != 1 {
		d = time.Duration(float64(d) * c.rate)
	}
	return c.wall.Add(d)
}

// jump moves the clock; rate changes how fast it runs from now on.
func (c *clock) jump(t time.Time, by time.Duration) {
	c.wall = c.now(t).Add(by)
	c.since = t
}

func (c *clock) setRate(t time.Time, rate float64) {
	c.wall = c.now(t)
	c.since = t
	c.rate = rate
}

// until is how long the bubble must wait for the clock to show a wall time: for
// ever, nearly, if the clock all but stands still.
func (c *clock) until(t, wall time.Time) time.Duration {
	d := wall.Sub(c.now(t))
	if c.rate == 1 || d <= 0 {
		return d
	}
	if wait := float64(d) / c.rate; wait < math.MaxInt64/2 {
		return time.Duration(wait) + 1
	}
	return math.MaxInt64 / 2
}
