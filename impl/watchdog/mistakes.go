package watchdog

// Mistakes are classic mistakes that can be switched on, one at a time, to see
// that the harness catches them. They exist for the harness's own tests
// (impl/mutants) and for nothing else. The zero value makes none.
type Mistakes struct {
	// IntervalIsTTL renews every TTL instead of every third of it, when the
	// key has just expired.
	IntervalIsTTL bool
	// NeverStops releases without stopping the renewer. It ends only when a
	// renewal is refused; since the identifier is the object's, it finds the
	// next acquisition of the same object and renews that one too.
	NeverStops bool
	// NeverRenews has a watchdog that does nothing.
	NeverRenews bool
	// WrongUnit renews for as many seconds as milliseconds were meant.
	WrongUnit bool
	// Shrinks renews for half of what acquire asked for.
	Shrinks bool
	// NotRestartedAfterLoss starts no renewal any more once one was refused: the
	// entry of the old lease is still there.
	NotRestartedAfterLoss bool
	// RenewsWithoutOwner starts the renewal of an acquire that failed: what its
	// caller does not know of is renewed for ever.
	RenewsWithoutOwner bool
	// StopsAfterRelease stops the renewal only when the release has worked.
	StopsAfterRelease bool
	// GivesUpAtOnce does not wait although it promises to.
	GivesUpAtOnce bool
	// SleepsThrough asks again only after a whole TTL, since the wake-up that it
	// waits for does not come.
	SleepsThrough bool
	// EntersAfterTheWait goes on when the wait limit has passed, as if it held
	// the lock.
	EntersAfterTheWait bool
	// CancelledWaitIsYes goes on when its wait was cancelled, as if it held the
	// lock.
	CancelledWaitIsYes bool
}

// shape applies the mistakes that are made when the lock is built.
func (m Mistakes) shape(l *Lock) {
	switch {
	case m.IntervalIsTTL:
		l.interval = l.ttl
	case m.NeverRenews:
		l.interval = 1000 * l.ttl
	case m.WrongUnit:
		l.renewed = 1000 * l.ttl
	case m.Shrinks:
		l.renewed = l.ttl / 2
	case m.GivesUpAtOnce:
		l.waitLimit = 0
	case m.SleepsThrough:
		l.pollEvery = l.ttl
	case m.EntersAfterTheWait:
		l.waitLimit = l.ttl / 2
	}
}
