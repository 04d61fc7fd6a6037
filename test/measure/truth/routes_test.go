package truth

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
)

// A trace of a planted route, whose server has parts.
func routeText(spun, slept, network float64, refused string) string {
	return fmt.Sprintf(`{"traces":[{"label":"planted","refused":%q,"rows":[
{"name":"network","added":%s},{"name":"server","added":%s,"parts":[
{"name":"its own CPU time","added":%[4]s},{"name":"asleep","added":%[5]s}]},
{"name":"not attributed","added":%[6]s}]}]}`, refused, priceText(network, 0.05),
		priceText(spun+slept, 0.05), priceText(spun, 0.05), priceText(slept, 0.05),
		priceText(40, 0.05))
}

func TestMovedInRoute(t *testing.T) {
	d := plantedRoute{row: "server", part: "its own CPU time"}
	for _, c := range []struct {
		name                 string
		spun, slept, network float64
		want                 verdict
	}{
		{"right", 20.5, 0.1, 0.1, yes},
		{"too-little", 15, 0.1, 0.1, no},
		{"elsewhere", 0.1, 20, 0.1, no},
		{"another-moves", 20, 0, 1.2, no},
		{"a-wake-up-moves", 20, 1.2, 0, no},
		{"a-wake-up-hardly-moves", 20, 0.4, 0, yes},
		{"a-wake-up-may-move", 20, 0.52, 0, unclear},
		{"too-little-or-enough", 17.02, 0, 0, unclear},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := moved{others: map[string][]amount{}}
			r, err := readTrace([]byte(routeText(c.spun, c.slept, c.network, "")))
			if err == nil {
				err = m.addRoute(r, d)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := m.verdict(amount{at: 20e-6}, routeLimits); got != c.want {
				t.Errorf("%q: %s, %s", got, mean(m.right), m.text(routeLimits))
			}
		})
	}
	t.Run("in-two-rows", func(t *testing.T) {
		both := plantedRoute{row: "server", also: "network"}
		m := moved{others: map[string][]amount{}}
		r, err := readTrace([]byte(routeText(15, 0, 5, "")))
		if err == nil {
			err = m.addRoute(r, both)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := m.verdict(amount{at: 20e-6}, routeLimits); got != yes {
			t.Errorf("%q: %s, %s", got, mean(m.right), m.text(routeLimits))
		}
	})
	for name, text := range map[string]string{"refused": routeText(20, 0, 0, "lost"),
		"none": `{"traces":[]}`} {
		r, err := readTrace([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := (&moved{}).addRoute(r, d); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRouteLimits(t *testing.T) {
	for row, want := range map[string]float64{"network": routeLimit, "server's TCP": routeLimit,
		"server: asleep": wakeLimit, "relay proxy": wakeLimit, "client": wakeLimit} {
		if got := routeLimits(row); got != want {
			t.Errorf("%s may move by %g s, want %g", row, got, want)
		}
	}
}

// The clients of this program measure what a server does before it answers.
func TestCompareServers(t *testing.T) {
	needs(t, "ip")
	w, err := newRouteWorld(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.close(); err != nil {
			t.Error(err)
		}
	}()
	plain, err := w.add(routeKind{})
	if err != nil {
		t.Fatal(err)
	}
	const sleep = 30 * time.Millisecond
	slow, err := w.add(routeKind{answer: answering{Sleep: sleep, Size: 70_000}, bridges: 2,
		relay: true})
	if err != nil {
		t.Fatal(err)
	}
	a, err := w.compare(plain, slow, time.Millisecond)
	if err != nil || a.at < 0.9*sleep.Seconds() {
		t.Errorf("%s, %v", a, err)
	}
	many, err := w.add(routeKind{answer: answering{Sleep: sleep, Alone: true}})
	if err != nil {
		t.Fatal(err)
	}
	const clients = 3
	c, err := w.crowd(many, clients)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * clients * sleep)
	if took, err := c.end(); err != nil || took < sleep.Seconds() {
		t.Errorf("%v, %v", took, err)
	}
}

func TestAnswers(t *testing.T) {
	at := testnet.TCP(t).String()
	cmd := exec.CommandContext(t.Context(), os.Args[0], answerArg, `{"Size":5}`, at)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp4", at)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := blocking(c)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	for range 2 {
		if took, err := ask(fd, make([]byte, 1000)); err != nil || took <= 0 {
			t.Errorf("%d, %v", took, err)
		}
	}
}

// TestSums adds traces of a published route.
func TestSums(t *testing.T) {
	var s summed
	for _, rest := range []string{`{"n":5,"median":1e-6,"low":-1e-7,"high":2e-6}`,
		`{"n":5,"median":-1e-6,"low":-2e-6,"high":-1e-7}`,
		`{"n":5,"median":1e-6,"low":1e-7,"high":2e-6}`} {
		r, err := readTrace(fmt.Appendf(nil, `{"traces":[{"label":"published","rows":[{"name":"network"}],
"untraced":{"median":4e-5,"low":3e-5,"high":5e-5},"unattributed":%s}]}`, rest))
		if err == nil {
			err = s.add(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if s.agree != 1 || len(s.rest) != 3 || len(s.adds) != 3 || math.Abs(mean(s.adds).at-40e-6) > 1e-9 {
		t.Errorf("%+v", s)
	}
	for name, text := range map[string]string{"none": `{"traces":[]}`,
		"refused": `{"traces":[{"label":"published","refused":"lost","rows":[{"name":"network"}]}]}`,
		"short":   `{"traces":[{"label":"published","rows":[{"name":"network"}]}]}`} {
		r, err := readTrace([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.add(r); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSumsVerdict(t *testing.T) {
	for name, tt := range map[string]struct {
		n, agree int
		half     float64 // of each, where the route adds 40
		want     verdict
	}{
		"all agree":           {5, 5, 6, yes},
		"two miss by chance":  {5, 3, 6, yes},
		"three miss":          {5, 2, 6, no},
		"one of two misses":   {2, 1, 6, yes},
		"both miss":           {2, 0, 6, no},
		"all agree, too wide": {5, 5, 20, unclear},
		"miss, and too wide":  {5, 2, 20, no},
		"none":                {0, 0, 0, no},
	} {
		s := summed{agree: tt.agree}
		for range tt.n {
			s.adds, s.rest = append(s.adds, amount{40, 1}), append(s.rest, amount{1, tt.half})
		}
		if got := s.verdict(); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestOnFirstCPU(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, during, after unix.CPUSet
	err := unix.SchedGetaffinity(0, &before)
	if err == nil {
		err = onFirstCPU(func() error { return unix.SchedGetaffinity(0, &during) })
	}
	if err := errors.Join(err, unix.SchedGetaffinity(0, &after)); err != nil {
		t.Fatal(err)
	}
	if during.Count() != 1 || after != before {
		t.Errorf("from %v to %v and %v", before, during, after)
	}
}
