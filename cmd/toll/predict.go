package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/bridgetoll/bridgetoll/internal/analysis"
	"github.com/bridgetoll/bridgetoll/internal/report"
)

func newPredict(e env) *cobra.Command {
	var (
		out     outputFlags
		w       analysis.Workload
		bytes   string
		results string
	)
	c := &cobra.Command{
		Use:   "predict --results FILE",
		Short: "Say what each mode would cost your application",
		Long: `predict takes the costs per operation that a results file has (round trips, bytes,
streamed tokens) and says what they make of an application: the time of a page of
so many queries, and the share of a core that so many queries a second take. It
shows its arithmetic.`,
		Example: `  toll compare --load rr,bulk --save run.jsonl
  toll predict --results run.jsonl --queries 20 --bytes 4k --qps 500`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage(fmt.Errorf("predict takes no arguments, %d were given", len(args)), "toll predict --results run.jsonl")
			}
			return nil
		},
		RunE: atOnce(func(c *cobra.Command, _ []string) error {
			if err := out.check(place{"results", results}); err != nil {
				return err
			}
			var err error
			if w.Bytes, err = parseBytes(bytes); err != nil {
				return usage(fmt.Errorf("--bytes %q: %w", bytes, err), "--bytes 4k")
			}
			if err := checkWorkload(w); err != nil {
				return err
			}
			if results == "" {
				return usage(fmt.Errorf("predict needs measured costs"), "toll compare --load rr,bulk --save run.jsonl, then toll predict --results run.jsonl")
			}
			f, err := readResults(e, results, c.InOrStdin())
			if err != nil {
				return err
			}
			p, err := analysis.Predict(f, w)
			if err != nil {
				return &failure{exitBadFile, fmt.Errorf("%s: %w", results, err), "toll compare --load rr,bulk --save " + results + " measures what is needed"}
			}
			return out.write(e, func(to io.Writer) error {
				if out.format == "json" {
					return writeJSON(to, p)
				}
				return report.Prediction(to, p, report.Options{Color: out.file == "" && colored(e.stdout)})
			})
		}),
	}
	fl := c.Flags()
	fl.SortFlags = false
	fl.StringVar(&results, "results", "", `a results file with rr, and bulk for larger replies; "-" is the standard input`)
	fl.IntVar(&w.Queries, "queries", 20, "queries of a page, one after another")
	fl.StringVar(&bytes, "bytes", "1k", "bytes of a reply")
	fl.Float64Var(&w.QPS, "qps", 0, "queries a second of the whole application (default: no CPU is predicted)")
	fl.Float64Var(&w.Tokens, "tokens-per-second", 0, "streamed tokens a second of the whole application; needs the load stream in the file")
	out.add(fl)
	return c
}

func checkWorkload(w analysis.Workload) error {
	const most = 1e9
	for _, n := range []struct {
		flag  string
		value float64
		least float64
	}{{"queries", float64(w.Queries), 1}, {"qps", w.QPS, 0}, {"tokens-per-second", w.Tokens, 0}} {
		if !(n.value >= n.least && n.value <= most) {
			return usage(fmt.Errorf("--%s %g: must be from %g to %g", n.flag, n.value, n.least, most), "")
		}
	}
	return nil
}

// parseBytes reads a number of bytes with k, M or G of 1024 each: "4k".
func parseBytes(s string) (int64, error) {
	num, shift := s, 0
	for _, u := range []struct {
		letter string
		shift  int
	}{{"k", 10}, {"M", 20}, {"G", 30}} {
		if rest, ok := strings.CutSuffix(s, u.letter); ok {
			num, shift = rest, u.shift
		}
	}
	n, err := strconv.ParseInt(num, 10, 64)
	if err != nil || n < 1 || n > math.MaxInt32 {
		return 0, fmt.Errorf("it must be a number of bytes such as 512, 4k or 1M")
	}
	n <<= shift
	if n > math.MaxInt32 {
		return 0, fmt.Errorf("at most %d", math.MaxInt32)
	}
	return n, nil
}
