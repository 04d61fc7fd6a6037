package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/machine/files"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

type outputFlags struct {
	format  formatFlag
	file    string
	force   bool      // overwrite existing files
	to      io.Writer // an open pipe or device; nil: the standard output, a file, or not yet open
	close   func() error
	details bool
}

func (o *outputFlags) add(fl *pflag.FlagSet, kind document.Kind) {
	o.format = formatFlag{format.All()[0].Name, kind}
	names := format.Names(kind)
	add(fl,
		flagDef{name: formatName, group: toWrite, value: &o.format, word: "FORMAT",
			help: printable.Either(names), main: measuring + " path", offer: names, use: shows},
		flagDef{name: outputFlag, group: toWrite, value: text(&o.file, ""), word: "FILE",
			help: "write to this file instead of the standard output", main: "path",
			use: shows | trusts},
		flagDef{name: forceFlag, group: toWrite, value: toggle(&o.force),
			help: "overwrite files that exist", use: shows | trusts})
}

func (o *outputFlags) addDetails(fl *pflag.FlagSet) {
	if fl.Lookup("details") != nil {
		return
	}
	o.addMore(fl, "also print CPU time, percentiles, paths and all warnings")
}

func (o *outputFlags) addMore(fl *pflag.FlagSet, help string) {
	add(fl, flagDef{name: "details", group: toWrite, value: toggle(&o.details), help: help,
		main: measuring, use: shows})
}

func (o *outputFlags) printReport(e env, r judge.Report) error {
	if o.whole() {
		return o.print(e, view.Report(r))
	}
	return o.print(e, view.Summary(r))
}

// whole reports whether details were requested or the format always has them.
func (o *outputFlags) whole() bool {
	f, _ := format.Find(o.format.name)
	return o.details || f.Whole
}

func (o *outputFlags) check(others ...place) error {
	if err := o.format.check(o.format.kind); err != nil {
		return err
	}
	if err := o.apart(others); err != nil {
		return err
	}
	return o.fresh(others)
}

const outputFlag = "output"

// open opens a pipe or device. It only checks a regular file, so that errors show before the
// measurement.
func (o *outputFlags) open(e env) (err error) {
	switch {
	case o.file == "" || o.to != nil:
	case files.Direct(o.file):
		o.to, o.close, err = create(o.file, e.stdout, o.force)
	default:
		err = files.Writable(o.file)
	}
	return unprinted(err)
}

func unprinted(err error) error { return unwritten(outputFlag, "write output", err) }

// write calls f with the output. A file appears only when it is complete.
func (o *outputFlags) write(e env, f func(io.Writer) error) (err error) {
	if err := o.open(e); err != nil {
		return err
	}
	switch {
	case o.file == "":
		return f(e.stdout)
	case o.to != nil:
		return unprinted(errors.Join(f(o.to), o.close()))
	}
	var b bytes.Buffer
	if err := f(&b); err != nil {
		return err
	}
	return unprinted(files.Replace(o.file, b.Bytes(), o.force))
}

func (o *outputFlags) print(e env, d document.Document) error {
	if err := o.format.check(d.Kind); err != nil {
		return err
	}
	f, _ := format.Find(o.format.name)
	opts := format.Options{Color: o.file == "" && colored(e.stdout), Width: pipeWidth()}
	if o.file == "" {
		opts.Width = terminalWidth(e.stdout)
	}
	opts.Width = min(format.DefaultWidth, opts.Width)
	if d.Page == nil {
		d = typed(d, e)
	}
	printing(d)
	return o.write(e, func(w io.Writer) error { return f.Write(w, d, opts) })
}

// printing is called with each document that is printed, for tests that lay documents out in other
// widths.
var printing = func(document.Document) {}

const (
	formatName = "format"
	junitName  = "junit" // a format
)

type formatFlag struct {
	name string
	kind document.Kind
}

func (f *formatFlag) String() string     { return f.name }
func (f *formatFlag) Set(s string) error { f.name = s; return nil }
func (f *formatFlag) Type() string       { return "string" }

func (f *formatFlag) check(k document.Kind) error {
	names := format.Names(k)
	switch found, ok := format.Find(f.name); {
	case !ok:
		return usage(&suggest.UnknownError{What: formatName, Words: []string{f.name}, Known: names},
			"")
	case !found.Writes(k):
		return usage(fmt.Errorf("--format %s does not write %s", f.name, k),
			"formats are: "+strings.Join(names, ", "))
	}
	return nil
}
