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

// Beyond gives a context that ends d after ctx does, for a request whose answer
// is worth waiting for a little. The caller calls cancel when it is done.
func Beyond(ctx context.Context, d time.Duration) (longer context.Context, cancel context.CancelFunc) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			end()
		case <-longer.Done(): // the caller's cancel
		}
	})
	return longer, func() {
		stop()
		end()
	}
}
