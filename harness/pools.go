package harness

import "runtime"

// processPools is what is known about the pools that libraries keep for the
// whole process. go-redis has a [sync.Pool] of the timers with which callers
// wait for a connection. A timer belongs to the bubble in which it was made, and
// whoever waits for it in another ends the process, with words that nothing can
// recover from:
//
//	run 1, redsync, fails fast    ten calls to a stalled node are given up and
//	                              hold all connections; the next caller waits
//	                              with a timer, and puts it into the pool
//	run 2                         waits likewise, and is given that timer:
//	                              "select on synctest channel from outside bubble"
//
// So the pools are emptied between two such runs. A pool loses its contents in
// two collections: the first only puts them aside. Two collections cost more
// than most runs, so they are left out after a run in which nobody can have
// waited.
type processPools struct{ used bool }

// pools of this process. Whoever plays a run has it for himself.
var pools processPools

// before a run. Until its end is known, it counts as one that uses pools.
func (p *processPools) before() {
	if p.used {
		runtime.GC()
		runtime.GC()
	}
	p.used = true
}

// after a run that came to its end.
func (p *processPools) after(used bool) { p.used = used }
