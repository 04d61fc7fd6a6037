package program

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/machine/remedy"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/text/suggest"
)

// Recipe is a well-known pair of programs.
type Recipe struct {
	Name   string
	What   string
	Needs  []Need // the client's last
	Server string
	Client string
	Ready  string
	Gauges []metric // the first decides; the others may be missing
	NoRoot bool
	Fault  string // as in sample.Program, also Again
	Again  string
}

// metric is a metric of a recipe.
type metric struct {
	text  string   // for ParseGauge; with paths only NAME[:UNIT][:higher|:lower]
	paths []string // as in sample.Gauge, also times
	times float64
}

// lines returns metrics that lines of the output have.
func lines(texts ...string) []metric {
	var out []metric
	for _, t := range texts {
		out = append(out, metric{text: t})
	}
	return out
}

func (m metric) gauge() (sample.Gauge, error) {
	text := m.text
	if len(m.paths) > 0 {
		text += "=()"
	}
	g, err := ParseGauge(text)
	if g.Times = m.times; len(m.paths) > 0 {
		g.Pattern, g.Paths = "", m.paths
	}
	return g, err
}

// Need is a program with its Debian package.
type Need struct{ Program, Package string }

const postgresPath = `PATH=$(printf %s: /usr/lib/postgresql/*/bin)$PATH; `

// sbin adds the directory that the path of Debian's ordinary users lacks.
const sbin = `PATH=$PATH:/usr/sbin; `

// nginxConf puts everything into memory that nginx would write to disk.
const nginxConf = `daemon off; master_process off; pid {dir}/pid; error_log stderr; events {} http { access_log off; ` +
	`client_body_temp_path {dir}/1; proxy_temp_path {dir}/2; fastcgi_temp_path {dir}/3; uwsgi_temp_path {dir}/4; scgi_temp_path {dir}/5; ` +
	`keepalive_requests 1000000000; server { listen {addr}; location / { return 200 hello; } } }`

// Recipes returns the recipes by name.
func Recipes() []Recipe { return slices.Clone(recipes) }

// These programs print half of a round trip's time.
const (
	qperfLatency = `latency\s+=\s+([\d.,]+) (\w+)`
	sockperfP50  = `percentile 50\.000 =\s*([\d.]+)`
	sockperfP99  = `percentile 99\.000 =\s*([\d.]+)`
)

const wrkErrors = `^\s+Socket errors: `

// The servers of iperf3, redis and nginx have one thread; clients have as many connections as keep
// it busy if throughput is measured, and one for latency.
var recipes = []Recipe{
	{
		Name: "iperf3", What: "TCP throughput of one stream",
		Needs:  []Need{{"iperf3", "iperf3"}},
		Server: "exec iperf3 -s -p {port}",
		Client: "exec iperf3 -c {host} -p {port} -t {seconds} -J",
		Ready:  ReadyTCP,
		// With UDP, 3.9 has what was sent only, as "sum". With --bidir it has keys twice: the
		// client's direction first.
		Gauges: []metric{
			{text: "throughput:bit/s", paths: []string{"end.sum_received.bits_per_second",
				"end.sum.bits_per_second"}},
			{text: "retransmits:lower", paths: []string{"end.sum_sent.retransmits"}},
			{text: "reverse:bit/s", paths: []string{
				"end.sum_received_bidir_reverse.bits_per_second",
				"end.sum_received.bits_per_second#2", "end.sum.bits_per_second#2"}},
			{text: "lost:%:lower", paths: []string{"end.sum_received.lost_percent",
				"end.sum.lost_percent"}},
			{text: "jitter:ms", paths: []string{"end.sum_received.jitter_ms",
				"end.sum.jitter_ms"}}},
		Fault: `^\s*"error":\s*".*"`,
		Again: "the server is busy running a test",
	},
	{
		Name: "netperf", What: "TCP request/response of one byte (TCP_RR)",
		Needs: []Need{{"netserver", "netperf (Debian 12: non-free)"},
			{"netperf", "netperf (Debian 12: non-free)"}},
		Server: "exec netserver -D -p {port}",
		Client: "exec netperf -H {host} -p {port} -t TCP_RR -l {seconds} -- -P ,{port2} -k THROUGHPUT,MEAN_LATENCY,P50_LATENCY,P99_LATENCY",
		Ready:  ReadyTCP,
		Gauges: lines(`p50:us=^P50_LATENCY=([\d.]+)`, `p99:us=^P99_LATENCY=([\d.]+)`,
			`mean:us=^MEAN_LATENCY=([\d.]+)`,
			`trips:/s=^THROUGHPUT=([\d.]+)`),
	},
	{
		Name: "pgbench", What: "PostgreSQL, single-row selects on one connection",
		Needs: []Need{{"postgres", "postgresql"}, {"pgbench", "postgresql-contrib"}},
		Server: postgresPath + `cd {dir} && { test -e ready || { ` +
			`initdb -D data -U postgres -A trust >initdb.log && echo 'host all all all trust' >>data/pg_hba.conf && ` +
			`pg_ctl -D data -l log -o '-h "" -k {dir}' -w start >pg_ctl.log && pgbench -i -q -h {dir} -U postgres postgres >init.log 2>&1 && ` +
			`pg_ctl -D data -m fast stop >pg_ctl.log && touch ready; }; } && exec postgres -D data -h '*' -p {port} -k {dir}`,
		Client: postgresPath +
			"exec pgbench -n -S -c 1 -T {seconds} -h {host} -p {port} -U postgres postgres",
		Ready: "ready to accept connections", NoRoot: true, // it listens before
		Gauges: lines(`latency:ms=^latency average = ([\d.]+) (\w+)`, `tps:/s=^tps = ([\d.]+)`,
			`connect:ms=^(?:initial|average) connection time = ([\d.]+) (\w+)`),
		Fault: `^number of failed transactions: [1-9].*|^pgbench: error: Run was aborted.*`,
	},
	{
		Name: "qperf", What: "TCP bandwidth, and the mean of half a round trip",
		Needs:  []Need{{"qperf", "qperf"}},
		Server: "exec qperf -lp {port}",
		Client: "exec qperf {host} -lp {port} -ip {port2} -t {seconds} tcp_lat tcp_bw",
		Ready:  ReadyTCP,
		Gauges: append([]metric{{text: `trip-mean:us=` + qperfLatency, times: 2}},
			lines(`half-mean:us=`+qperfLatency, `bandwidth:B/s=bw\s+=\s+([\d.,]+) (\S+)`)...),
	},
	{
		Name: "redis", What: "Redis GETs on eight connections",
		Needs:  []Need{{"redis-server", "redis-server"}, {"redis-benchmark", "redis-tools"}},
		Server: "cd {dir} && exec redis-server --port {port} --bind {host} --protected-mode no --save '' --appendonly no",
		Client: "exec redis-benchmark -h {host} -p {port} -c 8 -n $(({seconds} * 50000)) -t get --csv",
		Ready:  ReadyTCP,
		Gauges: lines(`requests:/s=^"GET","([\d.]+)"`,
			`p50:ms=^"GET",(?:"[\d.]+",){3}"([\d.]+)"`, `p99:ms=^"GET",(?:"[\d.]+",){5}"([\d.]+)"`),
	},
	{
		Name: "sockperf", What: "TCP ping-pong: a round trip, and half of one",
		Needs:  []Need{{"sockperf", "sockperf"}},
		Server: "exec sockperf server --tcp -i {host} -p {port}",
		Client: "exec sockperf ping-pong --tcp -i {host} -p {port} -t {seconds}",
		Ready:  ReadyTCP,
		Gauges: append([]metric{{text: `trip-p50:us=` + sockperfP50, times: 2},
			{text: `trip-p99:us=` + sockperfP99, times: 2}},
			lines(`half-p50:us=`+sockperfP50, `half-p99:us=`+sockperfP99,
				`half-mean:us=avg-latency=([\d.]+)`)...),
	},
	{
		Name: "wrk", What: "HTTP requests to nginx on eight connections",
		Needs:  []Need{{"nginx", "nginx-light"}, {"wrk", "wrk"}},
		Server: sbin + `echo '` + nginxConf + `' >{dir}/conf && exec nginx -e stderr -c {dir}/conf`,
		Client: "exec wrk -t 1 -c 8 -d {seconds} --latency http://{addr}/",
		Ready:  ReadyTCP,
		Gauges: lines(`requests:/s=^Requests/sec:\s+([\d.]+)`, `p50:ms=^\s+50%\s+([\d.]+)(\w+)`,
			`p99:ms=^\s+99%\s+([\d.]+)(\w+)`,
			`connect-errors:lower=`+wrkErrors+`connect (\d+)`,
			`read-errors:lower=`+wrkErrors+`.*read (\d+)`,
			`write-errors:lower=`+wrkErrors+`.*write (\d+)`,
			`timeouts:lower=`+wrkErrors+`.*timeout (\d+)`,
			`bad-responses:lower=^\s+Non-2xx or 3xx responses: (\d+)`),
		Fault: `^\s+(?:Socket errors: .*|Non-2xx or 3xx responses: .*)`,
	},
}

// FindRecipe returns a *suggest.UnknownError for an unknown name.
func FindRecipe(name string) (Recipe, error) {
	names := make([]string, len(recipes))
	for i, r := range recipes {
		if names[i] = r.Name; r.Name == name {
			return r, nil
		}
	}
	return Recipe{}, &suggest.UnknownError{What: "recipe", Words: []string{name}, Known: names}
}

// Program returns the recipe as the options of a load.
func (r Recipe) Program() (sample.Program, error) {
	p := sample.Program{Recipe: r.Name, Server: r.Server, Client: r.Client, Ready: r.Ready,
		NoRoot: r.NoRoot, Fault: r.Fault, Again: r.Again}
	for i, m := range r.Gauges {
		g, err := m.gauge()
		if err != nil {
			return p, fmt.Errorf("recipe %s: %w", r.Name, err)
		}
		g.Optional = i > 0
		p.Gauges = append(p.Gauges, g)
	}
	return p, nil
}

type missingError struct{ Needs []Need }

func (e *missingError) Error() string {
	var out []string
	for _, n := range e.Needs {
		out = append(out, n.Program)
	}
	return "not installed: " + strings.Join(out, ", ")
}

func (e *missingError) Hint() string {
	var out []string
	for _, n := range e.Needs {
		if !slices.Contains(out, n.Package) {
			out = append(out, n.Package)
		}
	}
	return remedy.Install(out...)
}

// Check returns an error unless the recipe's programs are where its commands look for them.
func (r Recipe) Check() error { return find(r.Needs) }

// CheckClient checks the client's program only.
func (r Recipe) CheckClient() error { return find(r.Needs[len(r.Needs)-1:]) }

func find(needs []Need) error {
	var missing []Need
	for _, n := range needs {
		if !installed(n.Program) {
			missing = append(missing, n)
		}
	}
	if missing == nil {
		return nil
	}
	return &missingError{missing}
}

func installed(program string) bool {
	if f, err := exec.LookPath(program); err == nil || errors.Is(err, exec.ErrDot) {
		return f != ""
	}
	for _, pattern := range []string{"/usr/sbin/", "/usr/lib/postgresql/*/bin/"} {
		if found, _ := filepath.Glob(pattern + program); len(found) > 0 {
			return true
		}
	}
	return false
}
