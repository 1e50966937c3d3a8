package foreign

// keys are those of a map that is being read. One that comes again is refused:
// whichever of its values is taken, the other is a fact that is not read.
type keys struct {
	seen map[scalar]bool
}

// scalar is what tells keys apart.
type scalar struct {
	kind kind
	n    int64
	text string
}

// few keys are compared with each other; real entries have no more.
const few = 16

// again says whether the last of the items of a map, a key, is there before. A
// list or a map as a key is not compared: nothing here looks one up. byName takes
// keywords, symbols and strings of one text for the same.
func (k *keys) again(items []value, byName bool) bool {
	last := len(items) - 1
	key := items[last].scalar(byName)
	if key.kind == list || key.kind == dict {
		return false
	}
	if last < 2*few {
		for i := 0; i < last; i += 2 {
			if items[i].scalar(byName) == key {
				return true
			}
		}
		return false
	}
	if k.seen == nil {
		k.seen = map[scalar]bool{}
		for i := 0; i < last; i += 2 {
			k.seen[items[i].scalar(byName)] = true
		}
	}
	twice := k.seen[key]
	k.seen[key] = true
	return twice
}

func (v *value) scalar(byName bool) scalar {
	s := scalar{kind: v.kind, n: v.n, text: v.text}
	if byName && (v.kind == keyword || v.kind == symbol) {
		s.kind = text
	}
	return s
}
