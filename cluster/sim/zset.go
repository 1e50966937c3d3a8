package sim

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

// Sorted sets are miniredis's, with two differences to Redis 7.0 set right on
// the way in and out: it reads numbers more kindly, and it writes scores in
// the shortest form, which Redis does since 7.2.

// integersAt says where a command on sorted sets takes integers.
var integersAt = map[string][]int{
	"ZRANGE": {2, 3}, "ZREVRANGE": {2, 3}, "ZREMRANGEBYRANK": {2, 3},
}

// scoreRanges take two scores after the key.
var scoreRanges = map[string]bool{
	"ZRANGEBYSCORE": true, "ZREVRANGEBYSCORE": true, "ZREMRANGEBYSCORE": true, "ZCOUNT": true,
}

// notANumber makes miniredis refuse an argument that Redis would refuse.
const notANumber = "x"

// strictZ rewrites arguments so that miniredis refuses what Redis refuses and
// takes what Redis takes, or says what is wrong itself.
func strictZ(name string, args []string) (strict []string, problem string) {
	options := map[string]int{}
	if len(args) > 4 {
		for i, a := range args[4:] {
			word := strings.ToUpper(a)
			options[word]++
			if word == "LIMIT" && (strings.HasPrefix(name, "ZRANGE") || strings.HasPrefix(name, "ZREVRANGE")) && i+6 < len(args) {
				_, offset := integer(args[i+5])
				_, count := integer(args[i+6])
				if !offset || !count {
					return nil, errInteger
				}
			}
		}
	}
	strict = append(strict, args...)
	byScore := scoreRanges[name]
	if name == "ZRANGE" {
		if options["REV"] > 1 || options["BYSCORE"]+options["BYLEX"] > 1 {
			return nil, errSyntax
		}
		byScore = options["BYSCORE"] == 1
		if options["BYLEX"] == 1 {
			return strict, ""
		}
	}
	switch {
	case byScore:
		for _, i := range []int{2, 3} {
			if strict[i] == "(" { // C reads no digits as zero
				strict[i] = "(0"
			}
		}
	case name == "ZADD":
		return strictAdd(strict)
	case name == "ZINCRBY":
		strict[2] = strictScore(strict[2])
	default:
		for _, i := range integersAt[name] {
			if _, ok := integer(strict[i]); !ok {
				strict[i] = notANumber
			}
		}
	}
	return strict, ""
}

// strictAdd looks at the options of ZADD in the order in which Redis does.
func strictAdd(args []string) (strict []string, problem string) {
	options := map[string]bool{}
	i := 2
	for ; i < len(args) && zaddOptions[strings.ToUpper(args[i])]; i++ {
		options[strings.ToUpper(args[i])] = true
	}
	pairs := len(args) - i
	switch {
	case pairs == 0 || pairs%2 == 1:
		return nil, errSyntax
	case options["NX"] && options["XX"]:
		return nil, "ERR XX and NX options at the same time are not compatible"
	case options["GT"] && options["NX"] || options["LT"] && options["NX"] || options["GT"] && options["LT"]:
		return nil, "ERR GT, LT, and/or NX options at the same time are not compatible"
	case options["INCR"] && pairs > 2:
		return nil, "ERR INCR option supports a single increment-element pair"
	}
	for ; i < len(args); i += 2 {
		args[i] = strictScore(args[i])
	}
	return args, ""
}

var zaddOptions = map[string]bool{"NX": true, "XX": true, "GT": true, "LT": true, "CH": true, "INCR": true}

// strictScore refuses what is not a number.
func strictScore(s string) string {
	if strings.EqualFold(strings.TrimLeft(s, "+-"), "nan") {
		return notANumber
	}
	return s
}

// zset runs a command on a sorted set.
func (n *node) zset(peer *server.Peer, name string, args []string) {
	strict, problem := strictZ(name, args)
	if problem != "" {
		fail(peer, problem)
		return
	}
	if n.endless(name, strict) {
		fail(peer, "ERR resulting score is not a number (NaN)")
		return
	}
	if !answersScores(name, args) {
		n.srv.Dispatch(peer, strict)
		return
	}
	n.scratch.Reset()
	n.scratchPeer.Resp3 = peer.Resp3
	n.srv.Dispatch(n.scratchPeer, strict)
	n.scratchPeer.Flush()
	every := 1
	if name != "ZMSCORE" && name != "ZSCORE" && name != "ZINCRBY" && name != "ZADD" {
		every = 2 // a member before each score
	}
	reply := n.scratch.Bytes()
	// In RESP3 a member and its score are a pair; miniredis pairs some.
	pairs := peer.Resp3 && every == 2 && bytes.Contains(reply[:min(len(reply), 16)], []byte("\r\n$"))
	peer.WriteRaw(longScores(reply, every, pairs))
}

// endless says whether an increment would add infinity to its opposite.
func (n *node) endless(name string, args []string) bool {
	at := len(args) - 2
	if name == "ZINCRBY" {
		at = 2
	} else if name != "ZADD" || !anyIs(args[:at], "INCR") {
		return false
	}
	by, err := strconv.ParseFloat(args[at], 64)
	old, errOld := n.db.ZScore(args[1], args[at+1])
	return err == nil && errOld == nil && math.IsNaN(by+old)
}

// answersScores says whether scores are in the reply.
func answersScores(name string, args []string) bool {
	switch name {
	case "ZSCORE", "ZINCRBY", "ZMSCORE", "ZPOPMIN", "ZPOPMAX":
		return true
	case "ZADD":
		return anyIs(args, "INCR")
	}
	return anyIs(args, "WITHSCORES")
}

func anyIs(args []string, word string) bool {
	for _, a := range args[2:] {
		if strings.EqualFold(a, word) {
			return true
		}
	}
	return false
}

// longScores writes the scores of a reply with seventeen digits. In RESP2 each
// bulk string whose number is a multiple of every is one; in RESP3 they have a
// type of their own. It pairs up a flat RESP3 reply where that is wanted.
func longScores(reply []byte, every int, pairs bool) string {
	var out strings.Builder
	for bulks := 0; ; {
		end := bytes.Index(reply, []byte("\r\n"))
		if end < 0 {
			return out.String()
		}
		line, rest := string(reply[:end]), reply[end+2:]
		size := -1
		if line[0] == '$' {
			size, _ = strconv.Atoi(line[1:])
			bulks++
		}
		if pairs && line[0] == '*' {
			n, _ := strconv.Atoi(line[1:])
			line = "*" + strconv.Itoa(n/2)
		}
		if pairs && line[0] == '$' {
			out.WriteString("*2\r\n")
		}
		switch {
		case line[0] == ',':
			out.WriteString("," + longScore(line[1:]) + "\r\n")
		case size < 0:
			out.WriteString(line + "\r\n")
		default:
			value := string(rest[:size])
			rest = rest[size+2:]
			if bulks%every == 0 {
				value = longScore(value)
			}
			out.WriteString("$" + strconv.Itoa(len(value)) + "\r\n" + value + "\r\n")
		}
		reply = rest
	}
}

func longScore(s string) string {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	return formatG(v, 17)
}
