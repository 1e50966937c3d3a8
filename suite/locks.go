package suite

import (
	"slices"

	"github.com/holdfast-io/holdfast/impl/catalogue"
)

// The words that stand for groups of locks.
const (
	AllLocks  = "all"       // the five, their fenced variants and the reference
	Libraries = "libraries" // what people use, unmodified
	Baselines = "baselines" // what people use instead of Redis
	Mutants   = "mutants"   // the locks with a mistake on purpose
)

// Groups lists the words that stand for several locks.
func Groups() []string { return []string{AllLocks, Libraries, Baselines, Mutants} }

// Group lists the locks that a word stands for; nil where it stands for none.
func Group(word string) []catalogue.Entry {
	switch word {
	case AllLocks:
		return catalogue.All()
	case Libraries:
		return catalogue.ThirdParty()
	case Baselines:
		return catalogue.Baselines()
	case Mutants:
		return catalogue.Mutants()
	}
	return nil
}

// LockNames lists every lock of the catalogue.
func LockNames() []string {
	var out []string
	for _, e := range catalogue.Everything() {
		out = append(out, e.Name)
	}
	return out
}

// Locks turns words into the names of locks, each once. The first word that
// is neither a lock nor a group is returned as wrong.
func Locks(words []string) (names []string, wrong string) {
	for _, word := range words {
		group := Group(word)
		if _, ok := catalogue.Find(word); !ok && group == nil {
			return nil, word
		}
		if group == nil {
			names = append(names, word)
		}
		for _, e := range group {
			names = append(names, e.Name)
		}
	}
	var once []string
	for _, n := range names {
		if !slices.Contains(once, n) {
			once = append(once, n)
		}
	}
	return once, ""
}
