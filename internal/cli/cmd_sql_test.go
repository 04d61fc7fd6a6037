package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/judge/analysis"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
)

// PostgreSQL keeps its files in memory and accepts everyone. Later servers copy the first one's
// files.
func labPostgres(t *testing.T) string {
	made := filepath.Join(openDir(t), "data")
	return `PATH=$(printf %s: /usr/lib/postgresql/*/bin)$PATH; test -e ` + made +
		`/ready || { rm -rf ` + made + ` && ` +
		`initdb -N -D ` + made +
		` -U postgres -A trust >{dir}/initdb.log && echo 'host all all all trust' >>` + made +
		`/pg_hba.conf && touch ` + made + `/ready; } && ` +
		`cd {dir} && { test -e data/ready || cp -r ` + made +
		` .; } && exec postgres -D data -h '*' -p {port} -k {dir} -c fsync=off -c ` +
		`shared_buffers=16MB`
}

// PostgreSQL's port opens earlier, but connections are refused until it prints this line.
const pgReady = "ready to accept connections"

// slowStart is what PostgreSQL may take on a busy machine, where 20 seconds were too few.
const slowStart = "90s"

func needPostgres(t *testing.T) {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if len(found) == 0 {
		pathtest.SkipOrFail(t, "PostgreSQL is not installed: apt-get install postgresql")
	}
	testversions.Ran(t, "PostgreSQL", testversions.Of(found[0], "--version"), "`toll sql`")
}

func runFile(t *testing.T, file string) *sample.File {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got, err := sample.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestSQLInTheLab(t *testing.T) {
	needPostgres(t)
	inLabs(t)
	bin := binary(t)
	file := filepath.Join(t.TempDir(), "run.jsonl")
	r := startToll(t, bin, nil, "run", "host", "bridge", "publish-nat", "publish-proxy", "--rounds",
		"1", "--seed", "3", "--no-root",
		"--server", labPostgres(t), "--ready", pgReady, "--timeout", slowStart, "--client",
		bin+" sql postgres://postgres@{addr}/postgres --rounds 1 --window 100ms --format json",
		"--metric", `page:s:lower="latency_p50": \{\s*"unit": "s",\s*"median": ([\d.e-]+)`,
		"--metric", `pages:/s="transactions": \{[^}]*?"median": ([\d.e+]+)`, "--save", file,
		"--format", "json")
	code, took := r.wait(t, 4*patience)
	t.Logf("it took %s", took)
	if code != exitOK || r.errOut.Len() > 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
	}
	report := readReport(t, r.out.Bytes())
	rows := map[string]bool{}
	for _, c := range report.Cells {
		rows[string(c.Mode)+" "+string(c.To)] = c.Witnessed
		if c.Metrics["page"].Median <= 0 || c.Metrics["pages"].Median <= 0 {
			t.Errorf("%s: %+v", c.Name(), c.Metrics)
		}
	}
	for _, want := range []string{"host loopback", "bridge container", "publish-nat loopback",
		"publish-nat address", "publish-proxy loopback", "publish-proxy loopback6"} {
		if !rows[want] {
			t.Errorf("%s is not there or not witnessed", want)
		}
	}
	if len(report.Failed) > 0 {
		t.Errorf("failed: %+v", report.Failed)
	}
	for _, v := range runFile(t, file).Visits {
		if !testgolden.HasLine(v.Output.Client, `          "code": "few-rounds",`) ||
			!regexp.MustCompile(`(?m) database system is `+pgReady+`$`).MatchString(
				v.Output.Server) {
			t.Errorf("round %d, cell %d: output %+v", v.Round, v.Cell, v.Output)
		}
	}
}

func TestSQLOverThreeRoutes(t *testing.T) {
	needPostgres(t)
	inLabs(t)
	bin, dir := binary(t), openDir(t)
	inner, file := filepath.Join(dir, "sql.jsonl"), filepath.Join(t.TempDir(), "run.jsonl")
	// The lab's addresses of the container, and of the machine, which publishes 8080.
	client := bin + " sql --details --rounds 6 --window 50ms --force --save " + inner +
		" proxy=postgres://postgres@{addr}/postgres" +
		" nat=postgres://postgres@198.18.0.1:8080/postgres " +
		"direct=postgres://postgres@172.30.0.2:5201/postgres"
	r := startToll(t, bin, nil, "run", "publish-proxy", "--baseline", "publish-proxy", "--to",
		"loopback", "--rounds", "1", "--seed", "3", "--no-root",
		"--server", labPostgres(t), "--ready", pgReady, "--timeout", slowStart, "--client", client,
		"--save", file, "--format", "json")
	code, took := r.wait(t, 4*patience)
	t.Logf("it took %s", took)
	// The witness fails because some of the traffic bypassed the proxy.
	if failed := readReport(t, r.out.Bytes()).Failed; code != exitFailed || len(failed) != 1 ||
		failed[0].Reason != "the path was not witnessed" {
		t.Errorf("exit code %d\n%s\n%+v", code, r.errOut.String(), failed)
	}
	visits := runFile(t, file).Visits
	if len(visits) == 0 || visits[0].Failure != "" || visits[0].Witness.OK {
		t.Fatalf("%+v", visits)
	}
	if out := visits[0].Output.Client; !testgolden.HasLine(out, "What does each route cost?") ||
		!regexp.MustCompile(`(?m)^From here → PostgreSQL .+, pages of 20 queries$`).MatchString(out) {
		t.Errorf("the client printed %s", out)
	}
	got := analysis.Judge(runFile(t, inner))
	if len(got.Cells) != 3 || len(got.Failed) > 0 || got.Study != sample.StudyEndpoints {
		t.Fatalf("%+v", got)
	}
	dials := map[string]string{"proxy": "127.0.0.1:8080", "nat": "198.18.0.1:8080",
		"direct": "172.30.0.2:5201"}
	for _, c := range got.Cells {
		m := c.Metrics[workload.LatencyP50]
		if c.Dial != dials[string(c.Mode)] || c.Witnessed || len(m.Rounds) != 6 ||
			c.Metrics[workload.RTT].Median <= 0 || c.Metrics[workload.ConnectTime].Median <= 0 ||
			!strings.HasPrefix(c.Facts["server"], "PostgreSQL ") {
			t.Errorf("%+v", c)
		}
		if c.Mode != "proxy" && (m.Price == nil || m.Price.N != 6) {
			t.Errorf("%s: price %+v", c.Mode, m.Price)
		}
	}
	for _, w := range got.Warnings {
		if w.Code == "ways" || w.Code == "other-load" {
			t.Errorf("warning %+v", w)
		}
	}
}
