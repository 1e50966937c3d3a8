package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/holdfast-io/holdfast/harness"
	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/scenarios"
)

// exitUsage is for a command line that cannot be understood. The other exit
// codes are in package reports.
const exitUsage = 64

// usageError is a mistake on the command line.
type usageError struct {
	msg string
	try string // what to type next; may be empty
}

func (e *usageError) Error() string {
	if e.try == "" {
		return e.msg
	}
	return e.msg + "\nTry: " + e.try
}

func usage(try, format string, args ...any) error {
	return &usageError{msg: fmt.Sprintf(format, args...), try: try}
}

// exitError carries an exit code for runs that are done; it prints nothing.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// streams are where a verb reads and writes. Results go to out, everything
// else to err.
type streams struct {
	in  io.Reader
	out io.Writer
	err io.Writer
}

// execute runs a command line and gives the exit code.
func execute(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	io := streams{in: in, out: out, err: errs}
	root := newRoot(io)
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	var done exitError
	var wrong *usageError
	switch {
	case err == nil:
		return reports.ExitExpected
	case errors.As(err, &done):
		return int(done)
	case errors.As(err, &wrong):
		fmt.Fprintln(errs, harness.OwnWord, wrong)
		return exitUsage
	}
	fmt.Fprintln(errs, harness.OwnWord, err)
	return reports.ExitError
}

func newRoot(io streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Does your distributed lock hold?",
		Long: `holdfast plays scenarios (pauses, partitions, failovers, clock jumps, lost
replies) against distributed locks and says what broke, whose fault it was and
what it damaged. It needs nothing but itself; --on process plays the same
scenarios on real redis-server processes.

Exit codes: 0 all as expected, 10 violation or failed expectation, 11 unknown
(nothing was proven), 12 harness error, 64 usage.`,
		Example: `  holdfast run kleppmann-gc-pause                 Kleppmann's story, on five locks
  holdfast run kleppmann-gc-pause --on process    the same on real Redis, with a real SIGSTOP
  holdfast run calm --lock all --seeds 20         no fault, every lock, twenty seeds
  holdfast matrix                                 all locks against all scenarios
  holdfast gate                                   a suite for CI, which fails on what is new
  holdfast list                                   what there is`,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownWord("command", args[0], verbs(cmd), "holdfast --help")
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newRun(io), newMatrix(io), newList(io), newCheck(io), newReplay(io), newReport(io), newExplore(io), newGate(io), newStudy(io), newMerge(io), newInspect(io), newServe(io), newWorker(io), newChild(io))
	root.SetOut(io.out) // the completion commands take it when they are made
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			completionArgs(c)
		}
	}
	root.SetHelpCommand(&cobra.Command{Use: "help [command]", Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := root.Find(args)
			if err != nil || target == nil || len(rest) > 0 {
				return unknownWord("command", strings.Join(args, " "), verbs(root), "holdfast --help")
			}
			return target.Help()
		}})
	return root
}

// completionArgs makes the shells' own sub-commands refuse words as the rest of
// the program does.
func completionArgs(c *cobra.Command) {
	var shells []string
	for _, shell := range c.Commands() {
		shell.Args = noArgs
		shells = append(shells, shell.Name())
	}
	c.Example = "  holdfast completion bash > /etc/bash_completion.d/holdfast"
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return unknownWord("shell", args[0], shells, "holdfast completion --help")
		}
		return nil
	}
	c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
}

// version is what the build knows of itself.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}

// verbs lists the visible sub-commands.
func verbs(cmd *cobra.Command) []string {
	var out []string
	for _, c := range cmd.Root().Commands() {
		if !c.Hidden {
			out = append(out, c.Name())
		}
	}
	return out
}

// fewWords is how many words a message lists where none of them is near.
const fewWords = 8

// unknownWord is the usage error for a word that is not among some, with the
// nearest that is, or with all of them if they are few.
func unknownWord(kind, word string, among []string, try string) error {
	if near := scenarios.Nearest(word, among); near != "" {
		return usage(try, "there is no %s %q; did you mean %q?", kind, word, near)
	}
	if len(among) <= fewWords {
		return usage(try, "there is no %s %q; write %s", kind, word, strings.Join(among, ", "))
	}
	return usage(try, "there is no %s %q", kind, word)
}

// flagError turns what the flag parser says into a usage error that names the
// nearest flag.
func flagError(cmd *cobra.Command, err error) error {
	try := cmd.CommandPath() + " --help"
	word, unknown := strings.CutPrefix(err.Error(), "unknown flag: ")
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		f := invalid.GetFlag()
		return usage(try, "--%s %q is not %s", f.Name, invalid.GetValue(), wanted(f.Value.Type()))
	}
	if short, ok := strings.CutPrefix(err.Error(), "unknown shorthand flag: "); ok {
		return usage(try, "there is no flag %s; flags have two dashes", strings.Fields(short)[len(strings.Fields(short))-1])
	}
	if !unknown {
		return usage(try, "%v", err)
	}
	var flags []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			flags = append(flags, "--"+f.Name)
		}
	})
	return unknownWord("flag", word, flags, try)
}

// wanted says what a flag of a type takes, in the words of the command line.
func wanted(kind string) string {
	switch kind {
	case "duration":
		return "a duration: write 500ms, 10s or 2m"
	case "uint64":
		return "a whole number from 0 up"
	case "int":
		return "a whole number"
	}
	return "a " + kind
}

// noArgs refuses arguments with a usage error.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage(cmd.CommandPath()+" --help", "%s takes no argument, not %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// oneArg wants exactly one argument.
func oneArg(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage(cmd.CommandPath()+" --help", "%s takes one %s, not %d arguments", cmd.CommandPath(), what, len(args))
		}
		return nil
	}
}
