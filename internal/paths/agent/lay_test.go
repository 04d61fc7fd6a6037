package agent

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
)

func TestLayRequests(t *testing.T) {
	for _, tt := range []struct {
		to, via, device string
		ok              bool
	}{
		{"198.18.4.0/22", "10.0.0.1", "", true},
		{"fd00::/64", "fd78::1", "", true},
		{"198.18.4.2/32", "", "eth0", true},
		{"fd00::2/128", "", "eth0", true},
		{"198.18.4.1/22", "10.0.0.1", "", false},
		{"198.18.4.1/22", "", "eth0", false},
		{"198.18.4.0/22", "", "", false},
		{"198.18.4.0/22", "10.0.0.1", "eth0", false},
		{"0.0.0.0/0", "10.0.0.1", "", false}, // all of the machine's traffic
		{"0.0.0.0/0", "", "eth0", false},
		{"::/0", "fd78::1", "", false},
		{"198.18.4.0/22", "fd78::1", "", false},
		{"fd00::/64", "10.0.0.1", "", false},
	} {
		line := fmt.Sprintf(`{"id":1,"lay":{"to":%q,"via":%q,"device":%q}}`, tt.to, tt.via,
			tt.device)
		if _, err := parseRequest([]byte(line)); (err == nil) != tt.ok ||
			err != nil && !errors.Is(err, errNonsense) {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, line := range []string{`{"id":1,"lay":{}}`,
		`{"id":1,"lay":{"to":"198.18.4.0/22","via":"10.0.0.1"},"proxy":true,"clock":true}`} {
		if _, err := parseRequest([]byte(line)); !errors.Is(err, errNonsense) {
			t.Errorf("%s: %v", line, err)
		}
	}
}

type laid map[link.Laid]bool

func (r laid) Lay(l link.Laid) error {
	if r[l] {
		return errors.New("it is there")
	}
	r[l] = true
	return nil
}

func (r laid) Lift(l link.Laid) error { delete(r, l); return nil }

func TestServerLays(t *testing.T) {
	l := link.Laid{To: netip.MustParsePrefix("198.18.4.0/22"),
		Via: netip.MustParseAddr("10.0.0.1")}
	if err := (&server{}).lay(layRequest{Laid: l}); !errors.Is(err, errNoRouter) {
		t.Error(err)
	}
	r := laid{}
	s := &server{config: Config{Router: r}}
	if err := s.lay(layRequest{Laid: l}); err != nil || !r[l] {
		t.Errorf("%v, %v", err, r)
	}
	if err := s.lay(layRequest{Laid: l, Lift: true}); err != nil || len(r) > 0 {
		t.Errorf("%v, %v", err, r)
	}
}
