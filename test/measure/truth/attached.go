package truth

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/judge/endpoints"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// servedLimit is how far toll's mean time of requests may be from their client's own, as a share of
// it, and how much fewer requests a server may answer while toll is attached.
const servedLimit = 0.03

// settles is for how long nothing happens before each turn: until toll has found the server.
const settles = 3 * time.Second

// benchmark measures a real server, which listens at a port of this machine.
type benchmark struct {
	name  string
	start func(s *spaces, dir, port string) error
	// load returns the command that measures for a time. rate is the requests a second that it made
	// before; 0: it has not run.
	load func(port string, during time.Duration, rate float64) []string
	read func(said string) (measured, error)
	// loops means that its mean has the time from a reply to the next request, too.
	loops bool
}

// measured is what a benchmark says: the mean time of its requests in s, and requests a second.
type measured struct{ mean, rate float64 }

var benchmarks = []benchmark{
	{name: "redis-benchmark", start: startRedis, read: readRedis,
		load: func(port string, during time.Duration, rate float64) []string {
			const first = 20_000
			return []string{"redis-benchmark", "-p", port, "-c", "1", "-t", "get", "--csv", "-n",
				strconv.Itoa(max(first, int(rate*during.Seconds())))}
		}},
	{name: "pgbench", start: startPostgres, read: readPgbench, loops: true,
		load: func(port string, during time.Duration, _ float64) []string {
			return append(inPostgres("pgbench"), "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-n",
				"-S", "-c", "4", "-T", strconv.Itoa(int(during.Seconds())), "postgres")
		}},
}

// served shows that --attach says what real clients of real servers measure, and slows these
// little.
func (t *trial) served(ctx context.Context) ([]table, error) {
	out := table{title: "Traces of requests to servers that run",
		text: fmt.Sprintf("`toll trace --attach` while a tool measures its server, and the tool alone, "+
			"in turns: %d pairs of %s. A row holds if the mean time that toll says clients have without it "+
			"is the tool's own ±%.0f %%, and if the server answers at most %.0f %% fewer requests a second "+
			"while toll is attached. It is unclear if an interval has values on both sides of a limit.",
			t.scale.served.n, t.scale.served.each, percent*servedLimit, percent*servedLimit),
		head: []string{"tool", "requests a second", "its mean", "toll's to it",
			"less what it says that following slows", "requests a second with toll"}}
	for _, b := range benchmarks {
		v, cells, err := t.serve(ctx, b)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil { // another may work
			t.say("trace-served: %s: %v", b.name, err)
			v, cells = no, []string{firstLine(err.Error()), "", "", "", ""}
		}
		out.add(v, append([]string{b.name}, cells...)...)
	}
	return []table{out}, nil
}

func (t *trial) serve(ctx context.Context, b benchmark) (v verdict, cells []string, err error) {
	s := &spaces{}
	defer func() { err = errors.Join(err, s.close()) }()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return no, nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		return no, nil, err
	}
	dir, err := os.MkdirTemp(t.dir, "")
	if err == nil {
		err = b.start(s, dir, port)
	}
	if err != nil {
		return no, nil, err
	}
	m, err := b.run(ctx, port, time.Second, 0)
	if err != nil {
		return no, nil, err
	}
	var means, less, rates, paces []float64
	for i := range t.scale.served.n {
		var alone, attached measured
		var ours, slowed float64
		turns := []func() error{
			func() (err error) {
				time.Sleep(settles)
				alone, err = b.run(ctx, port, t.scale.served.each, m.rate)
				return err
			},
			func() (err error) {
				attached, ours, slowed, err = t.attachTo(ctx, b, port, m.rate)
				return err
			},
		}
		if i%2 == 1 {
			slices.Reverse(turns)
		}
		for _, turn := range turns {
			if err := turn(); err != nil {
				return no, nil, err
			}
		}
		t.say("trace-served: %s: pair %d of %d: %s, %.0f a second; attached %s, by toll %s, %.0f a second",
			b.name, i+1, t.scale.served.n, micros(alone.mean), alone.rate, micros(attached.mean),
			micros(ours), attached.rate)
		means = append(means, math.Log(ours/attached.mean))
		less = append(less, math.Log(ours*(1-slowed)/attached.mean))
		rates, paces = append(rates, alone.rate), append(paces, math.Log(attached.rate/alone.rate))
		m = alone
	}
	mean, err := ofLogs(means)
	corrected, err2 := ofLogs(less)
	pace, err3 := ofLogs(paces)
	if err := errors.Join(err, err2, err3); err != nil {
		return no, nil, err
	}
	limit := math.Log1p(servedLimit)
	v = worst(amount(corrected).within(limit), amount{-pace.at, pace.half}.atMost(limit))
	if v == tooWide {
		v = unclear
	}
	slices.Sort(rates)
	return v, []string{fmt.Sprintf("%.0f", rates[len(rates)/2]), micros(m.mean), mean.String(),
		corrected.String(), pace.String()}, nil
}

// run runs the tool.
func (b benchmark) run(ctx context.Context, port string, during time.Duration, rate float64) (
	m measured, err error) {
	args := b.load(port, during, rate)
	said, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
	if err == nil {
		m, err = b.read(string(said))
	}
	if err != nil {
		return m, fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, said)
	}
	return m, nil
}

// attachTo runs the tool while toll is attached to its server. ours is what toll says of the mean,
// and slowed by what share following slowed the server.
func (t *trial) attachTo(ctx context.Context, b benchmark, port string, rate float64) (m measured,
	ours, slowed float64, err error) {
	cmd := t.command(ctx, "trace", "--attach", port, "--budget", "10m", "--quiet", "--force",
		"--format", "json")
	if err := cmd.Start(); err != nil {
		return m, 0, 0, err
	}
	time.Sleep(settles)
	m, err = b.run(ctx, port, t.scale.served.each, rate)
	err = errors.Join(err, cmd.Process.Signal(os.Interrupt), cmd.failed(cmd.Wait()))
	if err != nil {
		return m, 0, 0, err
	}
	var x sample.Served
	if err := json.Unmarshal(cmd.stdout.Bytes(), &x); err != nil {
		return m, 0, 0, err
	}
	if x.Client == nil {
		return m, 0, 0, fmt.Errorf("toll saw no client of %s", b.name)
	}
	if ours = x.Client.Whole.Mean; b.loops {
		ours += x.Client.Between.Mean
	}
	return m, ours, endpoints.Slowed(&x).Median, nil
}

// startServer starts a server, and returns once it listens.
func startServer(s *spaces, port string, cmd *exec.Cmd) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	s.closers = append(s.closers, func() error {
		err := cmd.Process.Signal(syscall.SIGQUIT)
		_ = cmd.Wait()
		return err
	})
	for until := time.Now().Add(exitTimeout); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp4", "127.0.0.1:"+port)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(until) {
			return err
		}
	}
}

func startRedis(s *spaces, dir, port string) error {
	return startServer(s, port, exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1",
		"--save", "", "--dir", dir))
}

// readRedis reads what redis-benchmark --csv says.
func readRedis(said string) (m measured, err error) {
	r := csv.NewReader(strings.NewReader(said))
	r.FieldsPerRecord = -1
	all, err := r.ReadAll()
	if err != nil {
		return m, err
	}
	for _, x := range all {
		if len(x) > 2 && x[0] == "GET" {
			rate, err := strconv.ParseFloat(x[1], 64)
			mean, err2 := strconv.ParseFloat(x[2], 64)
			return measured{mean / 1e3, rate}, errors.Join(err, err2)
		}
	}
	return m, errors.New("no line GET")
}

// inPostgres returns the command of one of PostgreSQL's programs, which Debian keeps from the PATH.
func inPostgres(program string) []string {
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program)
	return []string{append([]string{program}, all...)[len(all)]}
}

// startPostgres starts a PostgreSQL, which refuses to be root, with pgbench's tables.
func startPostgres(s *spaces, dir, port string) error {
	const visible = 0o711
	if err := errors.Join(os.Chown(dir, nobody, nobody), os.Chmod(filepath.Dir(dir), visible)); err != nil {
		return err
	}
	asNobody := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(inPostgres(name)[0], args...)
		cmd.Dir = dir
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := asNobody("initdb", "-D", data, "-A", "trust", "-U", "postgres").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	err := startServer(s, port, asNobody("postgres", "-D", data, "-p", port, "-k", dir, "-c",
		"listen_addresses=127.0.0.1"))
	if err != nil {
		return err
	}
	for until := time.Now().Add(exitTimeout); ; time.Sleep(100 * time.Millisecond) { // it may still start
		out, err := asNobody("pgbench", "-h", "127.0.0.1", "-p", port, "-U", "postgres", "-i", "-q",
			"postgres").CombinedOutput()
		if err == nil || time.Now().After(until) {
			if err != nil {
				err = fmt.Errorf("pgbench: %w: %s", err, out)
			}
			return err
		}
	}
}

var pgbenchSaid = regexp.MustCompile(
	`(?s)latency average = ([0-9.]+) ms.*\ntps = ([0-9.]+) \(without initial connection time\)`)

// readPgbench reads what pgbench says.
func readPgbench(said string) (m measured, err error) {
	x := pgbenchSaid.FindStringSubmatch(said)
	if x == nil {
		return m, errors.New("no latency and rate")
	}
	mean, err := strconv.ParseFloat(x[1], 64)
	rate, err2 := strconv.ParseFloat(x[2], 64)
	return measured{mean / 1e3, rate}, errors.Join(err, err2)
}
