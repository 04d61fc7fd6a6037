package cli

import (
	"context"
	"slices"

	"github.com/bridgetoll/bridgetoll/internal/reach/collect"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

// tryFrames tries in a copy of this machine's network, once for equal commands, what the commands of
// frames that iptables sees would change. What is not known then stays so.
func tryFrames(ctx context.Context, all ...*sample.Frames) {
	tried := map[string]*int{}
	for _, f := range all {
		if f == nil || f.Off == "" {
			continue
		}
		if _, known := tried[f.Off]; !known {
			tried[f.Off] = changedBy(ctx, f.Off)
		}
		f.Changed = tried[f.Off]
	}
}

// changedBy returns the number of ports that some client would lose, gain or reach at another server
// after commands, or nil if that is not known.
func changedBy(ctx context.Context, commands string) *int {
	facts, network, err := collect.Read(ctx)
	if err != nil {
		return nil
	}
	facts.Everything = true
	r, out, err := collect.Try(ctx, facts, network, 0, commands)
	if err != nil || out.TooLarge() || r.Tried.Code != 0 || r.Tried.Unknown() {
		return nil
	}
	type port struct {
		number        uint16
		proto, server string
	}
	changed := map[port]bool{}
	for _, c := range slices.Concat(r.Changes.Lost, r.Changes.Gained, r.Changes.Moved) {
		changed[port{c.Port, c.Proto, c.Server}] = true
	}
	if len(changed) == 0 && r.Changes.Open > 0 {
		return nil
	}
	return new(len(changed))
}
