package stats_test

import (
	"fmt"

	"github.com/bridgetoll/bridgetoll/internal/judge/stats"
)

// Only values of the same round are compared, so drift does not matter. A difference must exceed
// what the baseline's control shows.
func ExampleJudge() {
	host := map[int]float64{0: 40, 1: 44, 2: 38, 3: 50, 4: 41, 5: 42}
	again := map[int]float64{0: 40.2, 1: 43.6, 2: 38.1, 3: 50.3, 4: 40.9, 5: 42.1}
	bridge := map[int]float64{0: 34.1, 1: 37.2, 2: 32.4, 3: 42.3, 4: 35, 5: 35.6}

	floor := stats.Floor(stats.Summarize(stats.Ratios(again, host)))
	ratio := stats.Summarize(stats.Ratios(bridge, host))
	fmt.Printf("%.2f (%.2f to %.2f), noise floor %.2f: %s\n", ratio.Median, ratio.Low, ratio.High,
		floor,
		stats.Judge(ratio, floor, 0.02, true))
	// Output: 0.85 (0.85 to 0.85), noise floor 0.01: worse
}
