package process

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-io/holdfast/cluster"
)

var _ cluster.Clocks = (*World)(nil)

// clock is a node's wall clock as libfaketime shows it. The file says
// "+OFF xRATE", which means
//
//	shown = begin + OFF + (real - begin) * RATE
//
// where begin is when libfaketime was loaded. To change the rate without a
// jump, begin must be known, and libfaketime tells it to nobody: calibrate
// measures it. The rate is always written, since libfaketime keeps the last
// one when none is given.
type clock struct {
	file string

	mu       sync.Mutex
	begin    time.Time // zero until calibrated
	settings []setting // in time order, the last one holds
}

// setting holds from an instant of real time on.
type setting struct {
	from   time.Time
	offset time.Duration // of the shown time at that instant
	rate   float64
}

func (s setting) offsetAt(now time.Time) time.Duration {
	return s.offset + time.Duration(float64(now.Sub(s.from))*(s.rate-1))
}

// env lets a server see the clock of the file. Without a preload it sees the
// machine's.
func (c *clock) env(preload string) []string {
	if preload == "" {
		return nil
	}
	return []string{"LD_PRELOAD=" + preload, "FAKETIME_TIMESTAMP_FILE=" + c.file, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"}
}

func newClock(file string) *clock {
	return &clock{file: file, settings: []setting{{from: time.Now(), rate: 1}}}
}

func (c *clock) now() setting { return c.settings[len(c.settings)-1] }

// write replaces the file at once, so that the server never reads half of it.
func (c *clock) write(offset time.Duration, rate float64) error {
	text := fmt.Sprintf("%+.6f x%s\n", offset.Seconds(), strconv.FormatFloat(rate, 'f', -1, 64))
	if err := os.WriteFile(c.file+".new", []byte(text), 0o644); err != nil {
		return fmt.Errorf("set the clock: %w", err)
	}
	if err := os.Rename(c.file+".new", c.file); err != nil {
		return fmt.Errorf("set the clock: %w", err)
	}
	return nil
}

// apply writes the setting that holds. The caller holds c.mu.
func (c *clock) apply() error {
	s := c.now()
	if c.begin.IsZero() || s.rate == 1 {
		return c.write(s.offset, s.rate)
	}
	shift := time.Duration(float64(s.from.Sub(c.begin)) * (1 - s.rate))
	return c.write(s.offset+shift, s.rate)
}

// beforeStart lets a server begin with the offset of now and the rate 1, the
// only one for which begin does not matter.
func (c *clock) beforeStart(now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begin = time.Time{}
	return c.write(c.now().offsetAt(now), 1)
}

// calibrate measures begin: with the rate one half, the shown time falls
// behind by half of what has passed since begin. It sets the clock back for
// about a millisecond, and never forward, which could expire keys.
func (c *clock) calibrate(ctx context.Context, direct *redis.Client) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	offset := c.now().offsetAt(time.Now())
	if err := c.write(offset, 0.5); err != nil {
		return err
	}
	// The first answer pays for the connection, so the second one counts.
	if err := direct.Time(ctx).Err(); err != nil {
		return fmt.Errorf("calibrate the clock: %w", err)
	}
	before := time.Now()
	shown, err := direct.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("calibrate the clock: %w", err)
	}
	now := before.Add(time.Since(before) / 2)
	// The wall clock of both is compared, without the monotonic reading.
	c.begin = now.Add(-2 * now.Round(0).Add(offset).Sub(shown))
	return c.apply()
}

// set makes a change from now on.
func (c *clock) set(f func(now setting) setting) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	last := c.now()
	next := f(setting{from: now, offset: last.offsetAt(now), rate: last.rate})
	c.settings = append(c.settings, next)
	if err := c.apply(); err != nil {
		c.settings = c.settings[:len(c.settings)-1]
		return err
	}
	return nil
}

// real gives the instant of real time at which the clock showed a time, or
// arrival when the two do not fit together, as around a jump.
func (c *clock) real(shown, arrival time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	const slack = 2 * time.Millisecond // a change takes about half of this
	for i := len(c.settings) - 1; i >= 0; i-- {
		s := c.settings[i]
		if s.rate == 0 {
			continue
		}
		// shown = from + offset + (real - from) * rate
		past := shown.Sub(s.from.Round(0).Add(s.offset))
		at := s.from.Add(time.Duration(float64(past) / s.rate))
		if at.Before(s.from.Add(-slack)) && i > 0 {
			continue // it was shown before this setting
		}
		if at.After(arrival) || arrival.Sub(at) > time.Minute {
			break
		}
		return at
	}
	return arrival
}

// JumpClock moves a node's wall clock by a duration, which may be negative.
// The node sees it at its next look at the clock. A node that is down shows
// the new time when it is back.
func (w *World) JumpClock(ctx context.Context, name string, by time.Duration) error {
	return w.onClock(ctx, "jump the clock of", name, func(n *node) error {
		return n.clock.set(func(s setting) setting {
			s.offset += by
			return s
		})
	})
}

// RateClock makes a node's wall clock run at a multiple of real time from now
// on, without a jump of more than about a millisecond. The rate must be above
// zero.
func (w *World) RateClock(ctx context.Context, name string, rate float64) error {
	if !(rate > 0) {
		return fmt.Errorf("rate the clock of node %s at %v: the rate must be above zero", name, rate)
	}
	return w.onClock(ctx, "rate the clock of", name, func(n *node) error {
		if !n.runs.can(cluster.CanRateClock) {
			return cluster.ErrUnsupported
		}
		return n.clock.set(func(s setting) setting {
			s.rate = rate
			return s
		})
	})
}

// ResetClock makes a node's wall clock right again.
func (w *World) ResetClock(ctx context.Context, name string) error {
	return w.onClock(ctx, "reset the clock of", name, func(n *node) error {
		return n.clock.set(func(s setting) setting {
			s.offset, s.rate = 0, 1
			return s
		})
	})
}

// onClock is onNode for a node whose clock can be moved.
func (w *World) onClock(ctx context.Context, what, name string, f func(n *node) error) error {
	return w.onNode(ctx, what, name, func(n *node) error {
		if w.place.Preload() == "" || !n.runs.can(cluster.CanJumpClock) {
			return cluster.ErrUnsupported
		}
		return f(n)
	})
}

// offset is how far the clock is off now.
func (c *clock) offset() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now().offsetAt(time.Now())
}
