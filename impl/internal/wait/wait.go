// Package wait is a sleep that a context can end. The locks that try more than
// once, or that renew, share it.
package wait

import (
	"context"
	"time"
)

// For sleeps for d or until ctx ends, whichever comes first, and returns the
// context's error in the second case. A d of zero or less only looks at ctx.
func For(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil || d <= 0 {
		return err
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
