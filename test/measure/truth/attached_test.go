package truth

import "testing"

func TestReadBenchmarks(t *testing.T) {
	for name, c := range map[string]struct {
		read func(string) (measured, error)
		said string
		want measured
	}{
		"redis-benchmark": {readRedis, `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms"
"GET","21008.40","0.041","0.016","0.039"
`, measured{41e-6, 21008.4}},
		"pgbench": {readPgbench, `number of failed transactions: 0 (0.000%)
latency average = 0.713 ms
initial connection time = 7.052 ms
tps = 5610.098103 (without initial connection time)
`, measured{713e-6, 5610.098103}},
	} {
		if got, err := c.read(c.said); got != c.want || err != nil {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if _, err := c.read("Connection refused\n"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
