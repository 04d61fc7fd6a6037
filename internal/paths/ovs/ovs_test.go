package ovs

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
)

// dump is by Open vSwitch 3.1.0.
const dump = `OFPST_PORT reply (xid=0x2): 3 ports
  port LOCAL: rx pkts=42, bytes=3228, drop=0, errs=0, frame=0, over=0, crc=0
           tx pkts=5, bytes=378, drop=31, errs=0, coll=0
  port  1: rx pkts=0, bytes=0, drop=?, errs=?, frame=?, over=?, crc=?
           tx pkts=?, bytes=?, drop=?, errs=?, coll=?
  port  2: rx pkts=10, bytes=816, drop=0, errs=0, frame=0, over=0, crc=0
           tx pkts=46, bytes=18446744073709551615, drop=0, errs=0, coll=0
`

func TestParsePorts(t *testing.T) {
	good := `OFPST_PORT reply (xid=0x2): 2 ports
  port LOCAL: rx pkts=42, bytes=3228, drop=0, errs=0, frame=0, over=0, crc=0
           tx pkts=5, bytes=378, drop=31, errs=0, coll=0
  port  2: rx pkts=10, bytes=816, drop=0, errs=0, frame=0, over=0, crc=0
           tx pkts=46, bytes=18446744073709551615, drop=0, errs=0, coll=0
`
	got, err := parsePorts(good)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Port{
		Local: {RxPackets: 42, RxBytes: 3228, TxPackets: 5, TxBytes: 378},
		"2":   {RxPackets: 10, RxBytes: 816, TxPackets: 46, TxBytes: 1<<64 - 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, bad := range map[string]string{
		"empty":          "",
		"no-ports":       "OFPST_PORT reply (xid=0x2): 0 ports\n",
		"half":           "  port 1: rx pkts=1, bytes=2, drop=0\n",
		"unknown-counts": dump,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parsePorts(bad); err == nil {
				t.Errorf("%v", got)
			}
		})
	}
}

func TestSent(t *testing.T) {
	ports := map[string]Port{Local: {TxPackets: 1, TxBytes: 60},
		"1": {RxBytes: 9, TxPackets: 2, TxBytes: 100}, "2": {TxPackets: 4, TxBytes: 1000}}
	if got, err := Sent(ports, []string{"1", "2"}); err != nil ||
		got != (Port{TxPackets: 6, TxBytes: 1100}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := Sent(ports, []string{"1", "3"}); err == nil {
		t.Errorf("a port that is not there sent %+v", got)
	}
}

func FuzzParsePorts(f *testing.F) {
	f.Add(dump)
	f.Add("port 1: rx pkts=1, bytes=2\ntx pkts=3, bytes=4")
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parsePorts(s)
		if (err == nil) != (len(got) > 0) {
			t.Errorf("%q: %v, %v", s, got, err)
		}
	})
}

func TestFind(t *testing.T) {
	if file, err := Find("no-such-program-of-open-vswitch"); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%q, %v", file, err)
	}
}

func TestRunIsBounded(t *testing.T) {
	t.Setenv("PATH", t.TempDir()+":/usr/bin:/bin")
	dir, _, _ := strings.Cut(os.Getenv("PATH"), ":")
	for name, script := range map[string]string{"ovs-endless": "exec cat /dev/zero",
		"ovs-fails": "echo no such bridge >&2; exit 1", "ovs-good": "echo 1"} {
		if err := os.WriteFile(dir+"/"+name, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := run("ovs-endless"); !errors.Is(err, exchange.ErrTooLong) {
		t.Errorf("%d bytes, %v", len(out), err)
	}
	if out, err := run("ovs-fails", "x"); err == nil ||
		err.Error() != "ovs-fails x: exit status 1: no such bridge" {
		t.Errorf("%q, %v", out, err)
	}
	if out, err := run("ovs-good"); out != "1" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
}
