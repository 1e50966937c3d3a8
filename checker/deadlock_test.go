package checker

import (
	"testing"

	"github.com/holdfast-io/holdfast/history"
)

// on puts events on a lock with a name.
func on(lock string, events ...history.Event) []history.Event {
	for _, e := range events {
		e.Op.Lock = lock
	}
	return events
}

// ended closes a story with a final phase in which the lock is granted.
func ended(t float64) []history.Event {
	return join(final(t), on("orders", invoke(t+0.1, "c9", history.Acquire, 99), ok(t+0.2, "c9", history.Acquire, 99)))
}

func TestDeadlock(t *testing.T) {
	const acquire, release = history.Acquire, history.Release
	// held: c1 has orders from 1 on, c2 stock from 1.2 on.
	held := join(on("orders", grant(1, "c1", 1)...), on("stock", grant(1.2, "c2", 2)...))
	try(t, livenessName, []trial{
		{name: "two locks in opposite orders", want: Violation, kind: Deadlock, ops: []int{1, 3, 4, 5},
			summary: []string{"DEADLOCK: c1 holds orders and waits for stock, c2 holds stock and waits for orders. From 2.50s on, for 4.50s (0.45 TTL)"},
			history: story(join(held, on("stock", invoke(2, "c1", acquire, 3)), on("orders", invoke(2.5, "c2", acquire, 4)),
				on("orders", fail(7, "c2", acquire, 4)), on("stock", invoke(7.1, "c2", release, 2)), ended(8))...)},
		{name: "asking again and again is waiting", want: Violation, kind: Deadlock, ops: []int{1, 3, 4, 6},
			summary: []string{"DEADLOCK: c1 holds orders and waits for stock, c2 holds stock and waits for orders. From 2.10s on, for 1.90s"},
			history: story(join(held, on("stock", invoke(2, "c1", acquire, 3), fail(2.01, "c1", acquire, 3)), on("orders", invoke(2.1, "c2", acquire, 4), fail(2.2, "c2", acquire, 4)),
				on("stock", invoke(3, "c1", acquire, 5)), on("orders", invoke(3.5, "c2", acquire, 6)), on("stock", fail(4, "c1", acquire, 5)), on("orders", fail(5, "c2", acquire, 6)), ended(8))...)},
		{name: "three in a circle", want: Violation, kind: Deadlock, ops: []int{1, 3, 5, 6, 7, 8},
			summary: []string{"c1 holds orders and waits for stock, c2 holds stock and waits for bills, c3 holds bills and waits for orders"},
			history: story(join(held, on("bills", grant(1.4, "c3", 7)...), on("stock", invoke(2, "c1", acquire, 3)), on("bills", invoke(2.1, "c2", acquire, 4)), on("orders", invoke(2.2, "c3", acquire, 5)),
				on("orders", fail(9, "c3", acquire, 5)), ended(10))...)},
		{name: "a lock that promises to be re-entrant and waits for itself", want: Violation, kind: Deadlock, ops: []int{1, 2}, summary: []string{"DEADLOCK: c1 holds orders and waits for orders"},
			history: with(story(join(on("orders", grant(1, "c1", 1)...), on("orders", invoke(2, "c1", acquire, 3), fail(6, "c1", acquire, 3)), ended(8))...), reentrant)},
		{name: "who outlived its lease waits for the next holder", want: Pass,
			history: with(story(join(on("orders", grant(1, "c1", 1)...), on("orders", grant(12, "c2", 2)...), on("orders", invoke(13, "c1", acquire, 3), fail(15, "c1", acquire, 3),
				invoke(15.1, "c1", release, 1), invoke(15.2, "c2", release, 2)), ended(16))...), reentrant)},
		{name: "both refused at the same moment and let go", want: Pass,
			history: story(join(held, on("stock", invoke(2, "c1", acquire, 3)), on("orders", invoke(2.1, "c2", acquire, 4)),
				on("stock", fail(2.2, "c1", acquire, 3)), on("orders", fail(2.3, "c2", acquire, 4), invoke(2.4, "c1", release, 1)), on("stock", invoke(2.5, "c2", release, 2)), ended(3))...)},
		{name: "the same order: a line and no circle", want: Pass,
			history: story(join(on("orders", grant(1, "c1", 1)...), on("stock", grant(1.2, "c1", 2)...), on("orders", invoke(2, "c2", acquire, 3)), on("stock", invoke(6, "c1", release, 2), ok(6.05, "c1", release, 2)),
				on("orders", invoke(6.1, "c1", release, 1), ok(6.2, "c2", acquire, 3), invoke(6.3, "c2", release, 3)), ended(8))...)},
		{name: "let go before asking", want: Pass,
			history: story(join(held, on("orders", invoke(1.5, "c1", release, 1), ok(1.6, "c1", release, 1)), on("stock", invoke(2, "c1", acquire, 3)), on("orders", invoke(2.1, "c2", acquire, 4)),
				on("orders", fail(7, "c2", acquire, 4)), on("stock", fail(7, "c1", acquire, 3), invoke(7.1, "c2", release, 2)), ended(8))...)},
		{name: "readers do not wait for each other", want: Pass,
			history: with(story(forReading(join(on("orders", grant(1, "c1", 1)...), on("stock", grant(1.2, "c2", 2)...), on("stock", invoke(2, "c1", acquire, 3)), on("orders", invoke(2.5, "c2", acquire, 4)),
				on("orders", fail(7, "c2", acquire, 4)), on("stock", fail(7, "c1", acquire, 3), invoke(7.1, "c2", release, 2)), on("orders", invoke(7.1, "c1", release, 1)), ended(8)))...), readersAndWriters)},
		{name: "no final phase and nobody in a circle", want: Unknown, reason: "no final phase", history: story(held...)},
	})
}

// forReading makes all acquires those of readers.
func forReading(events []history.Event) []history.Event {
	for _, e := range events {
		if e.Op.F == history.Acquire {
			e.Op.Mode = history.Reading
		}
	}
	return events
}
