package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/bridgetoll/bridgetoll/internal/reach/collect"
	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
)

// comparedWith holds what a report on ports is compared with.
type comparedWith struct {
	expect, against string
	now             bool // write what holds now

	old   *ports.Facts        // of the file of --against, once read; nil: none
	lines []ports.Expectation // of the file of --expect, once read
}

const (
	expectFlag  = "expect" // and a format, which writes such a file
	againstFlag = "against"
)

func (w *comparedWith) add(fl *pflag.FlagSet) {
	add(fl,
		flagDef{name: againstFlag, group: toMeasure, value: text(&w.against, ""), word: "FILE",
			help: "say who gained and lost what since this file of --save", files: machineFile},
		flagDef{name: expectFlag, group: toRead, value: text(&w.expect, ""), word: "FILE",
			help: "check the lines of this file, such as \"other machines reach only 443/tcp\"",
			not:  againstFlag})
}

// any reports whether the report is about more than routes.
func (w *comparedWith) any() bool { return w.now || w.expect != "" || w.against != "" }

// check returns an error if the flags are about all ports, and port is not 0, which stands for all.
func (w *comparedWith) check(port uint16) error {
	if port != 0 && (w.expect != "" || w.now) {
		return usage(errors.New("--expect and --format expect are about all ports"),
			"toll ports --expect FILE")
	}
	return nil
}

// read reads the lines of --expect, or the older machine, whose connections it tries.
func (w *comparedWith) read(c *cobra.Command, e env, client netip.Addr, port uint16) error {
	switch {
	case w.expect != "":
		return w.readLines(c, e, client)
	case w.against == "":
		return nil
	}
	facts, m, err := loadMachine(e, againstFlag, w.against, c.InOrStdin())
	if err != nil {
		return err
	}
	facts.Client, facts.Everything, w.old = client, true, facts
	return collect.AskSaved(c.Context(), facts, m, port)
}

// apply compares the report with what the flags name.
func (w *comparedWith) apply(r *ports.Report) {
	if w.lines != nil {
		r.Expect(w.lines)
	}
	if w.old != nil {
		r.Since(ports.Judge(w.old, r.Port), w.against)
	}
}

func (w *comparedWith) readLines(c *cobra.Command, e env, client netip.Addr) error {
	f, err := input(e, w.expect, c.InOrStdin())
	if err != nil {
		return &failure{exitBadFile, err, "toll ports --format expect --output FILE makes one"}
	}
	defer f.Close()
	if w.lines, err = ports.ParseExpectations(f, client); err != nil {
		name := w.expect
		if name == "-" {
			name = "standard input"
		}
		return &failure{exitBadFile, fmt.Errorf("%s: %w", name, err),
			cmp.Or(ownHint(err), "a line is such as: other machines reach only 22/tcp 443/tcp")}
	}
	return nil
}

// failed returns the failure for expectations that do not hold, or are not certain.
func (w *comparedWith) failed(r *ports.Report) error {
	var err error
	for _, x := range r.Expected {
		switch x.Holds {
		case ports.No:
			return &failure{code: exitWorse}
		case ports.Maybe:
			err = &failure{code: exitUnclear}
		}
	}
	return err
}
