package mode

import (
	"strings"
	"testing"
)

func TestParseTunes(t *testing.T) {
	for _, tt := range []struct {
		text  string
		want  Tunes
		fails string // "": parsed
	}{
		{"mtu=9000", "mtu=9000", ""},
		{"mtu=09000", "mtu=9000", ""},
		{"rmem=4194304", "rmem=4M", ""},
		{"rmem=4096k", "rmem=4M", ""},
		{"wmem=65537", "wmem=65537", ""},
		{"wmem=1G", "wmem=1G", ""},
		{"gro=on+mtu=1400", "mtu=1400+gro=on", ""},
		{"nodelay=off", "nodelay=off", ""},
		{"rps=on+tso=off", "tso=off+rps=on", ""},
		{"bigtcp=180000", "bigtcp=180000", ""},
		{"bigtcp=128k", "bigtcp=128k", ""},
		{"bigtcp-lo=64k+bigtcp-container=524280+bigtcp=65536",
			"bigtcp=64k+bigtcp-container=524280+bigtcp-lo=64k", ""},
		{"threaded=on+gro=on+queues=02", "queues=2+gro=on+threaded=on", ""},
		{"congestion=dctcp+xps=off", "xps=off+congestion=dctcp", ""},
		{"bridge-nf=off+rmem=4M", "rmem=4M+bridge-nf=off", ""},
		{"bridge-nf=0", "", `tune "bridge-nf=0": bridge-nf must be on or off`},
		{"ports=0300+engine=29-nftables", "engine=29-nftables+ports=300", ""},
		{"engine=27", "", `tune "engine=27": engine must be one of 28, 29, 29-nftables`},
		{"ports=0", "", `tune "ports=0": ports must be from 1 to 5000`},
		{"bigtcp=65535", "", `tune "bigtcp=65535": bigtcp must be from 65536 to 524280 bytes`},
		{"bigtcp=524281", "", `tune "bigtcp=524281": bigtcp must be from 65536 to 524280 bytes`},
		{"bigtcp-container=on", "",
			`tune "bigtcp-container=on": bigtcp-container must be from 65536 to 524280 bytes`},
		{"bigtcp-lo=-1", "", `tune "bigtcp-lo=-1": bigtcp-lo must be from 65536 to 524280 bytes`},
		{"queues=0", "", `tune "queues=0": queues must be from 1 to 4096`},
		{"queues=4097", "", `tune "queues=4097": queues must be from 1 to 4096`},
		{"threaded=1", "", `tune "threaded=1": threaded must be on or off`},
		{"xps", "", `tune "xps": xps must be given as xps=VALUE`},
		{"congestion=", "", `tune "congestion=": congestion must be the name of a congestion ` +
			`control, such as cubic`},
		{"congestion=../reno", "", `tune "congestion=../reno": congestion must be the name of a ` +
			`congestion control, such as cubic`},
		{"congestion=sixteen-letters-", "", `tune "congestion=sixteen-letters-": congestion ` +
			`must be the name of a congestion control, such as cubic`},
		{"", "", `unknown tune ""`},
		{"mtu", "", `tune "mtu": mtu must be given as mtu=VALUE`},
		{"mtu=", "", `tune "mtu=": mtu must be from 576 to 65535`},
		{"mtu=100", "", `tune "mtu=100": mtu must be from 576 to 65535`},
		{"mtu=65536", "", `tune "mtu=65536": mtu must be from 576 to 65535`},
		{"mtu=9k", "", `tune "mtu=9k": mtu must be from 576 to 65535`},
		{"rmem=1k", "", `tune "rmem=1k": rmem must be from 4k to 1G`},
		{"rmem=2G", "", `tune "rmem=2G": rmem must be from 4k to 1G`},
		{"rmem=99999999999G", "", `tune "rmem=99999999999G": rmem must be from 4k to 1G`},
		{"wmem=-1", "", `tune "wmem=-1": wmem must be from 4k to 1G`},
		{"gro=yes", "", `tune "gro=yes": gro must be on or off`},
		{"qlen=5", "", `unknown tune "qlen"`},
		{"gro=on+gro=off", "", `tune "gro=on+gro=off": gro is set twice`},
		{"gro=on+", "", `unknown tune ""`},
	} {
		t.Run(tt.text, func(t *testing.T) {
			got, err := ParseTunes(tt.text)
			if tt.fails == "" && err != nil || tt.fails != "" &&
				(err == nil || err.Error() != tt.fails) {
				t.Fatalf("error %v, want %q", err, tt.fails)
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if again, err := ParseTunes(string(got)); got != "" && (err != nil || again != got) {
				t.Errorf("%q reads back as %q, %v", got, again, err)
			}
		})
	}
}

func TestForms(t *testing.T) {
	if len(Forms()) != len(keys) {
		t.Errorf("%d keys have the forms %v", len(keys), Forms())
	}
	for _, form := range Forms() {
		key, values, _ := strings.Cut(form, "=")
		for value := range strings.SplitSeq(values, "|") {
			switch {
			case value == "NAME":
				value = "cubic"
			case value == "N" && (key == string(Queues) || key == string(Ports)):
				value = "2"
			case value == "N" && strings.HasPrefix(key, string(BigTCP)):
				value = "100000"
			case value == "N":
				value = "9000"
			}
			if _, err := ParseTunes(key + "=" + value); err != nil {
				t.Errorf("%s: %v", form, err)
			}
		}
	}
}

func TestTunesAreRead(t *testing.T) {
	v, err := ParseTunes("mtu=9000+rmem=4M+gro=on+tso=off")
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[Key]Tune{MTU: {MTU, "9000"}, Rmem: {Rmem, "4M"}, GRO: {GRO, "on"},
		TSO: {TSO, "off"}} {
		if got, ok := v.Get(key); !ok || got != want {
			t.Errorf("%s: %v, %t", key, got, ok)
		}
	}
	if _, ok := v.Get(RPS); ok {
		t.Error("rps was not set")
	}
	if n := (Tune{Rmem, "4M"}).Number(); n != 4<<20 {
		t.Errorf("4M is %d", n)
	}
	if !(Tune{GRO, "on"}).On() || (Tune{TSO, "off"}).On() {
		t.Error("switches are wrong")
	}
	if got := Tunes("").List(); got != nil {
		t.Errorf("no tunes are %v", got)
	}
}

func FuzzParseTunes(f *testing.F) {
	for _, s := range []string{"mtu=9000", "rmem=4M+gro=on", "wmem=1G", "nodelay=off+", "="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, err := ParseTunes(s)
		if err != nil {
			return
		}
		again, err := ParseTunes(string(v))
		if err != nil || again != v {
			t.Errorf("%q is %q, which reads back as %q, %v", s, v, again, err)
		}
		for _, x := range v.List() {
			if x.Key != Congestion && x.Key != Engine && x.Key != Queues &&
				x.Key != Ports && x.Value != on && x.Value != off &&
				x.Number() < MinMTU {
				t.Errorf("%q let %v pass", s, x)
			}
		}
	})
}
