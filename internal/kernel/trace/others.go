package trace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

// OwnPrefix is the prefix of the names of this package's programs.
const OwnPrefix = "toll_"

// Others lists other programs at the tracepoints that t uses, sorted, as "program at tracepoint".
// It returns nil if the kernel does not list links (before Linux 5.8, or without CAP_SYS_ADMIN). It
// does not see programs that were attached without a link, or tracers without BPF.
func (t *Tracer) Others() (out []string) {
	own := t.last.programs()
	all := link.Iterator{}
	defer all.Close()
	for all.Next() {
		info, err := all.Link.Info()
		if err != nil || own[info.Program] {
			continue // the link was removed, or its kind has no tracepoint
		}
		if at := tracepointOf(info); t.uses(at) {
			out = append(out, fmt.Sprintf("%s at %s", nameOf(info.Program), at))
		}
	}
	slices.Sort(out)
	return out
}

// programs returns the identities of the recording's programs.
func (r *Recording) programs() map[ebpf.ProgramID]bool {
	out := map[ebpf.ProgramID]bool{}
	if r == nil {
		return out
	}
	for _, s := range r.sets {
		for _, p := range s.programs.Programs {
			if info, err := p.Info(); err == nil {
				id, _ := info.ID()
				out[id] = true
			}
		}
	}
	return out
}

// tracepointOf returns the tracepoint of a link, or "" if the link is to something else.
func tracepointOf(l *link.Info) string {
	switch {
	case l.RawTracepoint() != nil:
		return l.RawTracepoint().Name
	case l.PerfEvent() != nil && l.PerfEvent().Tracepoint() != nil:
		at := l.PerfEvent().Tracepoint().Tracepoint // with or without its group
		return at[strings.LastIndexAny(at, ":/")+1:]
	}
	return ""
}

func (t *Tracer) uses(tracepoint string) bool {
	return slices.ContainsFunc(traced, func(name string) bool {
		p := t.spec.Programs[name]
		return p != nil && p.AttachTo == tracepoint
	})
}

func nameOf(id ebpf.ProgramID) string {
	name := ""
	if p, err := ebpf.NewProgramFromID(id); err == nil {
		defer func() { _ = p.Close() }()
		if info, err := p.Info(); err == nil {
			name = printable.Words(info.Name)
		}
	}
	if name == "" {
		name = fmt.Sprintf("program %d", id)
	}
	return name
}
