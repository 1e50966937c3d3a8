package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/holdfast-io/holdfast/serve"
)

func newServe(io streams) *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "serve [DIR]",
		Short: "Browse stored runs: filter, compare, open reports",
		Long: `Shows the runs under DIR (default: runs) in a browser: a table to filter by lock,
scenario, verdict and world, the newest verdict of each lock in each scenario,
two runs side by side, and every run's report. It only reads, and nothing
outside DIR. It listens on loopback, where nobody else can reach it, unless
--listen says otherwise; there is no password.`,
		Example: `  holdfast serve
  holdfast serve runs --listen 127.0.0.1:8080`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage("holdfast serve --help", "serve wants one folder of runs")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "runs"
			if len(args) == 1 {
				dir = args[0]
			}
			return serveRuns(cmd.Context(), io, dir, listen)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:7780", "address to listen on; port 0 takes a free one")
	return cmd
}

// serveRuns serves until the context ends.
func serveRuns(ctx context.Context, io streams, dir, listen string) error {
	handler, closeRoot, err := serve.New(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder %s (%w)\nTry: holdfast run kleppmann-gc-pause, which stores its runs under runs, or holdfast serve DIR", dir, err)
	}
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return errors.Join(fmt.Errorf("listen: %w", err), closeRoot())
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok && !a.IP.IsLoopback() {
		fmt.Fprintln(io.err, "holdfast: whoever reaches this address can read every run")
	}
	fmt.Fprintf(io.out, "http://%s/   shows %s, until Ctrl-C\n", l.Addr(), dir)
	s := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err = s.Shutdown(grace)
		<-ended // it says that it was shut down
	}
	return errors.Join(err, closeRoot())
}
