// Command measure checks what toll measures, with the tools that engineers use instead and with
// differences of known size. It runs from the repository's top, after make build.
//
//	go run ./test/measure bench [-rounds 15] [-window 1s] [-seed 1] [-o FILE]
//	go run ./test/measure truth [-only aa,peers] [-quick | -full]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	_ "github.com/bridgetoll/bridgetoll/internal/measure/worker/start" // runs workers
	"github.com/bridgetoll/bridgetoll/internal/paths/lab"
	"github.com/bridgetoll/bridgetoll/test/measure/bench"
	"github.com/bridgetoll/bridgetoll/test/measure/peer"
	"github.com/bridgetoll/bridgetoll/test/measure/truth"
)

var subcommands = map[string]func(ctx context.Context, stdout, stderr io.Writer,
	args []string) error{
	"bench": bench.Run,
	"truth": truth.Run,
}

func main() {
	for _, inner := range []func([]string) (bool, error){lab.Inner, peer.Inner, truth.Inner} {
		if ours, err := inner(os.Args[1:]); ours {
			exit(err)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := errors.New("usage: measure bench|truth [flags]")
	if len(os.Args) > 1 && subcommands[os.Args[1]] != nil {
		err = subcommands[os.Args[1]](ctx, os.Stdout, os.Stderr, os.Args[2:])
	}
	if ctx.Err() != nil {
		err = errors.New("interrupted")
	}
	stop()
	exit(err)
}

func exit(err error) {
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
	os.Exit(0)
}
