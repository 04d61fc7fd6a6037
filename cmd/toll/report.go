package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/sample"
)

func newReport(e env) *cobra.Command {
	var out outputFlags
	c := &cobra.Command{
		Use:   "report FILE",
		Short: "Judge a results file again",
		Long: `report judges a file that "toll compare --save" or "toll ladder --save" wrote, on
any machine and as often as you like. "-" reads the standard input. A file whose run was killed is
judged as far as it goes.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage(fmt.Errorf("report takes one results file, %d were given", len(args)), "toll report run.jsonl")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if err := out.check(); err != nil {
				return err
			}
			f, err := readResults(args[0], c.InOrStdin())
			if err != nil {
				return err
			}
			return out.report(e, analysis.Judge(f))
		},
	}
	out.add(c.Flags())
	return c
}

func readResults(name string, stdin io.Reader) (*sample.File, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, &failure{exitBadFile, err, "toll compare --save " + name + " makes one"}
		}
		defer f.Close()
		in = f
	}
	f, err := sample.Read(in)
	if err != nil {
		return nil, &failure{exitBadFile, fmt.Errorf("%s: %w", name, err), "a results file is what toll compare --save writes"}
	}
	return f, nil
}
