package catalogue

import (
	"github.com/holdfast-io/holdfast/impl"
	"github.com/holdfast-io/holdfast/impl/redlock"
)

// Variants returns Redlock with some of the safeguards switched on that its
// description asks for, so that the worth of each can be measured. No scenario
// is about them, and no group of the command line has them. With the time-out
// of a node alone it is the mutant redlock-without-elapsed-check, and with
// that and the look at the elapsed time it is redlock.
func Variants() []Entry {
	twin := five()[3] // redlock; a test holds that
	variant := func(name, about string, tells bool, wrong redlock.Mistakes) Entry {
		e := twin
		e.Name, e.TwinOf, e.About = name, twin.Name, about
		e.New = func(env impl.Env) (impl.Lock, error) { return redlock.NewWith(env, wrong) }
		if tells {
			e.New = func(env impl.Env) (impl.Lock, error) { return redlock.NewTelling(env, wrong) }
			e.Abilities, e.Drift = []string{AbilityUntil}, redlock.Drift
		}
		return e
	}
	bare := redlock.Mistakes{NoElapsedCheck: true, NoNodeTimeout: true}
	return []Entry{
		variant("redlock-bare", "votes count however late they come, and one node may cost a whole TTL", false, bare),
		variant("redlock-without-node-timeout", "one node may cost a whole TTL", false, redlock.Mistakes{NoNodeTimeout: true}),
		variant("redlock-bare-telling", "redlock-bare whose holder is told when to stop, a tenth of the TTL early", true, bare),
		variant("redlock-telling", "redlock whose holder is told when to stop, a tenth of the TTL early", true, redlock.Mistakes{}),
	}
}
