package sample

import (
	"slices"
	"strings"
	"testing"
)

func TestCardsOf(t *testing.T) {
	f := full(t)
	if got := f.Header.CardsOf(f.Header.Paths[0]); len(got) != 1 || got[0].Driver != "ixgbe" {
		t.Errorf("%+v", got)
	}
}

func TestReadRefusesImpossibleCards(t *testing.T) {
	for name, change := range map[string]func(*File){
		"speed":   func(f *File) { f.Header.Environment.Cards[0].Speed = MaxSpeed + 1 },
		"fastest": func(f *File) { f.Header.Environment.Cards[0].MaxSpeed = 1 << 63 },
		"cards":   func(f *File) { f.Header.Environment.Cards = make([]Card, maxCards+1) },
		"interrupts": func(f *File) {
			f.Header.Environment.Cards[0].Interrupts = make([]Interrupt, MaxInterrupts+1)
		},
		"rate":     func(f *File) { f.Header.Paths[0].Links[0].Rate = MaxSpeed + 1 },
		"path-mtu": func(f *File) { f.Visits[0].Client.TCP.PMTU = -1 },
		"headers":  func(f *File) { f.Visits[0].Server.TCP.Headers = 1 << 40 },
	} {
		f := full(t)
		change(f)
		if _, err := Read(strings.NewReader(written(t, f))); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}

func TestTogetherPMTU(t *testing.T) {
	tcp := func(pmtu, mtu int64, device string) Party {
		return Party{TCP: TCPInfo{PMTU: pmtu, Packet: pmtu, Headers: 52, Device: device,
			DeviceMTU: mtu}}
	}
	got := Together([]Party{tcp(1500, 1500, "a"), {}, tcp(1450, 9000, "b"),
		tcp(1500, 1500, "c")}).TCP
	if want := (TCPInfo{PMTU: 1450, Packet: 1450, Headers: 52, Device: "b", DeviceMTU: 9000}); !slices.Equal([]TCPInfo{got}, []TCPInfo{want}) {
		t.Errorf("%+v", got)
	}
}
