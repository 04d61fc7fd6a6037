package endpoints

import (
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

func TestWaitedAgrees(t *testing.T) {
	for n, want := range map[int]string{1: "1 reply waited 3.00 ms at the server for",
		2: "2 replies waited 1.50 ms each at the server for"} {
		x := sample.EvidenceWait{Cause: sample.WaitWindow, Tokens: n, Sum: 3e-3}
		if got := Waited(x, "reply"); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
