package workload

import (
	"math"
	"testing"
)

// "Docker networking on Linux" gives Gbit/s and mpstat's idle share on four cores.
func TestOnBusyCoreReproducesPublishedArticle(t *testing.T) {
	host := OnBusyCore(70.0, 0.4897, 4)
	for _, c := range []struct {
		name             string
		throughput, idle float64
		want             float64
	}{
		{"publish-proxy", 41.9, 0.1407, 2.8},
		{"publish-nat", 54.1, 0.4925, 1.3},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := host / OnBusyCore(c.throughput, c.idle, 4)
			if math.Round(got*10)/10 != c.want {
				t.Errorf("host against %s = %.3f, the article says %.1f", c.name, got, c.want)
			}
		})
	}
}
