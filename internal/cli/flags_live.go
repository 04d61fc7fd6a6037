package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/measure/engine"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/show/live"
	"github.com/bridgetoll/bridgetoll/internal/show/live/terminal"
)

const liveFlag = "live"

func (f *writing) addLive(fl *pflag.FlagSet) {
	add(fl, flagDef{name: liveFlag, group: toWrite, value: toggle(&f.live), use: shows,
		help: "show the tables on the whole terminal as they form, with keys (? lists them)",
		main: "compare ladder trace advise"})
}

// titleOf returns the title of a command's screen.
func titleOf(c *cobra.Command) string {
	if !c.HasParent() {
		return c.CommandPath() + " compare"
	}
	return c.CommandPath()
}

func (f *writing) checkLive() error {
	if f.live && f.quiet {
		return usage(errors.New("--live and --quiet contradict each other"),
			"leave one of them out")
	}
	return nil
}

// watch draws before each epoch and each visit, never during a measurement.
type watch struct {
	bar     *progress // takes over when the user closes the screen
	display *terminal.Display
	given   chan struct{} // closed when the terminal has been restored
	stopped func()        // ends the message about stopping, or nil
	records *tee
	taken   int // bytes of the records read so far
	file    *sample.Growing
	judged  float64 // time of the last judging, in s since the run's start
	cost    float64 // duration of that judging, in s
}

// watching starts the screen. The returned context ends when the user stops the run. The watch is
// nil if the terminal cannot be drawn on.
func (f *writing) watching(ctx context.Context, e env, title string, bar *progress,
	records *tee) (context.Context, *watch) {
	t, err := liveTerminal(e.stderr)
	if err != nil {
		warn(e, fmt.Sprintf("--live: %v; the usual progress is shown instead", err))
		return ctx, nil
	}
	silent := sayNothing() // nothing else may write on the screen
	ctx, stop := context.WithCancelCause(ctx)
	w := &watch{bar: bar, given: make(chan struct{}), records: records, file: sample.NewGrowing()}
	w.display = terminal.Show(t, func(columns, lines int) live.Model {
		return live.New(title, true, colored(e.stderr), columns, lines).With(
			live.State{Note: "building what is measured"})
	})
	go func() {
		defer close(w.given)
		select {
		case <-w.display.Ended():
		case <-ctx.Done():
		}
		_ = w.display.Close() // the run goes on without a screen
		silent()
		if w.display.Outcome() == live.Stopped {
			stop(signaled{syscall.SIGINT})
			w.stopped = bar.sayStopping(ctx)
		}
	}()
	return ctx, w
}

func liveTerminal(stderr io.Writer) (*terminal.Terminal, error) {
	out, is := fileOf(stderr)
	switch {
	case !is || !isTerminal(out):
		return nil, errors.New("standard error is not a terminal")
	case os.Getenv("TERM") == "dumb":
		return nil, errors.New("TERM=dumb: the terminal cannot be drawn on")
	case os.Getenv("CI") != "":
		return nil, errors.New("CI is set, so there is no interactive terminal")
	}
	return terminal.Open(os.Stdin, out)
}

func (w *watch) show(p engine.Progress) {
	select {
	case <-w.display.Ended():
		<-w.given
		w.bar.show(p)
		return
	default:
	}
	step := stepOf(p)
	w.display.Send(live.State{Report: w.judge(p.Elapsed), Step: &step})
	w.display.Still(true)
	runtime.GC() // now rather than during a measurement
}

// judge returns the report so far, or nil if judging would take too much of the run's time. elapsed
// is in seconds.
func (w *watch) judge(elapsed float64) judge.Report {
	const share = 50 // judging takes at most 1/share of the time
	if elapsed < w.judged+share*w.cost {
		return nil
	}
	began := time.Now()
	all := w.records.kept.Bytes()
	_, err := w.file.Write(all[w.taken:])
	w.taken = len(all)
	if err != nil { // the report will show it
		return nil
	}
	f, err := w.file.File()
	if err != nil || len(f.Visits) == 0 {
		return nil
	}
	r := judge.SoFar(f)
	w.judged, w.cost = elapsed, time.Since(began).Seconds()
	return r
}

// close restores the terminal. It does nothing on nil.
func (w *watch) close() {
	if w == nil {
		return
	}
	_ = w.display.Close()
	<-w.given
	if w.stopped != nil {
		w.stopped()
		w.stopped = nil
	}
}
