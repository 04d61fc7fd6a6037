package cli

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testversions"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// startEnded starts a program that ends with the test.
func startEnded(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// startDNSMasq runs a dnsmasq that knows a.example only, and refuses other queries. It returns its
// port.
func startDNSMasq(t *testing.T) (port string) {
	t.Helper()
	for _, name := range []string{"dnsmasq", "dig"} {
		if _, err := exec.LookPath(name); err != nil {
			pathtest.SkipOrFail(t,
				"%s is not installed: apt-get install dnsmasq-base bind9-dnsutils", name)
		}
	}
	testversions.Ran(t, "dnsmasq", testversions.Of("dnsmasq", "--version"),
		"`toll trace dns://…`, `--attach`")
	port = strconv.Itoa(int(testnet.Port(t)))
	startEnded(t, exec.Command("dnsmasq", "--no-daemon", "--no-resolv", "--no-hosts",
		"--port="+port,
		"--listen-address=127.0.0.1", "--bind-interfaces", "--address=/a.example/192.0.2.1",
		"--pid-file=", "--conf-file=/dev/null", "--user=root"))
	testwait.Until(t, patience, "dnsmasq answers", func() bool {
		return strings.TrimSpace(dig(port, "a.example")) == "192.0.2.1"
	})
	return port
}

// dig asks a server on a port of this machine, and returns what dig prints.
func dig(port string, names ...string) string {
	args := append([]string{"+short", "+tries=1", "@127.0.0.1", "-p", port}, names...)
	out, _ := exec.Command("dig", args...).Output()
	return string(out)
}

// digging asks the server for a known name and another one until stop, which returns the number of
// queries.
func digging(port string) (stop func() int) {
	done, n := make(chan struct{}), 0
	var over sync.WaitGroup
	over.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				dig(port, "a.example", "b.example")
				n += 2
			}
		}
	})
	return func() int {
		close(done)
		over.Wait()
		return n
	}
}

// tracedUDP is what a test reads of a trace over routes.
type tracedUDP struct {
	Traces []struct {
		Label    string
		Trips    int
		Followed float64
		Refused  string
		Rows     []struct {
			Name string
			Mine *float64 `json:"mine_s"`
		}
		Findings []struct{ Text string }
	}
}

func traceUDP(t testing.TB, top *testing.T, bin string, args ...string) (got tracedUDP) {
	t.Helper()
	args = append([]string{"trace"}, args...)
	r := startToll(top, bin, nil, append(args, "--quiet", "--format", "json")...)
	if code, _ := r.wait(top, 2*patience); code != exitOK {
		t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
	}
	r.gone(top)
	if err := json.Unmarshal(r.out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func (x tracedUDP) rows(of int) (names []string) {
	for _, r := range x.Traces[of].Rows {
		names = append(names, r.Name)
	}
	return names
}

// TestTraceDNS traces queries to a real dnsmasq, directly and through a real docker-proxy.
func TestTraceDNS(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	if _, err := exec.LookPath("docker-proxy"); err != nil {
		pathtest.SkipOrFail(t, "%v: make deps", err)
	}
	port, published := startDNSMasq(t), strconv.Itoa(int(testnet.Port(t)))
	proxy := exec.Command("docker-proxy", "-proto", "udp", "-host-ip", "127.0.0.1", "-host-port",
		published, "-container-ip", "127.0.0.1", "-container-port", port)
	ready, tell, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer ready.Close()
	proxy.ExtraFiles = []*os.File{tell}
	startEnded(t, proxy)
	tell.Close()
	testwait.Until(t, patience, "docker-proxy answers", func() bool {
		return strings.TrimSpace(dig(published, "a.example")) == "192.0.2.1"
	})
	bin := binary(t)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		got := traceUDP(u, t, bin, "direct=dns://127.0.0.1:"+port+"/a.example",
			"published=dns://127.0.0.1:"+published+"/b.example", "--rounds", "3")
		if len(got.Traces) == 0 || got.Traces[0].Label != "published" || got.Traces[0].Refused != "" {
			u.Fatalf("%+v", got)
		}
		want := []string{"client", "network", "relay docker-proxy", "server", "server's queue"}
		if rows := got.rows(0); !slices.Equal(rows, want) {
			u.Errorf("rows %q", rows)
		}
		if f := got.Traces[0].Findings; len(f) != 1 || !strings.HasSuffix(f[0].Text, " REFUSED.") ||
			!strings.HasPrefix(f[0].Text, "Over published, ") {
			u.Errorf("%+v", f)
		}
	})
}

// TestTraceDNSClient traces the queries of a real dig.
func TestTraceDNSClient(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	port, bin := startDNSMasq(t), binary(t)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		got := traceUDP(u, t, bin, "udp://127.0.0.1:"+port, "--client",
			"dig +short @{host} -p {port} a.example a.example a.example", "--rounds", "3")
		if len(got.Traces) != 1 || got.Traces[0].Trips != 2*3 || got.Traces[0].Followed != 1 {
			u.Fatalf("%+v", got)
		}
		if rows := got.rows(0); !slices.Equal(rows, []string{"network", "server", "server's queue"}) {
			u.Errorf("rows %q", rows)
		}
	})
	r := startToll(t, bin, nil, "trace", "udp://127.0.0.1:"+port, "--client", "true {addr}",
		"--quiet")
	code, _ := r.wait(t, 2*patience)
	want := "toll: error: 127.0.0.1:" + port + ": the client sent no datagram there\n"
	if said := r.errOut.String(); code != exitNothing || said != want {
		t.Errorf("exit code %d\n%s", code, said)
	}
	r.gone(t)
}

// TestTraceAttachUDP watches a real dnsmasq's queries by a real dig, and a server that has no TCP
// without being told so.
func TestTraceAttachUDP(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	bin := binary(t)
	type served struct {
		Server                                       struct{ Process string }
		UDP                                          bool
		Requests, Connections, Unmatched, Unanswered int
		Errors                                       map[string]int `json:"dns_errors"`
	}
	attach := func(at, budget string) (got served) {
		r := startToll(t, bin, nil, "trace", "--attach", at, "--budget", budget, "--format", "json")
		if code, _ := r.wait(t, 2*patience); code != exitOK {
			t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
		}
		r.gone(t)
		if err := json.Unmarshal(r.out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	port := startDNSMasq(t)
	stop := digging(port)
	got := attach(port+"/udp", "3s")
	if n := stop(); !got.UDP || got.Server.Process != "dnsmasq" || got.Requests == 0 ||
		got.Requests > n || got.Connections == 0 || got.Connections > got.Requests ||
		got.Unmatched != 0 || got.Unanswered > 1 || got.Errors["REFUSED"] < got.Requests/2-1 {
		t.Errorf("%+v of %d", got, n)
	}
	at := testnet.Port(t)
	c, err := net.ListenPacket("udp", "127.0.0.1:"+strconv.Itoa(int(at)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := attach(strconv.Itoa(int(at)), "1s"); !got.UDP || got.Requests != 0 {
		t.Errorf("%+v", got)
	}
	shut := testnet.UDP(t).String()
	r := startToll(t, bin, nil, "trace", "--attach", shut+"/udp", "--budget", "1s")
	code, took := r.wait(t, 2*patience)
	want := "toll: error: attach to " + shut + ": nothing receives datagrams there: connection " +
		"refused\ntoll: hint: start the server first, or publish the container's port; toll ports PORT " +
		"shows who listens\n"
	if said := r.errOut.String(); code != exitNothing || took > time.Minute || said != want {
		t.Errorf("exit code %d\n%s", code, said)
	}
}
