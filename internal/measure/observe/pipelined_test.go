package observe

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/testing/pathtest"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

// TestAttachTellsPipelinedRequestsApart counts the requests of redis-benchmark -P 16.
func TestAttachTellsPipelinedRequestsApart(t *testing.T) {
	if os.Geteuid() != 0 {
		pathtest.SkipOrFail(t, "only root can capture packets")
	}
	const n, depth, few = 3200, 16, 10 // redis-benchmark asks for the configuration, too
	at := testnet.TCP(t)
	port := strconv.Itoa(int(at.Port()))
	redis(t, port)
	testwait.Unhindered(t, patience, func(u testing.TB) {
		got := attachedDuring(u, at.String(), exec.Command("redis-benchmark", "-p", port, "-c", "1",
			"-P", strconv.Itoa(depth), "-n", strconv.Itoa(n), "-t", "get", "--csv"))
		if got.Lost > 0 || got.Spells > 0 {
			u.Fatalf("%+v", got)
		}
		const behind = n / depth * (depth - 1)
		if got.Requests < n || got.Requests > n+few || got.Pipelined < behind ||
			got.Pipelined > behind+few || got.Unread > 0 || got.Unmatched > 0 {
			u.Errorf("%d requests, %d pipelined, %d unread, %d unmatched", got.Requests, got.Pipelined,
				got.Unread, got.Unmatched)
		}
	})
}

// TestAttachSaysWhatItCannotTell has a protocol that toll does not read.
func TestAttachSaysWhatItCannotTell(t *testing.T) {
	testwait.Unhindered(t, patience, func(u testing.TB) {
		got, _ := attached(u, 1, 5*ms, time.Second, 1e9)
		if got.Requests == 0 || got.Unread < got.Requests || got.Pipelined > 0 {
			u.Errorf("%+v", got)
		}
	})
}
