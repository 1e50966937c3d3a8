package foreign

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/checker/sweep"
)

// entry writes one entry of a Jepsen history.
func entry(process any, kind, f, value string, time int64) string {
	return fmt.Sprintf("{:process %v, :type :%s, :f :%s, :value %s, :time %d}\n", process, kind, f, value, time)
}

func edns(entries ...string) string { return "[" + strings.Join(entries, " ") + "]" }

// whole is a legal history with what Jepsen puts into its files besides.
var wholeHistory = `; a history
[#jepsen.history.Op{:process 0, :type :invoke, :f :acquire, :value nil, :time 10, :index 0}
 {:index 1 :process 0 :type :ok :f :acquire :value 7 :time 20 :error [:a "b\n\"c\"" \newline #{1 2.5 3M 1/2 ##NaN} #inst "2026"]}
 #_{:process 0 :type :ok}
 {:process :nemesis, :type :info, :f :start, :value nil, :time 21}
 {:process :nemesis, :type :info, :f :start, :value "cut", :time 22}
 {:process 1, :type :invoke, :f :lock, :value nil, :time 23} {:process 1, :type :fail, :f :lock, :value nil, :time 24}
 {:process 0, :type :invoke, :f :release, :value nil, :time 30}
 {:process 0, :type :ok, :f :release, :value nil, :time 40}
 {:process :nemesis, :type :info, :f :stop, :value nil, :time 41}
 {:process :nemesis, :type :info, :f :stop, :value nil, :time 42}
 {:process 1, :type :invoke, :f :acquire, :value nil, :time 50}
 {:process 1, :type :info, :f :acquire, :value nil, :time 60, :error :timeout} #_ #_ 1 2]
`

func TestJepsen(t *testing.T) {
	h, err := Read(strings.NewReader(wholeHistory), Jepsen)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Calls) != 4 || h.Processes != 2 || len(h.Locks) != 1 || h.Granted() != 1 || h.End != 60 {
		t.Errorf("got %d calls, %d processes, %d locks, %d grants, end %d", len(h.Calls), h.Processes, len(h.Locks), h.Granted(), h.End)
	}
	if want := []Fault{{Name: "fault", From: 21, To: 42}}; !slices.Equal(h.Faults, want) {
		t.Errorf("faults %v, want %v", h.Faults, want)
	}
	// A fence is one more than in the file, where 0 is a fence and not none.
	want := []sweep.Op{
		{ID: 0, Hold: 0, Owner: 0, Outcome: sweep.OK, Call: 10, Return: 20, Fence: 8},
		{ID: 1, Hold: 1, Owner: 1, Outcome: sweep.Busy, Call: 23, Return: 24},
		{ID: 2, Hold: 0, Owner: 0, Kind: sweep.Release, Outcome: sweep.OK, Call: 30, Return: 40},
		{ID: 3, Hold: 3, Owner: 1, Outcome: sweep.Unknown, Call: 50, Return: 60},
	}
	if !slices.Equal(h.Locks[0].Ops, want) {
		t.Errorf("got %+v", h.Locks[0].Ops)
	}
	if c := h.Calls[2]; c.Line != 8 || c.Done != 9 || c.Entry != 6 || c.DoneEntry != 7 {
		t.Errorf("the release is in lines %d and %d, entries %d and %d", c.Line, c.Done, c.Entry, c.DoneEntry)
	}
}

// TestRefused: what is no lock history is refused with its line and a reason.
func TestRefused(t *testing.T) {
	ok := entry(0, "invoke", "acquire", "nil", 1)
	deep := strings.Repeat("[", 5000)
	for _, c := range []struct {
		name, text, says string
		format           Format
	}{
		{"empty", "", "line 1: the file ends and holds no call", Jepsen},
		{"empty list", "[]", "line 1: the file ends and holds no call", Jepsen},
		{"unknown f", edns(ok, entry(1, "invoke", "cas", "nil", 2)), "line 2: a lock has no :f :cas; there are acquire", Jepsen},
		{"completion without invoke", edns(entry(3, "ok", "acquire", "nil", 2)), "line 1: a completion of process 3, which has called nothing", Jepsen},
		{"another completion", edns(ok, entry(0, "ok", "release", "nil", 2)), "line 2: process 0 called :acquire in line 1, but this completes :release", Jepsen},
		{"two calls at once", edns(ok, ok), "line 2: process 0 calls again, although its call in line 1 has no completion", Jepsen},
		{"retired", edns(ok, entry(0, "info", "acquire", "nil", 2), ok), "line 3: process 0 calls again, although the :info in line 2 retired it", Jepsen},
		{"ok, but false", edns(ok, entry(0, "ok", "acquire", "false", 2)), "line 2: process 0 completes :acquire as :ok with the :value false", Jepsen},
		{"back in time", edns(ok, entry(0, "ok", "acquire", "nil", 0)), "line 2: the call in line 1 is completed before it was made", Jepsen},
		{"no time", "{:process 0 :type :invoke :f :acquire}", "line 1: the entry has no :time", Jepsen},
		{"nil time", "\n{:process 0 :type :invoke :f :acquire :time nil}", "line 2: the entry has no :time", Jepsen},
		{"NaN", "{:process 0 :type :invoke :f :acquire :time ##NaN}", "line 1: :time is nanoseconds as a whole number, not NaN", Jepsen},
		{"float time", "{:process 0 :type :invoke :f :acquire :time 1.5}", "not 1.5", Jepsen},
		{"huge time", "{:process 0 :type :invoke :f :acquire :time 99999999999999999999}", "not 99999999999999999999", Jepsen},
		{"too late", "{:process 0 :type :invoke :f :acquire :time 9000000000000000000}", "whole number, not 9000000000000000000", Jepsen},
		{"wrong process", "{:process 0.5 :type :invoke :f :acquire :time 1}", "line 1: :process is a whole number or :nemesis, not 0.5", Jepsen},
		{"wrong type", "{:process 0 :type 7 :f :acquire :time 1}", "line 1: :type is :invoke, :ok, :fail or :info, not 7", Jepsen},
		{"unknown type", ok + "{:process 0 :type :maybe :f :acquire :time 1}", "line 2: :type is :invoke, :ok, :fail or :info, not :maybe", Jepsen},
		{"f is a list", "{:process 0 :type :ok :f [1] :time 1}", "line 1: :f is a keyword such as :acquire, not a list", Jepsen},
		{"value", edns(ok, "{:process 0 :type :ok :f :acquire :time 2 :value [1 2 3]}"), "line 2: a :value is nil", Jepsen},
		{"value of a register", edns("{:process 0 :type :invoke :f :acquire :time 2 :value 2.5}"), "line 1: a :value is nil", Jepsen},
		{"negative fence", edns(ok, entry(0, "ok", "acquire", "-3", 2)), "line 2: a fence is a whole number from 0 up, not -3", Jepsen},
		{"another lock", edns(entry(0, "invoke", "acquire", "x", 1), entry(0, "ok", "acquire", "{:lock y}", 2)), `line 2: the call in line 1 was on lock "x", but this is on "y"`, Jepsen},
		{"not a map", "[" + ok + "7]", "line 2: an entry of a history is a map, not 7", Jepsen},
		{"cut off", "[" + ok + "{:process 0, :type :o", "line 2: the file ends before the '}'", Jepsen},
		{"cut off in a string", "\n{:process \"a\nb", "line 2: a string that begins here is not closed", Jepsen},
		{"not closed", "[" + ok, "line 2: the file ends before the ']' that closes what is open in line 1", Jepsen},
		{"more behind", edns(ok) + "\n[]", "line 3: '[' stands behind the end", Jepsen},
		{"odd map", "{:process}", "line 1: a map ends with a key that has no value", Jepsen},
		{"deep", deep, "line 1: values are nested more than 100 deep", Jepsen},
		{"deep value", "{:value " + deep, "line 1: values are nested more than 100 deep", Jepsen},
		{"deep tags", "{:value " + strings.Repeat("#a ", 5000), "line 1: values are nested more than 100 deep", Jepsen},
		{"deep discards", strings.Repeat("#_", 5000) + "[]", "line 1: values are nested more than 100 deep", Jepsen},
		{"text", "hello world", "line 1: an entry of a history is a map, not hello", Jepsen},
		{"bytes", "\x00\xff\xfe", "is not text", Jepsen},
		{"closes nothing", "{:a }}", "line 1: a map ends with a key", Jepsen},
		{"word too long", "{:a " + strings.Repeat("x", maxToken+1), "line 1: a text is longer than", Jepsen},

		{"json empty", "", "line 1: the file ends and holds no call", Porcupine},
		{"a register", `[{"ClientId":0,"Input":{"op":"put","key":"x"},"Output":{},"Call":1,"Return":2}]`, `line 1: the Input of a lock has no key "key"`, Porcupine},
		{"unknown op", `{"ClientId":0,"Input":{"op":"put"},"Output":{"ok":true},"Call":1,"Return":2}`, `line 1: a lock has no op "put"; there are acquire`, Porcupine},
		{"op is a number", `{"ClientId":0,"Input":{"op":1},"Output":{"ok":true},"Call":1,"Return":2}`, `line 1: a lock has no op 1`, Porcupine},
		{"no call", "\n" + `{"ClientId":0,"Input":{"op":"acquire"},"Output":{"ok":true},"Return":2}`, `line 2: Call is a whole number, not nil`, Porcupine},
		{"huge", `{"ClientId":0,"Input":{"op":"acquire"},"Output":{"ok":true},"Call":1e300,"Return":2}`, `line 1: Call is a whole number, not 1e300`, Porcupine},
		{"NaN json", `{"ClientId":0,"Input":{"op":"acquire"},"Output":{"ok":true},"Call":NaN,"Return":2}`, `line 1: "NaN" is no value`, Porcupine},
		{"returned early", `{"ClientId":0,"Input":{"op":"acquire"},"Output":{"ok":true},"Call":3,"Return":2}`, `line 1: the call returned before it was made`, Porcupine},
		{"ok is a word", `{"ClientId":0,"Input":{"op":"acquire"},"Output":{"ok":"yes"},"Call":1,"Return":2}`, `line 1: ok is true or false, not "yes"`, Porcupine},
		{"misspelt", `{"ClientId":0,"Input":{"op":"acquire"},"Output":{"ok":true,"fnece":1},"Call":1,"Return":2}`, `line 1: the Output of a lock has no key "fnece"`, Porcupine},
		{"client", `{"ClientId":"a","Input":{"op":"acquire"},"Output":{"ok":true},"Call":1,"Return":2}`, `line 1: ClientId is a whole number, not "a"`, Porcupine},
		{"overlapping", `[{"ClientId":0,"Input":{"op":"acquire"},"Output":{"ok":true},"Call":1,"Return":9},` + "\n" + `{"ClientId":0,"Input":{"op":"release"},"Output":{"ok":true},"Call":5,"Return":7}]`, `line 2: process 0 calls before its call in line 1 has returned`, Porcupine},
		{"cut", `[{"ClientId":0,` + "\n" + `"Inp`, "line 2: a string that begins here is not closed", Porcupine},
		{"no comma", `[{"ClientId":0,"Input":{"op":"acquire"},"Output":{"ok":true},"Call":3,"Return":4} {}]`, "line 1: ',' was due, not '{'", Porcupine},
		{"deep json", deep, "line 1: values are nested more than 100 deep", Porcupine},
		{"edn", ok, `line 1: the key of an object was due, not ':'`, Porcupine},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := Read(strings.NewReader(c.text), c.format)
			if err == nil || h != nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// operation writes one of porcupine's.
func operation(client int, op, output string, call, ret int) string {
	return fmt.Sprintf(`{"ClientId":%d,"Input":{"op":%q},"Output":%s,"Call":%d,"Return":%d}`, client, op, output, call, ret)
}

// TestPairing: which acquisition a release gives back.
func TestPairing(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []string
		model sweep.Model
		want  string // the acquisition of each release
		stray int
	}{
		{name: "in order", want: "0", lines: []string{operation(0, "acquire", `{"ok":true}`, 1, 2), operation(0, "release", `{"ok":true}`, 3, 4)}},
		{name: "the file is in another order", want: "0", lines: []string{operation(0, "release", `{"ok":true}`, 3, 4), operation(0, "acquire", `{"ok":true}`, 1, 2)}},
		{name: "nested", want: "1 0", lines: []string{operation(0, "acquire", `{"ok":true}`, 1, 2), operation(0, "acquire", `{"ok":true}`, 3, 4),
			operation(0, "release", `{"ok":true}`, 5, 6), operation(0, "release", `{"ok":true}`, 7, 8)}},
		{name: "tried again", want: "0 0", lines: []string{operation(0, "acquire", `{"ok":true}`, 1, 2), operation(0, "release", `null`, 3, 4), operation(0, "release", `{"ok":true}`, 5, 6)}},
		{name: "nested, the inner one in doubt", want: "1 0", lines: []string{operation(0, "acquire", `{"ok":true}`, 1, 2), operation(0, "acquire", `{"ok":true}`, 3, 4),
			operation(0, "release", `null`, 5, 6), operation(0, "release", `{"ok":true}`, 7, 8)}},
		{name: "a failed one did not happen", want: "0", lines: []string{operation(0, "acquire", `{"ok":true}`, 1, 2), operation(0, "release", `{"ok":false}`, 3, 4), operation(0, "release", `{"ok":true}`, 5, 6)}},
		{name: "what is in doubt", want: "0", lines: []string{operation(0, "acquire", `null`, 1, 2), operation(0, "release", `{"ok":true}`, 3, 4)}},
		{name: "nothing", stray: 1, lines: []string{operation(0, "acquire", `{"ok":false}`, 1, 2), operation(0, "release", `{"ok":true}`, 3, 4)}},
		{name: "somebody else's", stray: 1, lines: []string{operation(0, "acquire", `{"ok":true}`, 1, 2), operation(1, "release", `{"ok":true}`, 3, 4)}},
		{name: "the read one", want: "0 1", lines: []string{operation(0, "read-acquire", `{"ok":true}`, 1, 2), operation(0, "acquire", `{"ok":true}`, 3, 4),
			operation(0, "read-release", `{"ok":true}`, 5, 6), operation(0, "release", `{"ok":true}`, 7, 8)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := Read(strings.NewReader(strings.Join(c.lines, "\n")), Porcupine)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, op := range h.Locks[0].Ops {
				if op.Kind == sweep.Release || op.Kind == sweep.RRelease {
					got = append(got, fmt.Sprint(op.Hold))
				}
			}
			if s := strings.Join(got, " "); s != c.want || len(h.Locks[0].Strays) != c.stray {
				t.Errorf("releases of %q, %d strays", s, len(h.Locks[0].Strays))
			}
		})
	}
}

func TestJudge(t *testing.T) {
	two := edns(entry(0, "invoke", "acquire", "x", 1), entry(0, "ok", "acquire", "x", 2), entry(5, "invoke", "acquire", "x", 3), entry(5, "ok", "acquire", "x", 4))
	stray := edns(entry(0, "invoke", "acquire", "nil", 1), entry(0, "ok", "acquire", "nil", 2), entry(5, "invoke", "release", "nil", 3), entry(5, "ok", "release", "nil", 4))
	for _, c := range []struct {
		name, text, says string
		rules            sweep.Rules
		lease            int64
		calls            []int
	}{
		{name: "two grants", text: two, says: "lock x: the acquire of process 5 (line 3) was granted by 0.000000004s although the acquire of process 0 (line 1)", calls: []int{0, 1}},
		{name: "two permits", text: two, rules: sweep.Rules{Model: sweep.Semaphore, Permits: 2}},
		{name: "a lease that may be over", text: two, lease: 2},
		{name: "a lease that is not", text: two, lease: 4, says: "had a lease until 0.000000005s", calls: []int{0, 1}},
		{name: "released by another", text: stray, says: "the release of process 5 (line 3) said yes, although its process held nothing", calls: []int{1}},
		{name: "leniently", text: stray, rules: sweep.Rules{LenientRelease: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := Read(strings.NewReader(c.text), Jepsen)
			if err != nil {
				t.Fatal(err)
			}
			if c.lease > 0 {
				h.Leased(c.lease)
			}
			found, undecided := h.Judge(c.rules)
			switch {
			case len(undecided) > 0 || (len(found) > 0) != (c.calls != nil):
				t.Errorf("got %+v %v", found, undecided)
			case len(found) > 0 && (!strings.Contains(found[0].Text, c.says) || !slices.Equal(found[0].Calls, c.calls)):
				t.Errorf("got %v %q", found[0].Calls, found[0].Text)
			}
		})
	}
}

func TestSuits(t *testing.T) {
	reads := edns(entry(0, "invoke", "acquire", "nil", 1), entry(1, "invoke", "read-acquire", "nil", 1))
	for _, c := range []struct {
		text, says string
		model      sweep.Model
	}{
		{reads, "line 2: a read lock, which only the model rw has", sweep.Mutex},
		{reads, "", sweep.ReadWrite},
		{wholeHistory, "", sweep.Fenced},
		{edns(entry(0, "invoke", "acquire", "7", 1), entry(0, "ok", "acquire", "nil", 1)), "line 1: no acquire up to here got a fence", sweep.Fenced},
	} {
		h, err := Read(strings.NewReader(c.text), Jepsen)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := h.Suits(c.model); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.says) || (c.says == "") != (got == "") {
			t.Errorf("got %q, want %q", got, c.says)
		}
	}
}

func TestFaultWindows(t *testing.T) {
	var entries []string
	for i, f := range []string{"start-partition", "start-partition", "kill", "stop-partition", "start", "pause", "resume", "bump-clock", "start"} {
		entries = append(entries, entry(":nemesis", "info", f, "nil", int64(10*i)))
	}
	h, err := Read(strings.NewReader(edns(append(entries, entry(0, "invoke", "acquire", "nil", 99))...)), Jepsen)
	if err != nil {
		t.Fatal(err)
	}
	want := []Fault{{"partition", 0, 30}, {"kill", 20, 40}, {"pause", 50, 60}, {"bump-clock", 70, sweep.Infinity}, {"fault", 80, sweep.Infinity}}
	if !slices.Equal(h.Faults, want) {
		t.Errorf("got %v, want %v", h.Faults, want)
	}
}

func TestDetect(t *testing.T) {
	for text, want := range map[string]Format{
		wholeHistory: Jepsen, "{:process 1": Jepsen, "#jepsen.history.Op{:process": Jepsen, "[]": Jepsen,
		` [ {"ClientId"`: Porcupine, "\n" + `{"Input": 1`: Porcupine, `[{"x": 1`: Porcupine,
		`{"schema":"holdfast/history/v1"`: "", "": "", "hello": "", "{": "",
	} {
		if got := Detect([]byte(text)); got != want {
			t.Errorf("%.20q is taken for %q, not %q", text, got, want)
		}
	}
}

// oneByte reads a byte at a time, so that every byte is at the end of a buffer.
type oneByte struct{ r *strings.Reader }

func (o oneByte) Read(b []byte) (int, error) { return o.r.Read(b[:1]) }

func TestBuffers(t *testing.T) {
	one, err := Read(oneByte{strings.NewReader(wholeHistory)}, Jepsen)
	if err != nil {
		t.Fatal(err)
	}
	two, err := Read(strings.NewReader(wholeHistory), Jepsen)
	if err != nil || !slices.Equal(one.Calls, two.Calls) {
		t.Errorf("%v\n%v %v", one.Calls, two.Calls, err)
	}
}

// many is a legal history of so many calls.
func many(n int) string {
	var b strings.Builder
	for i := 0; i < n/2; i++ {
		for k, f := range []string{"acquire", "release"} {
			t := int64(i*40 + k*20)
			b.WriteString(entry(i%10, "invoke", f, "nil", t))
			b.WriteString(entry(i%10, "ok", f, "nil", t+10))
		}
	}
	return b.String()
}

// TestReadsMany: nothing in the reader is meant for small files only.
func TestReadsMany(t *testing.T) {
	h, err := Read(strings.NewReader(many(20_000)), Jepsen)
	if err != nil || len(h.Calls) != 20_000 {
		t.Fatal(len(h.Calls), err)
	}
}

// TestKeepsLittle: of a call of 140 bytes of text, what a judge needs stays, and
// names and words once only.
func TestKeepsLittle(t *testing.T) {
	const calls = 50_000
	text := many(calls)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	h, err := Read(strings.NewReader(text), Jepsen)
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := (after.HeapAlloc - before.HeapAlloc) / calls
	t.Logf("%d bytes for each call", each)
	if each > 56+64+40 { // a Call, a sweep.Op, and room to grow
		t.Errorf("%d bytes for each of %d calls", each, len(h.Calls))
	}
	runtime.KeepAlive(text)
}

// BenchmarkRead reads a million calls. It prints processor time, since that on the
// wall says more about what else the machine does.
func BenchmarkRead(b *testing.B) {
	text := many(1_000_000)
	least := time.Hour
	for b.Loop() {
		began := cpu()
		if _, err := Read(strings.NewReader(text), Jepsen); err != nil {
			b.Fatal(err)
		}
		least = min(least, cpu()-began)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(least.Milliseconds()), "ms-1M")
	b.ReportMetric(float64(len(text))/1e6/least.Seconds(), "MB/cpu-s")
}

func cpu() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// TestDamaged: files that were damaged anywhere are read or refused with a line.
func TestDamaged(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	ops := "[" + strings.Join([]string{operation(0, "acquire", `{"ok":true,"fence":3}`, 1, 2), operation(1, "acquire", `null`, 1, 2), operation(0, "release", `{"ok":true}`, 3, 4)}, ",\n") + "]"
	refused := 0
	for range 20_000 {
		for format, text := range map[Format]string{Jepsen: wholeHistory, Porcupine: ops} {
			b := []byte(text)
			for range 1 + r.IntN(3) {
				switch at := r.IntN(len(b)); r.IntN(3) {
				case 0:
					b[at] = text[r.IntN(len(text))]
				case 1:
					b = b[:at+1]
				default:
					b = slices.Delete(b, at, min(len(b), at+1+r.IntN(20)))
				}
				if len(b) == 0 {
					break
				}
			}
			refused += settles(t, b, format)
		}
	}
	if refused < 10_000 {
		t.Errorf("only %d were refused", refused)
	}
}

// settles reads and judges anything. What is refused is refused with its line.
func settles(t *testing.T, b []byte, format Format) int {
	h, err := Read(strings.NewReader(string(b)), format)
	if err != nil {
		if !strings.HasPrefix(err.Error(), "line ") {
			t.Fatalf("%q: %v", b, err)
		}
		return 1
	}
	h.Leased(5)
	for m := sweep.Mutex; m <= sweep.Semaphore; m++ {
		if err := h.Suits(m); err == nil {
			_, undecided := h.Judge(sweep.Rules{Model: m, StrictBusy: true, Budget: 10_000})
			for _, reason := range undecided {
				if !strings.Contains(reason, "too many ways") {
					t.Fatalf("%q: was read, but is no history: %s", b, reason)
				}
			}
		}
	}
	return 0
}

func FuzzJepsen(f *testing.F) {
	f.Add([]byte(wholeHistory))
	f.Fuzz(func(t *testing.T, b []byte) { settles(t, b, Jepsen) })
}

func FuzzPorcupine(f *testing.F) {
	f.Add([]byte(`[` + operation(0, "acquire", `{"ok":true,"fence":3}`, 1, 2) + `]`))
	f.Fuzz(func(t *testing.T, b []byte) { settles(t, b, Porcupine) })
}
