package cli

import (
	"context"

	"github.com/bridgetoll/bridgetoll/internal/reach/collect"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// tryFrames tries in a copy of this machine's network, once for equal commands, what the commands of
// frames that iptables sees would take away. What is not known then stays so.
func tryFrames(ctx context.Context, all ...*sample.Frames) {
	tried := map[string]*int{}
	for _, f := range all {
		if f == nil || f.Off == "" {
			continue
		}
		if _, known := tried[f.Off]; !known {
			tried[f.Off] = lostBy(ctx, f.Off)
		}
		f.Lost = tried[f.Off]
	}
}

// lostBy returns the number of ports that some client could not reach after commands, or nil if that is
// not known.
func lostBy(ctx context.Context, commands string) *int {
	facts, network, err := collect.Read(ctx)
	if err != nil {
		return nil
	}
	facts.Everything = true
	r, out, err := collect.Try(ctx, facts, network, 0, commands)
	switch {
	case err != nil, out.TooLarge(), r.Tried.Code != 0, r.Tried.Unknown():
		return nil
	case len(r.Changes.Lost) == 0 && r.Changes.Open > 0:
		return nil
	}
	return new(len(r.Changes.Lost))
}
