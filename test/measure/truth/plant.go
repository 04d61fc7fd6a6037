package truth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
	"github.com/bridgetoll/bridgetoll/test/measure/peer"
)

type plants map[mode.Tunes]plant

type plant func(context.Context, *path.Path) error

// Paths are changed before their settings are read.
type planting struct {
	path.Builder
	plants plants
}

func (b planting) Build(ctx context.Context, s path.Spec) (*path.Path, error) {
	p, err := b.Builder.Build(ctx, s)
	change := b.plants[s.Tune]
	if err != nil || change == nil {
		return p, err
	}
	if err := change(ctx, p); err != nil {
		return nil, errors.Join(fmt.Errorf("plant in %s: %w", s, err), p.Close())
	}
	return p, nil
}

func within(ctx context.Context, at path.Place, input string, command ...string) (string, error) {
	p, err := peer.Start(ctx, at, command...)
	if err != nil {
		return "", err
	}
	_, writeErr := io.WriteString(p.In, input)
	p.In.Close()
	out, err := p.Wait()
	if err != nil { // it says more than a broken pipe
		return "", err
	}
	return string(out), writeErr
}

func chain(n int) plant {
	return func(ctx context.Context, p *path.Path) error {
		_, err := within(ctx, p.Servers[0], walk("input", n), "nft", "-f", "-")
		return err
	}
}

// walk returns a table for nft, whose n rules every packet at the hook walks through.
func walk(hook string, n int) string {
	return "table inet planted {\nchain walk {\ntype filter hook " + hook +
		" priority 0; policy accept;\n" + strings.Repeat("tcp dport 1 counter drop\n", n) + "}\n}\n"
}

// limit takes bit/s.
func limit(bits float64) plant { return shaped(bits, "256kb", "512kb") }

func shaped(bits float64, burst, limit string) plant {
	return func(ctx context.Context, p *path.Path) error {
		i := slices.IndexFunc(p.Hops, func(h path.Hop) bool { return h.Kind == mode.HopVeth })
		if i < 0 {
			return errors.New("the path has no veth pair")
		}
		port, _, _ := strings.Cut(p.Hops[i].Name, "⇄")
		_, err := within(ctx, p.Clients[0], "", "tc", "qdisc", "add", "dev", port, "root", "tbf",
			"rate", fmt.Sprintf("%.0fbit", bits), "burst", burst, "limit", limit)
		return err
	}
}
