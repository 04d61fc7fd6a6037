package cluster

import (
	"errors"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

func TestRefuse(t *testing.T) {
	for _, tt := range []struct {
		spec path.Spec
		want string // "": accepted
	}{
		{path.Spec{Tune: "mtu=9000+nodelay=off"}, "mtu"},
		{path.Spec{Tune: "nodelay=off"}, ""},
		{path.Spec{Servers: 2}, "only one server"},
		{path.Spec{Clients: 2}, "only one server"},
		{path.Spec{Second: true}, "programs"},
	} {
		err := Refuse(tt.spec)
		var u *machine.UnsupportedError
		refused := errors.As(err, &u)
		if refused != (tt.want != "") || refused && !strings.Contains(u.Missing, tt.want) {
			t.Errorf("%+v: %v, want %q", tt.spec, err, tt.want)
		}
	}
}
