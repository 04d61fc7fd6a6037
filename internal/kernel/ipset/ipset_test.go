package ipset

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/kernel/raw"
	"github.com/bridgetoll/bridgetoll/internal/kernel/xtables"
	"github.com/bridgetoll/bridgetoll/internal/testing/netnstest"
)

func fill() error {
	hour := uint32(3600)
	var errs []error
	create := func(name, kind string, o netlink.IpsetCreateOptions) {
		errs = append(errs, netlink.IpsetCreate(name, kind, o))
	}
	add := func(name string, e netlink.IPSetEntry) {
		errs = append(errs, netlink.IpsetAdd(name, &e))
	}
	create("gap", "hash:ip", netlink.IpsetCreateOptions{})
	create("bans", "hash:ip", netlink.IpsetCreateOptions{Timeout: &hour, Counters: true,
		Comments: true})
	create("gap2", "hash:ip", netlink.IpsetCreateOptions{})
	create("nets", "hash:net", netlink.IpsetCreateOptions{Family: unix.AF_INET6, MaxElements: 9})
	errs = append(errs, netlink.IpsetDestroy("gap"), netlink.IpsetDestroy("gap2"))
	for i := range 3000 {
		add("bans", netlink.IPSetEntry{IP: net.IPv4(203, 0, byte(i>>8), byte(i)), Comment: "ssh"})
	}
	add("nets", netlink.IPSetEntry{IP: net.ParseIP("2001:db8::"), CIDR: 32})
	return errors.Join(errs...)
}

// content returns the sets with their indexes, and their elements, in a fixed order.
func content(t *testing.T, saved []raw.Message) (out []string) {
	t.Helper()
	for _, m := range saved {
		s, err := parse(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, first := s.attrs[attrType]; first {
			out = append(out, fmt.Sprint(s.name, s.index))
		}
	}
	all, err := netlink.IpsetListAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.TypeName != "" { // the first message about the set
			out = append(out, fmt.Sprint(s.SetName, s.TypeName, s.Family, s.MaxElements,
				s.CadtFlags, s.Timeout != nil))
		}
		for _, e := range s.Entries {
			out = append(out, fmt.Sprint(s.SetName, e.IP, e.CIDR, e.Comment))
		}
	}
	slices.Sort(out)
	return out
}

func TestRestore(t *testing.T) {
	var saved []raw.Message
	var want []string
	netnstest.Do(t, func() (err error) {
		if err := fill(); err != nil {
			return err
		}
		saved, err = Save()
		want = content(t, saved)
		return err
	})
	if len(want) < 3000 || !slices.Contains(want, "bans1") || !slices.Contains(want, "nets3") {
		t.Fatalf("%d lines: %q", len(want), want)
	}
	netnstest.Do(t, func() error {
		refused, err := Restore(append(saved, raw.Message{Type: 1, Data: make([]byte, 8)}))
		if err != nil || len(refused) != 1 || !errors.Is(refused[0].Err, errHostile) {
			t.Errorf("refused: %v, %v", refused, err)
		}
		again, err := Save()
		if got := content(t, again); !slices.Equal(got, want) {
			t.Errorf("%q\nwant\n%q", got, want)
		}
		return err
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("\x02\x00\x00\x00\x06\x00\x02\x00a\x00\x00\x00\x06\x00\x0b\x40\x00\x07"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := parse(raw.Message{Type: unix.NFNL_SUBSYS_IPSET<<8 | cmdList, Data: data})
		if err != nil {
			return
		}
		s.members()
		s.sources(^byte(0), 0, &xtables.Sources{})
		if a, err := s.settings(); err == nil && len(a.Data) > len(data) {
			t.Errorf("%d bytes of %d", len(a.Data), len(data))
		}
		if s.index < 0 || s.index > 65535 {
			t.Errorf("index %d", s.index)
		}
	})
}

func TestAddLists(t *testing.T) {
	if _, err := exec.LookPath("ipset"); err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	netnstest.Do(t, func() error {
		out, err := exec.Command("sh", "-ec", `ipset create a hash:ip; ipset create b hash:ip
ipset create of-a list:set; ipset create of-b list:set; ipset create of-both list:set
ipset add of-a a; ipset add of-b b; ipset add of-both b; ipset add of-both a`).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		saved, err := Save()
		which := map[uint16]bool{0: true}
		AddLists(saved, which)
		if want := map[uint16]bool{0: true, 2: true, 4: true}; !maps.Equal(which, want) {
			t.Errorf("%v, want %v", which, want)
		}
		return err
	})
}

func TestAddForeign(t *testing.T) {
	if _, err := exec.LookPath("ipset"); err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	netnstest.Do(t, func() error {
		out, err := exec.Command("sh", "-ec", `ipset create plain hash:ip; ipset add plain 10.0.0.1
for s in known foreign both; do ipset create $s bitmap:ip,mac range 10.0.0.0/24; done
ipset add known 10.0.0.1,02:00:00:00:00:01; ipset add known 10.0.0.2
ipset add foreign 10.0.0.1,02:00:00:00:00:02
ipset add both 10.0.0.1,02:00:00:00:00:01; ipset add both 10.0.0.2,02:00:00:00:00:02`).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		saved, err := Save()
		which := map[uint16]bool{}
		AddForeign(saved, map[string]bool{"\x02\x00\x00\x00\x00\x01": true}, which)
		if want := map[uint16]bool{2: true, 3: true}; !maps.Equal(which, want) {
			t.Errorf("%v, want %v", which, want)
		}
		return err
	})
}

// Only the sets that rules look in count, those of lists too, and of these the compared dimensions.
func TestSources(t *testing.T) {
	if _, err := exec.LookPath("ipset"); err != nil && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	netnstest.Do(t, func() error {
		out, err := exec.Command("sh", "-ec", `ipset create nets hash:net; ipset add nets 10.0.0.4/30
ipset create unused hash:ip; ipset add unused 10.0.0.9
ipset create member hash:ip; ipset add member 10.0.0.17
ipset create list list:set; ipset add list member
ipset create pairs hash:ip,port,net; ipset add pairs 10.0.0.32,tcp:80,10.0.0.40/30
ipset create masked hash:ip netmask 29; ipset add masked 10.0.0.48`).CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		saved, err := Save()
		const first, third = 2, 8
		from := xtables.Sources{Sets: map[uint16]byte{0: first, 3: first, 4: third, 5: first}}
		Sources(saved, &from)
		var got []int
		for i := range 64 {
			if from.Has(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 24)) {
				got = append(got, i)
			}
		}
		want := []int{4, 5, 6, 7, 17, 40, 41, 42, 43, 48, 49, 50, 51, 52, 53, 54, 55}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		return err
	})
}
