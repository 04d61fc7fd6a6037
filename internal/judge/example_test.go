package judge_test

import (
	"fmt"
	"os"

	"github.com/bridgetoll/bridgetoll/internal/judge"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func ExampleJudge() {
	in, err := os.Open("../record/sample/testdata/run.jsonl")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer in.Close()
	f, err := sample.Read(in)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := judge.Judge(f).Base()
	fmt.Println(r.Answer.Question)
	for _, c := range r.Cells {
		if x := c.Metrics[c.Primary].Ratio; x != nil {
			fmt.Printf("%s %s: %.2f of %s's %s (%s)\n", c.Load, c.Label(), x.Median, x.To,
				c.Primary, x.Verdict)
		}
	}
	// Output:
	// Which network mode, by throughput and median latency?
	// bulk bridge: 0.89 of host's throughput (unclear)
	// bulk publish-proxy :lo6: 0.68 of host's throughput (unclear)
	// bulk publish-proxy :lo: 0.61 of host's throughput (unclear)
	// rr bridge: 1.06 of host's latency_p50 (unclear)
	// rr publish-proxy :lo6: 1.44 of host's latency_p50 (unclear)
	// rr publish-proxy :lo: 1.55 of host's latency_p50 (unclear)
}
