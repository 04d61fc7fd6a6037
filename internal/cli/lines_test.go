package cli

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/testing/postgrestest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// The first answer about a server is read on one screen of 80 columns, one about two routes to it
// on less than two.
func TestAnswersAboutServersAreShort(t *testing.T) {
	bin := binary(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "hello")
	}))
	t.Cleanup(web.Close)
	const ask = `exec bash -c 'exec 3<>/dev/tcp/{host}/{port}; ` +
		`printf "GET / HTTP/1.1\r\nHost: a\r\n\r\n" >&3; read -r x <&3; echo "$x"'`
	for name, server := range map[string]struct {
		start   func(t *testing.T) string
		route   string // of the server's address
		command []string
	}{
		"lines": {startLines, "%s", []string{"run", "--client", askLines}},
		"http": {func(*testing.T) string { return web.Listener.Addr().String() }, "%s",
			[]string{"run", "--client", ask}},
		"redis": {func(t *testing.T) string {
			at, _ := startRedis(t)
			return at.String()
		}, "%s", []string{"run", "--client",
			"redis-benchmark -h {host} -p {port} -n 500 -t get --csv"}},
		"sql": {func(t *testing.T) string { return postgrestest.Start(t, "", nil).Addr },
			"postgres://app@%s/shop?sslmode=disable", []string{"sql", "--window", "50ms"}},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "sql" { // whose server sets variables of this process
				besideLabs(t)
			}
			at := server.start(t)
			relay := testnet.Serve(t, testnet.Relay(at, 0)).String()
			routes := []string{"direct=" + fmt.Sprintf(server.route, at),
				"relayed=" + fmt.Sprintf(server.route, relay)}
			for n, most := range map[int]int{1: 24, 2: 40} {
				args := slices.Concat(server.command, routes[:n],
					[]string{"--rounds", "6", "--seed", "3"})
				r := startToll(t, "env", nil, append([]string{columnsEnv + "=80", bin}, args...)...)
				if code, _ := r.wait(t, 2*patience); code != exitOK {
					t.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
				}
				out := r.out.String()
				lines := strings.Count(ofBusy.ReplaceAllString(out, ""), "\n")
				if lines > most || !strings.Contains(out, "?\n") {
					t.Errorf("%d lines about %d routes, at most %d:\n%s", lines, n, most, out)
				}
			}
		})
	}
}

// ofBusy is what an answer has more on a machine that tests keep busy.
var ofBusy = regexp.MustCompile(`(?ms)^ +The machine was busy .*?decide\.\n|` +
	`^Warnings\n  the hypervisor took [^\n]*\n\n`)

// startRedis starts a server without data, which lasts until the end of the test.
func startRedis(t *testing.T) (at netip.AddrPort, pid int) {
	t.Helper()
	needRedis(t)
	at = testnet.TCP(t)
	server := exec.Command("redis-server", "--port", strconv.Itoa(int(at.Port())), "--bind",
		"127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir())
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	testwait.Until(t, patience, "redis-server listens", func() bool {
		c, err := net.Dial("tcp", at.String())
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return at, server.Process.Pid
}
