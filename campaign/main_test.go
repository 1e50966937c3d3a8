package campaign

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/holdfast-io/holdfast/internal/storetest"
)

// The test binary is its own child process: with this variable set it serves
// jobs instead of running tests.
const childEnv = "HOLDFAST_TEST_CHILD"

// What a child does. The misbehaviours strike when the job with seedOfDoom
// comes in.
const (
	childServes = "serve"
	childPanics = "panic" // on a goroutine of its own, as a lock's renewer might
	childHangs  = "hang"
)

const seedOfDoom = 3

func TestMain(m *testing.M) {
	if how := os.Getenv(childEnv); how != "" {
		if err := serveBadly(how); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if err := storetest.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// serveBadly passes jobs on to Serve and misbehaves at the job of doom.
func serveBadly(how string) error {
	if how == childServes {
		return Serve(context.Background(), os.Stdin, os.Stdout)
	}
	out, in := io.Pipe()
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			var o order
			if json.Unmarshal(lines.Bytes(), &o) == nil && o.Job.Seed == seedOfDoom {
				doom(how)
			}
			fmt.Fprintf(in, "%s\n", lines.Bytes())
		}
		in.Close()
	}()
	return Serve(context.Background(), out, os.Stdout)
}

func doom(how string) {
	if how == childHangs {
		time.Sleep(time.Hour) // the parent kills it
	}
	renewerThatPanics()
}

// renewerThatPanics has a name that the stack must show.
func renewerThatPanics() {
	leases()["gone"] = 1
}

func leases() map[string]int { return nil }

// child makes the command of a child of this test binary.
func childOf(how string, more ...string) func() *exec.Cmd {
	return func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(append(os.Environ(), childEnv+"="+how), more...)
		return cmd
	}
}
