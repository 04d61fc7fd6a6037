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
	for _, f := range r.Found {
		fmt.Println(f.Code, f.Cells, f.N, f.Of)
	}
	for _, c := range r.Cells {
		if x := c.Metrics[c.Primary].Ratio; x != nil {
			fmt.Printf("%s %s: %.2f of %s's %s (%s)\n", c.Load, c.Label(), x.Median, x.To,
				c.Primary, x.Verdict)
		}
	}
	// Output:
	// uncertain [1 5] 0 0
	// uncertain [2 6] 0 0
	// too-few-rounds [] 6 6
	// witnessed [] 0 0
	// bulk bridge: 0.89 of host's throughput (unclear)
	// bulk publish-proxy :lo: 0.61 of host's throughput (unclear)
	// bulk publish-proxy :lo6: 0.68 of host's throughput (unclear)
	// rr bridge: 1.06 of host's latency_p50 (unclear)
	// rr publish-proxy :lo: 1.55 of host's latency_p50 (unclear)
	// rr publish-proxy :lo6: 1.44 of host's latency_p50 (unclear)
}
