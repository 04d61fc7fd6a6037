package owner

import (
	"strings"
	"testing"
)

func TestAlive(t *testing.T) {
	own := Mark()
	if !Alive(own) {
		t.Errorf("%s: this process is alive", own)
	}
	parts := strings.Split(own, "/")
	if later := strings.Join([]string{parts[0], parts[1], parts[2] + "1"}, "/"); Alive(later) {
		t.Errorf("%s: another process had this PID", later)
	}
	if gone := parts[0] + "/999999999/5"; Alive(gone) {
		t.Errorf("%s is alive", gone)
	}
	for _, foreign := range []string{"pid:[1]/1/1", "", "x", "a/b"} {
		if !Alive(foreign) {
			t.Errorf("%q is not ours to judge", foreign)
		}
	}
}
