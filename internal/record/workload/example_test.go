package workload_test

import (
	"encoding/json"
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

func ExampleWorkload_New() {
	w, _ := workload.Find(workload.RR)
	l := w.New()
	w.Time(&l, sample.Wire{})
	b, err := json.Marshal(l)
	fmt.Println(w.Words(l), string(b), err)
	fmt.Println(w.Primary, "in", workload.MetricOf(w.Primary, l).Unit)
	// Output:
	// rr, 1 byte each way {"kind":"rr","request":1,"reply":1,"warmup_s":0.05,"window_s":0} <nil>
	// latency_p50 in s
}
