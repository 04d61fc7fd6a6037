package cli

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// TestTraceClient traces the requests of a shell over a direct route and a relay that takes 4 ms.
func TestTraceClient(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	const pause = 4 * time.Millisecond
	direct := startLines(t)
	relayed := testnet.Serve(t, testnet.Relay(direct, pause)).String()
	client := `exec bash -c 'for c in 1 2; do exec 3<>/dev/tcp/{host}/{port}; ` +
		`for l in {1..30}; do echo hello >&3; read -r x <&3; done; done'`
	bin := binary(t)
	testwait.Unhindered(t, time.Minute, func(u testing.TB) {
		r := startToll(t, bin, nil, "trace", "direct="+direct, "relayed="+relayed, "--client",
			client,
			"--rounds", "3", "--quiet", "--format", "json")
		if code, _ := r.wait(t, 2*patience); code != exitOK {
			u.Fatalf("exit code %d\n%s\n%s", code, r.errOut.String(), r.out.String())
		}
		r.gone(t)
		var got struct {
			Traces []struct {
				Label, Client string
				Trips         int
				Followed      float64
				Untraced      struct{ Median float64 }
				Rows          []struct {
					Name  string
					Added struct{ Median float64 }
				}
			}
		}
		if err := json.Unmarshal(r.out.Bytes(), &got); err != nil {
			t.Fatal(err)
		}
		const trips = 2 * 2 * 27 // connections, rounds, and requests but a tenth
		if len(got.Traces) == 0 || got.Traces[0].Label != "relayed" || got.Traces[0].Client != client ||
			got.Traces[0].Trips != trips || got.Traces[0].Untraced.Median < pause.Seconds() {
			u.Fatalf("%s", r.out.String())
		}
		relay := slices.IndexFunc(got.Traces[0].Rows, func(r struct {
			Name  string
			Added struct{ Median float64 }
		}) bool {
			return strings.HasPrefix(r.Name, "relay ")
		})
		if relay < 0 || got.Traces[0].Rows[relay].Added.Median < pause.Seconds() {
			u.Errorf("%+v", got.Traces[0].Rows)
		}
	})
}

// TestTraceClientElsewhere refuses a client whose requests toll does not see.
func TestTraceClientElsewhere(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	r := startToll(t, binary(t), nil, "trace", startLines(t), "--client", "true {addr}",
		"--quiet")
	code, _ := r.wait(t, 2*patience)
	const want = "toll: error: 127.0.0.1:PORT: the client opened no TCP connection there that carried " +
		"a request and its reply\n"
	if got := testgolden.Stable(r.errOut.String()); code != exitNothing || got != want {
		t.Errorf("exit code %d, %q, want %q", code, got, want)
	}
	r.gone(t)
}
