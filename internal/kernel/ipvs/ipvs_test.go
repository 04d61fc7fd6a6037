package ipvs

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const head = `       Total Incoming Outgoing         Incoming         Outgoing
CPU    Conns  Packets  Packets            Bytes            Bytes
`

const tail = `  ~        3       4D       41           100000             2000

     Conns/s   Pkts/s   Pkts/s          Bytes/s          Bytes/s
           0        1        1               DE               AD
`

func TestStatisticsOfCPUsAreSummedUp(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       Count
	}{
		{"one", head + "  0        1       1F       1E           30D430             1F40\n" + tail,
			Count{InPackets: 0x1f, OutPackets: 0x1e, InBytes: 3_200_048, OutBytes: 8000}},
		{"many",
			head +
				"  9        1        2        3                4                5\n  A        0 " +
				"      10       20               30               40\n" + tail,
			Count{InPackets: 0x12, OutPackets: 0x23, InBytes: 0x34, OutBytes: 0x45}},
		{"large", head + "  0        0        0        0 FFFFFFFFFFFFFFF0 123456789ABCDEF0\n" +
			tail,
			Count{InBytes: 0xfffffffffffffff0, OutBytes: 0x123456789abcdef0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parse(strings.NewReader(tt.text))
			if err != nil || got != tt.want {
				t.Errorf("got %+v, %v; want %+v", got, err, tt.want)
			}
		})
	}
	for name, text := range map[string]string{
		"nothing": "",
		"no-cpu":  head + tail,
		"no-number": head + "  0        1        X        1                1                1\n" +
			tail,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := parse(strings.NewReader(text)); err == nil {
				t.Errorf("it read %+v", got)
			}
		})
	}
}

func TestWhatSaysThatThereIsNoIPVS(t *testing.T) {
	for err, want := range map[error]bool{unix.ENOENT: true, unix.EOPNOTSUPP: true,
		unix.EPERM: false, errors.New("other"): false} {
		if Unsupported(err) != want {
			t.Errorf("%v: %t", err, !want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(head + "  0        1       1F       1E           30D430             1F40\n" + tail)
	f.Add("  ~\n")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := parse(strings.NewReader(text)); err != nil && c != (Count{}) {
			t.Errorf("%+v with %v", c, err)
		}
	})
}
