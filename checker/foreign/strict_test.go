package foreign

import (
	"strings"
	"testing"

	"github.com/holdfast-io/holdfast/checker/sweep"
)

// handed is an acquire that got fence 5, its release, and an acquire that is told
// something else: its answer is in line 6.
func handed(value string) string {
	return entry(0, "invoke", "acquire", "nil", 1) + entry(0, "ok", "acquire", "5", 2) +
		entry(0, "invoke", "release", "nil", 3) + entry(0, "ok", "release", "nil", 4) +
		entry(1, "invoke", "acquire", "nil", 5) + entry(1, "ok", "acquire", value, 6)
}

// TestNoFenceIsPassedOver: what a fenced lock answered is judged by its fence, or
// refused; one that was not read would acquit it.
func TestNoFenceIsPassedOver(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{"higher", "6", ""},
		{"higher, of Hazelcast's tests", `{:client "n1" :fence 6 :uid "u"}`, ""},
		{"zero", "0", "of process 1 (line 5) got fence 0"},
		{"zero in a map", "{:token 0}", "with the higher fence 5"},
		{"none", "nil", "line 6: the acquire was granted without a fence, so a fenced model cannot judge it"},
		{"nil in a map", "{:fence nil}", "line 6: the acquire was granted without a fence"},
		{"misspelt", "{:fnce 3}", "line 6: the map of a :value has no key :fnce; it has :lock"},
		{"no keyword", "{7 3}", "line 6: the map of a :value has no key 7"},
		{"two fences", "{:fence 6 :token 3}", "line 6: the map of a :value has its fence twice, at last as :token"},
		{"two locks", "{:lock x :name y}", "line 6: the map of a :value has its lock twice, at last as :name"},
		{"string in a map", `{:fence "3"}`, `line 6: a fence is a whole number from 0 up, not "3"`},
		{"string in a pair", `["" "3"]`, `line 6: a fence is a whole number from 0 up, not "3"`},
		{"float in a pair", `["" 3.0]`, "line 6: a fence is a whole number from 0 up, not 3.0"},
		{"truth in a pair", `[nil true]`, "line 6: the name of a lock is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := Read(strings.NewReader(handed(c.value)), Jepsen)
			if err == nil {
				err = h.Suits(sweep.Fenced)
			}
			if err == nil {
				got := ""
				found, undecided := h.Judge(sweep.Rules{Model: sweep.Fenced})
				if len(found) > 0 {
					got = found[0].Text
				}
				if len(undecided) > 0 || (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
					t.Errorf("judged %q %v, want %q", got, undecided, c.says)
				}
				return
			}
			if c.says == "" || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// TestFenceZeroInJSON is the same of the other format, with a lock that hands
// fence 0 out first, which is right, and twice, which is not.
func TestFenceZeroInJSON(t *testing.T) {
	zero := `{"ok":true,"fence":0}`
	first := operation(0, "acquire", zero, 1, 2) + operation(0, "release", `{"ok":true}`, 3, 4)
	for second, says := range map[string]string{`{"ok":true,"fence":1}`: "", zero: "both got fence 0",
		`{"ok":true}`: "line 1: the acquire was granted without a fence"} {
		h, err := Read(strings.NewReader(first+operation(1, "acquire", second, 5, 6)), Porcupine)
		if err != nil {
			t.Fatal(err)
		}
		if h.Calls[0].Says() != "acquire ok, fence 0" {
			t.Errorf("the first call is shown as %q", h.Calls[0].Says())
		}
		for _, model := range []sweep.Model{sweep.Fenced, sweep.ReentrantFenced} {
			got := ""
			if err := h.Suits(model); err != nil {
				got = err.Error()
			} else if found, _ := h.Judge(sweep.Rules{Model: model}); len(found) > 0 {
				got = found[0].Text
			}
			if (got == "") != (says == "") || !strings.Contains(got, says) {
				t.Errorf("%s: got %q, want %q", second, got, says)
			}
		}
	}
}

// TestRepeatedKeys: of two values of one key neither is taken.
func TestRepeatedKeys(t *testing.T) {
	long := ""
	for _, c := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		long += `:a-` + string(c) + ` 1 `
	}
	for _, c := range []struct {
		name, text, says string
		format           Format
	}{
		{"process", "\n{:process 0\n:process 1 :type :invoke :f :acquire :time 1}", "line 3: the key :process is twice in the map that begins in line 2", Jepsen},
		{"type", entry(0, "invoke", "acquire", "nil", 1) + "{:process 0 :type :fail :type :ok :f :acquire :time 2}", "line 2: the key :type is twice", Jepsen},
		{"as keyword and string", `{:process 0 "process" 1 :type :invoke :f :acquire :time 1}`, `line 1: the key "process" is twice`, Jepsen},
		{"in a value", handed("{:fence 6 :fence 3}"), "line 6: the key :fence is twice", Jepsen},
		{"a number", handed("nil") + "{:error {1 2 1 3}}", "line 7: the key 1 is twice", Jepsen},
		{"in a long map", "{" + long + long + "}", "line 1: the key :a-a is twice", Jepsen},
		{"late in a long map", "{" + long + ":a-Z 2}", "line 1: the key :a-Z is twice", Jepsen},
		{"Output", `{"ClientId":0,"Input":{"op":"acquire"},"Output":null,` + "\n" + `"Output":{"ok":true},"Call":1,"Return":2}`, `line 2: the key "Output" is twice in the object that begins in line 1`, Porcupine},
		{"op", `{"ClientId":0,"Input":{"op":"acquire","op":"release"},"Output":{"ok":true},"Call":1,"Return":2}`, `line 1: the key "op" is twice`, Porcupine},
		{"ok", `{"ClientId":0,"Input":{"op":"acquire"},"Output":{"ok":false,"\u006fk":true},"Call":1,"Return":2}`, `line 1: the key "ok" is twice`, Porcupine},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, err := Read(strings.NewReader(c.text), c.format)
			if err == nil || h != nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
	for _, text := range []string{"{" + long + ":process 0 :type :invoke :f :acquire :time 1}",
		`{:process 0 :type :invoke :f :acquire :time 1 :error {:a 1 "a" 2 a 3 1 4 "1" 5 nil 6 [1] 7 [2] 8}}`} {
		if _, err := Read(strings.NewReader(text), Jepsen); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}
