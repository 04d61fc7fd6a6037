package agent

import (
	"context"
	"fmt"
	"hash/crc32"
	"net/netip"
	"unicode/utf8"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
)

// Spot is a network namespace on an agent's machine, like path/local.Inspected on this one. Reading
// its rules needs CAP_NET_ADMIN.
type Spot struct {
	Namespace string       `json:"namespace,omitempty"` // as in Counter
	Where     string       `json:"where"`
	Devices   []string     `json:"devices,omitempty"` // none: all
	To        []netip.Addr `json:"to,omitempty"`
}

// Inspect reads a namespace's settings. It takes at most 5 s.
func (a *Agent) Inspect(s Spot) ([]path.Setting, error) {
	ctx, cancel := context.WithTimeoutCause(
		context.Background(), readLimit, fmt.Errorf("it gave no settings within %s", readLimit))
	defer cancel()
	ans, err := a.ask(ctx, request{Inspect: &s}, 0)
	for i := range ans.Settings {
		ans.Settings[i].Where = s.Where
	}
	return ans.Settings, err
}

func (s *server) inspect(at Spot) ([]path.Setting, error) {
	all, err := local.Inspect([]local.Inspected{
		{Space: space{at.Namespace, s.here}, Where: at.Where, Devices: at.Devices, To: at.To}})
	switch {
	case err != nil && lacks(err) == "":
		return nil, needs(capNet, err)
	case err != nil:
		return nil, err
	}
	for i := range all {
		x := &all[i]
		x.Where = ""
		x.Of, x.What, x.Value = brief(x.Of), brief(x.What), brief(x.Value)
	}
	return all, nil
}

// brief shortens a long text. A checksum replaces the end, so that differences there still show.
func brief(s string) string {
	if utf8.RuneCountInString(s) <= maxText {
		return s
	}
	const beginning = maxText - 50
	return fmt.Sprintf("%s … (%d bytes, checksum %08x)", string([]rune(s)[:beginning]), len(s),
		crc32.ChecksumIEEE([]byte(s)))
}
