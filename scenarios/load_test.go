package scenarios

import (
	"errors"
	"strings"
	"testing"
)

// head makes a file of the required keys, on lines 1 and 2, and a rest that
// begins on line 3.
func head(rest string) string { return "name: x\nabout: A test.\n" + rest }

// bad are files with mistakes: one message a line. The schema must refuse the
// same files, except those whose mistake lies between two fields.
var bad = []struct {
	name, file, want string
	schemaTakes      bool
}{
	{name: "empty", file: "", want: `f.yaml:1:1: the file is empty`},
	{name: "comment only", file: "# nothing\n", want: `f.yaml:1:1: the file is empty`},
	{name: "not a map", file: "- a\n", want: `f.yaml:1:1: here belongs a map, not a list`},
	{name: "two documents", file: head("---\nname: y\n"),
		want: `f.yaml:4:1: this is a second document, and a file holds one`},
	{name: "unknown key", file: head("worklaod: {}\n"), want: `f.yaml:3:1: there is no key "worklaod"; did you mean "workload"?`},
	{name: "far key", file: head("final: {zebra: 1}\n"), want: `f.yaml:3:9: there is no key "zebra" in final: write heal or wait`},
	{name: "no such reader", file: head("workload: {readers: [c9]}\n"), schemaTakes: true,
		want: `f.yaml:3:22: there is no c9 here: the scenario has c1 to c3`},
	{name: "reader is a node", file: head("workload: {impatient: n1}\n"), schemaTakes: true,
		want: `f.yaml:3:23: "n1" is no target here: write c1 to c3`},
	{name: "share above one", file: head("workload: {read-share: 1.5}\n"),
		want: `f.yaml:3:24: 1.5 is no share: write a number from 0 to 1`},
	{name: "too deep", file: head("workload: {depth: 4}\n"), want: `f.yaml:3:19: 4 is not right here: write a number from 1 to 3`},
	{name: "no threads", file: head("workload: {threads: 0}\n"), want: `f.yaml:3:21: 0 is not right here: write a number from 1 to 8`},
	{name: "a name in a name", file: head("workload: {locks: [orders, orders-2]}\n"), schemaTakes: true,
		want: `f.yaml:3:28: "orders" and "orders-2" cannot be told apart in a key: write names that do not contain each other`},
	{name: "order of one lock", file: head("workload: {order: opposite}\n"), schemaTakes: true,
		want: `f.yaml:3:19: one lock has no order: write locks: [orders, stock]`},
	{name: "no patience", file: head("workload: {impatient: c1, patience: 0}\n"), schemaTakes: true,
		want: `f.yaml:3:37: 0s is too short: write a length above 0`},
	{name: "key in a list item", file: head("nemesis:\n  - when: {at: 1ttl, nht: 2}\n    pause: {}\n"),
		want: `f.yaml:4:22: there is no key "nht" in when; did you mean "nth"?`},
	{name: "workload key", file: head("workload:\n  hold: 1ttl\n  thnik: 1ttl\n"),
		want: `f.yaml:5:3: there is no key "thnik" in workload; did you mean "think"?`},
	{name: "snake case", file: head("coverage: {fault_overlaps_op: true}\n"),
		want: `f.yaml:3:12: there is no key "fault_overlaps_op" in coverage; did you mean "fault-overlaps-op"?`},
	{name: "no name", file: "about: A test.\n", want: `f.yaml:1:1: a scenario has a name`},
	{name: "name", file: "name: Slow Work\nabout: A test.\n",
		want: `f.yaml:1:7: "Slow Work" is no name: write lower case words with hyphens, such as slow-work`},
	{name: "no about", file: "name: x\n", want: `f.yaml:1:1: a scenario says in one sentence what it is about`},
	{name: "wrong type for a word", file: "name: x\nabout: [a]\n", want: `f.yaml:2:8: here belongs a word, not a list`},
	{name: "wrong type for a number", file: head("clients: many\n"), want: `f.yaml:3:10: here belongs a whole number, not many`},
	{name: "fraction", file: head("clients: 2.5\n"), want: `f.yaml:3:10: here belongs a whole number, not 2.5`},
	{name: "huge number", file: head("clients: 99999999999999999999\n"),
		want: `f.yaml:3:10: here belongs a whole number, not 99999999999999999999`},
	{name: "wrong type for a boolean", file: head("final:\n  heal: yes please\n"),
		want: `f.yaml:4:9: here belongs true or false, not yes please`},
	{name: "empty value", file: head("workload:\nclients: 2\n"), want: `f.yaml:3:1: here belongs a map, not nothing`},
	{name: "no clients", file: head("clients: 0\n"), want: `f.yaml:3:10: 0 is not right here: write a number from 1 to 30`},
	{name: "bad span", file: head("length: 3 ttls\n"),
		want: `f.yaml:3:9: "3 ttls" is not a duration: write 1.5ttl, 300ms or 2s`},
	{name: "span without unit", file: head("workload: {hold: 5}\n"),
		want: `f.yaml:3:18: "5" is not a duration: write 1.5ttl, 300ms or 2s`},
	{name: "no number of TTLs", file: head("length: manyttl\n"),
		want: `f.yaml:3:9: "manyttl" is not a number of TTLs, such as 1.5ttl`},
	{name: "span of a wrong type", file: head("length: [1ttl]\n"),
		want: `f.yaml:3:9: here belongs a length of time such as 1.5ttl or 300ms, not a list`},
	{name: "negative hold", file: head("workload: {hold: -1ttl}\n"),
		want: `f.yaml:3:18: -1ttl is negative: write a length from 0 on`},
	{name: "no length", file: head("length: 0\n"), schemaTakes: true,
		want: `f.yaml:3:9: 0s is too short: write a length above 0`},
	{name: "workload kind", file: head("workload: {kind: updates}\n"),
		want: `f.yaml:3:18: "updates" is not right here; did you mean "update"?`},
	{name: "resource", file: head("workload: {resource: gaurded}\n"),
		want: `f.yaml:3:22: "gaurded" is not right here; did you mean "guarded"?`},
	{name: "topology", file: head("topology: {default: sigle}\n"),
		want: `f.yaml:3:21: "sigle" is not right here; did you mean "single"?`},
	{name: "topology word", file: head("topology: ring\n"),
		want: `f.yaml:3:11: "ring" is not right here: write single, replicated, independent, sentinel, cluster, etcd, zookeeper or postgres`},
	{name: "nodes of single", file: head("nodes: {single: 3}\n"), want: `f.yaml:3:17: 3 is not right here: write 1`},
	{name: "nodes of a topology", file: head("nodes: {independant: 3}\n"),
		want: `f.yaml:3:9: there is no topology "independant"; did you mean "independent"?`},
	{name: "too few nodes", file: head("nodes: 1\n"), want: `f.yaml:3:8: 1 is not right here: write a number from 2 to 15`},
	{name: "no locks", file: head("locks: []\n"), want: `f.yaml:3:8: name a lock, or leave the key out for the five basic ones`},
	{name: "lock twice", file: head("locks: [basic, redlock, basic]\n"), want: `f.yaml:3:25: basic stands here twice`},
	{name: "lock default", file: head("locks: [default]\n"), want: `f.yaml:3:9: "default" is no lock`},
	{name: "check", file: head("expect: {exclusoin: pass}\n"),
		want: `f.yaml:3:10: there is no check "exclusoin"; did you mean "exclusion"?`},
	{name: "value", file: head("expect:\n  exclusion: overun\n"),
		want: `f.yaml:4:14: "overun" is not right here; did you mean "overrun"?`},
	{name: "value of another check", file: head("expect: {updates: overrun}\n"),
		want: `f.yaml:3:19: "overrun" is not right here: write pass, violation, unknown, any, lost-update or read-changed`},
	{name: "value per lock", file: head("expect:\n  default: {}\n  basic: {updates: lost}\n"),
		want: `f.yaml:5:20: "lost" is not right here: write pass, violation, unknown, any, lost-update or read-changed`},
	{name: "expect mixed", file: head("expect:\n  exclusion: pass\n  redlock: {updates: pass}\n"),
		want: `f.yaml:4:3: exclusion is a check and stands among locks: put it under default or under a lock`},
	{name: "negative coverage", file: head("coverage: {acquires-during: -1}\n"),
		want: `f.yaml:3:29: -1 is not right here: write a number from 0 on`},
	{name: "alias", file: head("workload: &w {}\n"),
		want: `f.yaml:3:11: here belongs a map, not an anchor, alias or tag, which scenarios do not use`},
	{name: "same key, quoted", file: head("clients: 2\n\"clients\": 3\n"), want: `f.yaml:4:1: this is not YAML: mapping key "clients" already defined at [3:1]`},
	{name: "what only the schema refuses", file: head("length: \" 1ttl\"\n"), want: "f.yaml:3:9: the schema refuses this: ' 1ttl' does not match pattern " +
		`'^(0|([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([eE][+-]?[0-9]+)?ttl|(([0-9]+(\\.[0-9]*)?|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$'`},
	{name: "two mistakes", file: head("clients: 0\nlength: -1s\n"),
		want: "f.yaml:3:10: 0 is not right here: write a number from 1 to 30\n" +
			"f.yaml:4:9: -1s is too short: write a length above 0"},
}

// badSteps are mistakes in the nemesis list; the item begins on line 4.
var badSteps = []struct {
	name, step, want string
	schemaTakes      bool
}{
	{name: "unknown fault", step: "{when: {at: 0}, puase: {}}", want: `f.yaml:4:21: there is no fault "puase"; did you mean "pause"?`},
	{name: "no fault", step: "{when: {at: 0}}",
		want: `f.yaml:4:5: what breaks? an item has one fault: pause, stall, disconnect, cut, partition, delay, lose-reply, strike, clock, kill, failover, migrate, crash, cancel, flush or error-reply`},
	{name: "two faults", step: "{when: {at: 0}, pause: {}, stall: {}}",
		want: `f.yaml:4:32: an item has one fault, and this one has pause already`},
	{name: "no when", step: "{pause: {}}", want: `f.yaml:4:5: when does it start? write when: {at: 1ttl} or the event that starts it`},
	{name: "empty when", step: "{when: {}, pause: {}}", want: `f.yaml:4:12: when is that? write at, op or command`},
	{name: "for inside", step: "{when: {at: 0}, pause: {client: holder, for: 1ttl}}",
		want: `f.yaml:4:45: "for" stands beside pause and not inside it`},
	{name: "for of nothing", step: "{when: {at: 0}, pause: {}, for: 0}", schemaTakes: true,
		want: `f.yaml:4:37: 0s is too short: write a length above 0`},
	{name: "at and op", step: "{when: {at: 1ttl, op: read, type: ok}, pause: {}}", want: `f.yaml:4:17: at does not go with op`},
	{name: "op and command", step: "{when: {op: read, type: ok, command: SET}, pause: {}}",
		want: `f.yaml:4:42: a trigger waits for an op of a client or a command on a node, not for both`},
	{name: "nth with at", step: "{when: {at: 1ttl, nth: 2}, pause: {}}", want: `f.yaml:4:28: nth does not go with at`},
	{name: "node with op", step: "{when: {op: read, type: ok, node: n1}, pause: {}}", want: `f.yaml:4:39: node does not go with op`},
	{name: "type with command", step: "{when: {command: SET, type: ok}, pause: {}}", want: `f.yaml:4:33: type does not go with command`},
	{name: "op", step: "{when: {op: aquire, type: ok}, pause: {}}", want: `f.yaml:4:17: "aquire" is not right here; did you mean "acquire"?`},
	{name: "op without type", step: "{when: {op: read}, pause: {}}",
		want: `f.yaml:4:12: which event of the read? write type: invoke, ok, fail or info`},
	{name: "type", step: "{when: {op: read, type: okay}, pause: {}}", want: `f.yaml:4:29: "okay" is not right here: write invoke, ok, fail, info or note`},
	{name: "note with a type", step: "{when: {op: worked, type: ok}, pause: {}}", want: `f.yaml:4:31: worked is a note and has no type ok`},
	{name: "op as a note", step: "{when: {op: read, type: note}, pause: {}}",
		want: `f.yaml:4:29: read is an op and no note: write invoke, ok, fail or info`},
	{name: "command", step: "{when: {command: SET NX}, pause: {}}", want: `f.yaml:4:22: "SET NX" is no command: write SET, EVAL or any`},
	{name: "nth 0", step: "{when: {op: read, type: ok, nth: 0}, pause: {}}", want: `f.yaml:4:38: 0 is not right here: the first is 1`},
	{name: "negative time", step: "{when: {at: -1ttl}, pause: {}}", want: `f.yaml:4:17: -1ttl is negative: write a length from 0 on`},
	{name: "client of a trigger", step: "{when: {op: read, type: ok, client: holder}, pause: {}}", schemaTakes: true,
		want: `f.yaml:4:41: "holder" is no target here: write c1 to c3`},
	{name: "client number", step: "{when: {at: 0}, pause: {client: c4}}", schemaTakes: true,
		want: `f.yaml:4:37: there is no c4 here: the scenario has c1 to c3`},
	{name: "node number", step: "{when: {at: 0}, topologies: [single], stall: {node: n2}}", schemaTakes: true,
		want: `f.yaml:4:57: there is no n2 here: the scenario has n1`},
	{name: "client as a node", step: "{when: {at: 0}, stall: {node: [n1, c1]}}", schemaTakes: true,
		want: `f.yaml:4:40: "c1" is no target here: write nodes, primary, replicas, minority, majority or n1 to n5`},
	{name: "sentinels of one node", step: "{when: {at: 0}, kill: {node: [sentinels]}}", schemaTakes: true,
		want: `f.yaml:4:35: sentinels are in the topology sentinel only: add topologies: [sentinel]`},
	{name: "a sentinel of one node", step: "{when: {at: 0}, cut: {from: [s1], to: [n1]}}", schemaTakes: true,
		want: `f.yaml:4:34: sentinels are in the topology sentinel only: add topologies: [sentinel]`},
	{name: "target word", step: "{when: {at: 0}, cut: {from: [hodler], to: [nodes]}}", schemaTakes: true,
		want: `f.yaml:4:34: "hodler" is no target here; did you mean "holder"?`},
	{name: "caller of a time", step: "{when: {at: 0}, pause: {client: caller}}", schemaTakes: true,
		want: `f.yaml:4:37: a step that starts at a time has no caller`},
	{name: "replicas of one node", step: "{when: {at: 0}, kill: {node: [replicas]}}", schemaTakes: true,
		want: `f.yaml:4:35: replicas are in the topologies replicated, sentinel and cluster only: add topologies: [replicated]`},
	{name: "failover of one node", step: "{when: {at: 0}, failover: {}}", schemaTakes: true,
		want: `f.yaml:4:31: a failover needs the topology replicated: add topologies: [replicated]`},
	{name: "slot of one node", step: "{when: {at: 0}, migrate: {}}", schemaTakes: true,
		want: `f.yaml:4:30: only a Redis Cluster has slots to move: add topologies: [cluster]`},
	{name: "mode of a failover", step: "{when: {at: 0}, failover: {mode: forse}}",
		want: `f.yaml:4:38: "forse" is not right here; did you mean "force"?`},
	{name: "unused topology", step: "{when: {at: 0}, topologies: [replicated], kill: {}}", schemaTakes: true,
		want: `f.yaml:4:34: no lock of this scenario runs on replicated`},
	{name: "cut without ends", step: "{when: {at: 0}, cut: {from: [c1]}}", want: `f.yaml:4:26: between whom? write from and to`},
	{name: "mode", step: "{when: {at: 0}, cut: {from: c1, to: n1, mode: drp}}",
		want: `f.yaml:4:51: "drp" is not right here; did you mean "drop"?`},
	{name: "direction", step: "{when: {at: 0}, delay: {from: c1, to: n1, by: 1s, direction: up}}",
		want: `f.yaml:4:66: "up" is not right here: write requests, replies or both`},
	{name: "delay of nothing", step: "{when: {at: 0}, delay: {from: c1, to: n1}}",
		want: `f.yaml:4:28: how much slower? write by: and a length`},
	{name: "one group", step: "{when: {at: 0}, partition: {groups: [[c1]]}}", want: `f.yaml:4:41: a partition has two groups or more`},
	{name: "empty group", step: "{when: {at: 0}, partition: {groups: [[c1], []]}}", want: `f.yaml:4:48: a group has a member or more`},
	{name: "clock", step: "{when: {at: 0}, clock: {node: n1}}", want: `f.yaml:4:28: a clock either jumps or runs at a rate: write jump or rate`},
	{name: "clock rate", step: "{when: {at: 0}, clock: {rate: -1.5}}",
		want: `f.yaml:4:35: -1.5 is no rate: write a number above 0, such as 1.1 for ten percent fast`},
	{name: "a rate of real time", step: "{when: {at: 0}, clock: {node: n1, rate: 1.0}}",
		want: `f.yaml:4:45: a rate of 1 is real time: write another number, such as 1.1 for ten percent fast`},
	{name: "a jump that no server sees", step: "{when: {at: 0}, clock: {node: n1, jump: 900us}}",
		want: `f.yaml:4:45: servers count in milliseconds: a jump of 900µs is none`, schemaTakes: true},
	{name: "restart", step: "{when: {at: 0}, kill: {restart: lost}}", want: `f.yaml:4:37: "lost" is not right here; did you mean "lose"?`},
	{name: "error reply", step: "{when: {at: 0}, error-reply: {}}",
		want: `f.yaml:4:34: which reply? write reply: and a text that begins with OOM, LOADING, BUSY, MISCONF or READONLY`},
	{name: "lost reply", step: "{when: {at: 0}, lose-reply: {nth: -1}}", want: `f.yaml:4:39: -1 is not right here: the first is 1`},
}

func stepFile(step string) string { return head("nemesis:\n  - " + step + "\n") }

func TestMistakesAreTold(t *testing.T) {
	told := func(t *testing.T, file, want string) {
		t.Helper()
		s, err := Parse("f.yaml", []byte(file))
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
		if s != nil {
			t.Error("a scenario came with the error")
		}
		var one *Error
		if !errors.As(err, &one) || one.File != "f.yaml" {
			t.Errorf("%v is no *Error with the file", err)
		}
	}
	for _, c := range bad {
		t.Run(c.name, func(t *testing.T) { told(t, c.file, c.want) })
	}
	for _, c := range badSteps {
		t.Run(c.name, func(t *testing.T) { told(t, stepFile(c.step), c.want) })
	}
}

func TestSyntaxErrorsHaveTheirPlace(t *testing.T) {
	for file, place := range map[string]string{
		"name: x\nabout: [a\n":       "f.yaml:2:",
		"name: x\nname: y\n":         "f.yaml:2:1: ",
		"name: x\n\tabout: y\n":      "f.yaml:2:",
		"name: x\nabout: \"no end\n": "f.yaml:2:",
		"name: x\n  about: indented": "f.yaml:",
	} {
		_, err := Parse("f.yaml", []byte(file))
		if err == nil || !strings.HasPrefix(err.Error(), place) {
			t.Errorf("%q: got %v, want it at %s", file, err, place)
		}
	}
}

func TestAFileThatIsTooLarge(t *testing.T) {
	_, err := Parse("f.yaml", make([]byte, maxFile+1))
	if want := "f.yaml:1:1: the file has 65537 bytes, and a scenario at most 65536"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestUnknownScenarioNamesTheNearest(t *testing.T) {
	_, err := Load("kleppman-gc-pause")
	if want := `there is no scenario "kleppman-gc-pause"; did you mean "kleppmann-gc-pause"?`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func FuzzParse(f *testing.F) {
	for _, name := range Names() {
		data, err := files.ReadFile(name + ".yaml")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, c := range bad {
		f.Add([]byte(c.file))
	}
	for _, c := range badSteps {
		f.Add([]byte(stepFile(c.step)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse("f.yaml", data)
		if (s == nil) == (err == nil) {
			t.Fatalf("a scenario and an error, or neither: %v, %v", s, err)
		}
	})
}
