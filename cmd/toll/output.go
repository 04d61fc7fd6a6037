package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/report"
)

// outputFlags say how and where a command prints.
type outputFlags struct {
	format string
	file   string
	to     *os.File // nil: the standard output, or not yet open
	close  func() error
}

func (o *outputFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&o.format, "format", "table", "table or json")
	fl.StringVar(&o.file, "output", "", "write to this file instead of the standard output")
}

// check checks the flags of a command that has these other files.
func (o *outputFlags) check(others ...place) error {
	if report.Formats[o.format] == nil {
		return usage(fmt.Errorf("unknown format %q", o.format), "formats are: table, json")
	}
	return o.apart(others)
}

// open opens the file, so that a place that cannot be written is known before
// anything is measured. write opens it if nobody did.
func (o *outputFlags) open(e env) (err error) {
	if o.file == "" || o.to != nil {
		return nil
	}
	if o.to, o.close, err = create(o.file, e.stdout); err != nil {
		return &failure{exitFailed, fmt.Errorf("write output: %w", err), "give --output a place that can be written"}
	}
	return nil
}

// write gives f the place to print to, and closes it.
func (o *outputFlags) write(e env, f func(io.Writer) error) (err error) {
	if err := o.open(e); err != nil {
		return err
	}
	if o.to == nil {
		return f(e.stdout)
	}
	return errors.Join(f(o.to), o.close())
}

func (o *outputFlags) report(e env, r *analysis.Report) error {
	opts := report.Options{Color: o.file == "" && colored(e.stdout)}
	return o.write(e, func(w io.Writer) error { return report.Formats[o.format](w, r, opts) })
}

// colored reports whether w is a terminal whose user did not ask for plain
// text (https://no-color.org).
func colored(w io.Writer) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && isTerminal(w)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
