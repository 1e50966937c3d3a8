package sim

import (
	"strings"
	"testing"
	"time"
)

func TestBubbleHasVirtualTime(t *testing.T) {
	began := time.Now()
	var virtual time.Duration
	if err := Bubble(func() {
		start := time.Now()
		time.Sleep(time.Hour)
		virtual = time.Since(start)
	}); err != nil {
		t.Fatal(err)
	}
	if virtual != time.Hour || time.Since(began) > 10*time.Second {
		t.Errorf("an hour took %v of virtual and %v of real time", virtual, time.Since(began))
	}
}

func TestBubbleReportsAPanic(t *testing.T) {
	err := Bubble(func() { panic("boom") })
	if err == nil || !strings.Contains(err.Error(), "boom") || !strings.Contains(err.Error(), "bubble_test.go") {
		t.Errorf("a panic became %v, without its words or its stack", err)
	}
}

func TestBubbleReportsAGoroutineLeftBehind(t *testing.T) {
	err := Bubble(func() { go func() { select {} }() })
	if err == nil || !strings.Contains(err.Error(), "did not drain") {
		t.Errorf("a goroutine left behind became %v", err)
	}
	if err := Bubble(func() {}); err != nil {
		t.Errorf("the next bubble: %v", err)
	}
}
