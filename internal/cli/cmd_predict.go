package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/judge/predict"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/view"
)

const (
	mostPredicted = 1e9
	measureCosts  = "toll compare --load rr,bulk, then toll predict @1"
)

func newPredict(e env) *cobra.Command {
	var (
		out outputFlags
		w   predict.Workload
	)
	c := &cobra.Command{
		Use:   "predict FILE",
		Short: "Predict what each mode would cost your application",
		Long: `predict takes the costs of round trips, bytes and streamed tokens from a results
file with rr, and bulk for larger replies ("-" is standard input, @1 the newest kept run),
and computes what an application would see: the time of a page of N queries, and the
share of a core that N queries per second take. It prints its arithmetic.`,
		Example: `  toll compare --load rr,bulk --save run.jsonl
  toll predict run.jsonl --queries 20 --bytes 4k --rate 500
  toll predict @1`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return notOne("predict", "results file", len(args), "toll predict run.jsonl")
			case len(args) == 0 || args[0] == "":
				return usage(errors.New("predict needs measured costs"),
					measureCosts)
			}
			return nil
		},
		RunE: atOnce(func(c *cobra.Command, args []string) error {
			results := args[0]
			if err := out.check(place{"", results}); err != nil {
				return err
			}
			f, err := readResults(e, results, c.InOrStdin())
			if err != nil {
				return err
			}
			p, err := predict.Judge(f, w)
			if err != nil {
				return &failure{exitBadFile, fmt.Errorf("%s: %w", results, err), costsOf(results)}
			}
			return out.print(e, typed(view.Prediction(p), e))
		}),
	}
	fl := c.Flags()
	add(fl,
		flagDef{name: "bytes", group: toSend, value: sizeFlag(&w.Bytes, 1<<10, 1, math.MaxInt32),
			help: "bytes of a reply"},
		flagDef{name: "tokens-per-second", group: toSend, value: numberFlag(&w.Tokens, 0, 0, mostPredicted),
			help: "streamed tokens per second of the whole application; needs the load stream in the file"},
		flagDef{name: "queries", group: toSend, value: wholeFlag(&w.Queries, 20, 1, mostPredicted),
			help: "queries of a page, one after another"},
		flagDef{name: "rate", group: toSend, value: numberFlag(&w.QPS, 0, 0, mostPredicted),
			help: "queries per second of the whole application (default: no CPU is predicted)"})
	out.add(fl, document.APrediction)
	return c
}

// costsOf returns what to do if predictions cannot be made of a results file. If that is a kept
// run, it names the newest other one of which they can.
func costsOf(results string) string {
	if !strings.HasPrefix(results, "@") {
		return measureCosts
	}
	l, err := listHistory(0)
	if err != nil {
		return measureCosts
	}
	for _, e := range l.Runs {
		if e.Name() != results && e.Error == "" && e.Swept == "" && len(e.Rows) > 0 &&
			slices.Contains(e.Loads, workload.RR) {
			return fmt.Sprintf("toll predict %s, of %s; or %s", e.Name(), e.CommandLine(), measureCosts)
		}
	}
	return measureCosts
}
