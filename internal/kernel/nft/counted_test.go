package nft

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/firewall"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func TestReadTable(t *testing.T) {
	netnstest.Do(t, func() error {
		err := program(
			"nft",
			"table ip a {\nchain c {\ntcp dport 80 counter packets 7 bytes 9 accept\nudp dport "+
				"53 drop\n}\nchain d {\ncounter\n}\n}\n", "-f", "-")
		if errors.Is(err, exec.ErrNotFound) && os.Getenv("CI") != "true" {
			t.Skip(err)
		}
		if err != nil {
			return err
		}
		all, err := ReadTable(IPv4, "a")
		if err != nil {
			return err
		}
		one, err := ReadChain(IPv4, "a", "c")
		if len(all) != 3 || len(one) != 2 {
			t.Fatalf("%+v, %+v", all, one)
		}
		if r := one[0]; r.Handle == 0 || r.Handle == one[1].Handle || !r.Counts || r.Packets != 7 ||
			r.Rule.Verdict != firewall.Accept || r.Rule.Proto != "tcp" || one[1].Counts {
			t.Errorf("%+v", one)
		}
		return err
	})
}
