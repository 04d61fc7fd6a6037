package cluster

import (
	"errors"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
)

func TestRefuse(t *testing.T) {
	for _, tt := range []struct {
		spec path.Spec
		want string // "": accepted
	}{
		{path.Spec{Tune: "mtu=9000+nodelay=off"}, "toll sets mtu only on this machine"},
		{path.Spec{Tune: "nodelay=off"}, ""},
		{path.Spec{Servers: 2}, "on other machines, toll measures only one server and one client"},
		{path.Spec{Clients: 2}, "on other machines, toll measures only one server and one client"},
		{path.Spec{Second: true}, "toll does not start foreign programs on other machines"},
	} {
		err := Refuse(tt.spec)
		var u *machine.UnsupportedError
		refused := errors.As(err, &u)
		if refused != (tt.want != "") || refused && u.Missing != tt.want {
			t.Errorf("%+v: %v, want %q", tt.spec, err, tt.want)
		}
	}
}
