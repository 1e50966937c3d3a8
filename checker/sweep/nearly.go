package sweep

import (
	"slices"
	"sort"
)

// arrange sorts what is nearly sorted. Clients write down their calls as these
// happen, so a list taken from a history has an element out of place by a few
// places at most, and inserting each where it belongs takes one pass over
// memory. A list that is not nearly sorted is given up after a few moves for
// each element, and sorted like any other.
func arrange[T any](list []T, less func(a, b T) bool) {
	moves := 8 * len(list)
	for i := 1; i < len(list); i++ {
		x := list[i]
		at := i
		for at > 0 && less(x, list[at-1]) {
			list[at] = list[at-1]
			at--
		}
		list[at] = x
		if moves -= i - at; moves < 0 {
			slices.SortStableFunc(list, func(a, b T) int {
				switch {
				case less(a, b):
					return -1
				case less(b, a):
					return 1
				}
				return 0
			})
			return
		}
	}
}

// merge puts more into a sorted list.
func merge[T any](list, more []T, less func(a, b T) bool) []T {
	arrange(more, less)
	i := len(list) - 1
	list = append(list, more...)
	for at := len(list) - 1; len(more) > 0; at-- {
		if last := more[len(more)-1]; i < 0 || !less(last, list[i]) {
			list[at], more = last, more[:len(more)-1]
			continue
		}
		list[at] = list[i]
		i--
	}
	return list
}

// seek is sort.Search for one after the other in a list: it looks around the
// place found before, which is nearly always the right one, instead of jumping
// through all of the list.
func seek(n, before int, reached func(int) bool) int {
	low, high := 0, n // reached is false below low and true from high on
	if before = min(before, n-1); before < 0 {
		return 0
	}
	if reached(before) {
		high = before
		for step := 1; high > 0; step *= 2 {
			at := max(0, high-step)
			if !reached(at) {
				low = at + 1
				break
			}
			high = at
		}
	} else {
		low = before + 1
		for step := 1; low < n; step *= 2 {
			at := min(n-1, low+step-1)
			if reached(at) {
				high = at
				break
			}
			low = at + 1
		}
	}
	return low + sort.Search(high-low, func(i int) bool { return reached(low + i) })
}
