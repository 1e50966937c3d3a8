package process

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// undump reads what RESTORE is given, so that the trace knows what a key holds
// that was moved to a node. The form is that of Redis's data files: a byte for
// the type, the value, two bytes of version and eight of a checksum. A type
// that no lock uses becomes a key of another kind.
func undump(payload string) (*key, error) {
	const footer = 10
	if len(payload) < footer+1 {
		return nil, errors.New("a dump is too short")
	}
	r := &dumpReader{rest: []byte(payload[1 : len(payload)-footer])}
	k := &key{kind: other}
	switch payload[0] {
	case dumpString:
		k.kind, k.value = text, r.text()
	case dumpHash:
		k.kind, k.fields = hash, r.pairs(r.many())
	case dumpHashPacked:
		k.kind, k.fields = hash, r.packed()
	case dumpSortedPacked:
		k.kind, k.fields = sorted, r.packed()
	case dumpSorted:
		k.kind, k.fields = sorted, make(map[string]string)
		for range r.many() {
			member := r.text()
			score := math.Float64frombits(binary.LittleEndian.Uint64(r.take(8)))
			k.fields[member] = strconv.FormatFloat(score, 'g', -1, 64)
		}
	}
	return k, r.err
}

// Types of a dump. Source: rdb.h of Redis 7.
const (
	dumpString       = 0
	dumpHash         = 4
	dumpSorted       = 5
	dumpHashPacked   = 16
	dumpSortedPacked = 17
)

// dumpReader reads from the front. After an error it reads zeros.
type dumpReader struct {
	rest []byte
	err  error
}

func (r *dumpReader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.rest) {
		if r.err == nil {
			r.err = fmt.Errorf("a dump ends too early: %d bytes wanted, %d left", n, len(r.rest))
		}
		return make([]byte, max(8, min(n, 8)))
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

// length reads a length, or says that a number in the form given follows.
func (r *dumpReader) length() (n int, number byte, isNumber bool) {
	const short, middle, long, long64 = 0, 1, 0x80, 0x81
	first := r.take(1)[0]
	switch first >> 6 {
	case short:
		return int(first), 0, false
	case middle:
		return int(first&0x3f)<<8 | int(r.take(1)[0]), 0, false
	case 3:
		return 0, first & 0x3f, true
	}
	switch first {
	case long:
		return int(binary.BigEndian.Uint32(r.take(4))), 0, false
	case long64:
		return int(binary.BigEndian.Uint64(r.take(8))), 0, false //nolint:gosec // take refuses what is too long
	}
	r.fail("length %#x", first)
	return 0, 0, false
}

func (r *dumpReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("a dump is not understood: "+format, args...)
	}
}

// many is the number of what follows. A broken one reads as none.
func (r *dumpReader) many() int {
	n, _, isNumber := r.length()
	if isNumber || n > len(r.rest) {
		r.fail("%d items in %d bytes", n, len(r.rest))
		return 0
	}
	return n
}

func (r *dumpReader) text() string {
	n, number, isNumber := r.length()
	if !isNumber {
		return string(r.take(n))
	}
	switch number {
	case 0:
		return strconv.Itoa(int(int8(r.take(1)[0]))) //nolint:gosec // it is signed
	case 1:
		return strconv.Itoa(int(int16(binary.LittleEndian.Uint16(r.take(2))))) //nolint:gosec // it is signed
	case 2:
		return strconv.Itoa(int(int32(binary.LittleEndian.Uint32(r.take(4))))) //nolint:gosec // it is signed
	}
	r.fail("a compressed text") // nodes are told not to
	return ""
}

func (r *dumpReader) pairs(n int) map[string]string {
	fields := make(map[string]string, n)
	for range n {
		name := r.text()
		fields[name] = r.text()
	}
	return fields
}

// packed reads a listpack with names and values in turn: four bytes of size,
// two of a count, the entries, and 0xff.
func (r *dumpReader) packed() map[string]string {
	const head = 6
	pack := &dumpReader{rest: []byte(r.text())}
	pack.take(head)
	fields := make(map[string]string)
	name, named := "", false
	for pack.err == nil && r.err == nil && len(pack.rest) > 0 && pack.rest[0] != 0xff {
		entry := pack.entry()
		if named {
			fields[name] = entry
		}
		name, named = entry, !named
	}
	if r.err == nil {
		r.err = pack.err
	}
	return fields
}

// entry of a listpack: what it is, the bytes, and their number once more, in
// sevens, for reading backwards. Source: listpack.c of Redis 7.
func (r *dumpReader) entry() string {
	before := len(r.rest)
	first := r.take(1)[0]
	value := ""
	switch {
	case first>>7 == 0:
		value = strconv.Itoa(int(first))
	case first>>6 == 2:
		value = string(r.take(int(first & 0x3f)))
	case first>>5 == 6: // 13 bits with a sign
		n := int(first&0x1f)<<8 | int(r.take(1)[0])
		if n >= 1<<12 {
			n -= 1 << 13
		}
		value = strconv.Itoa(n)
	case first>>4 == 14:
		n := int(first&0x0f) << 8
		value = string(r.take(n | int(r.take(1)[0])))
	case first == 0xf0:
		value = string(r.take(int(binary.LittleEndian.Uint32(r.take(4)))))
	case first >= 0xf1 && first <= 0xf4:
		value = r.signed(map[byte]int{0xf1: 2, 0xf2: 3, 0xf3: 4, 0xf4: 8}[first])
	default:
		r.fail("entry %#x", first)
	}
	const seven = 127
	back := 1
	for size := before - len(r.rest); size > seven; size >>= 7 {
		back++
	}
	r.take(back)
	return value
}

// signed reads a number of that many bytes, the lowest first.
func (r *dumpReader) signed(size int) string {
	var n uint64
	b := r.take(size)
	for i := range size {
		n |= uint64(b[i]) << (8 * i)
	}
	shift := 64 - 8*size
	return strconv.FormatInt(int64(n<<shift)>>shift, 10) //nolint:gosec // it is signed
}
