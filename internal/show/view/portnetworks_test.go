package view

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/reach/ports"
	"github.com/bridgetoll/bridgetoll/internal/show/document"
	"github.com/bridgetoll/bridgetoll/internal/show/format"
)

func TestNetworksOfPorts(t *testing.T) {
	d := document.Document{Sections: networks(&ports.Report{Networks: []ports.Network{
		{Name: "bridge", Driver: "bridge", Scope: "local",
			Pools: []netip.Prefix{netip.MustParsePrefix("172.17.0.0/16")}},
		{Name: "host", Driver: "host", Scope: "local"}}})}
	want := "Networks network driver scope addresses bridge bridge local 172.17.0.0/16 " +
		"host host local -"
	if got := strings.Join(strings.Fields(written(t, "table", d, format.Options{})), " "); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
