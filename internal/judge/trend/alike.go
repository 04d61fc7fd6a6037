package trend

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/record/workload"
)

// planKey returns a text that is equal for plans that measure the same cells with the same loads
// against the same baseline, however long they run. It returns "" for a mesh.
func planKey(p sample.Plan) string {
	if p.Mesh != nil {
		return ""
	}
	parts := []string{string(p.Study), p.Baseline, p.Elsewhere, fmt.Sprint(p.Also)}
	if p.Wire != nil {
		parts = append(parts, fmt.Sprintf("%+v", *p.Wire))
	}
	for _, l := range p.Loads {
		parts = append(parts, l.Point+" "+workload.Of(l).Words(l))
	}
	for _, l := range p.Levers {
		parts = append(parts, fmt.Sprintf("%+v", l))
	}
	for _, c := range p.Cells {
		if p.Study == sample.StudyAdvise && c.Tune != "" {
			continue // a search adds them while it runs
		}
		if text := fmt.Sprintf("%+v", c); !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	return hashed(parts...)
}

func hashed(parts ...string) string {
	sum := sha256.Sum256([]byte(fmt.Sprintf("%q", parts)))
	const bytes = 8
	return hex.EncodeToString(sum[:bytes])
}

// Alike returns the newest run of a list and the last one before it with the same plan. Without
// such a pair ok is false, and now is the newest run that can be read, or zero.
func Alike(l List) (old, now Entry, ok bool) { return alike(l.Runs) }

// NewestAlike returns the newest two runs of a list with the same plan, whatever came after them.
func NewestAlike(l List) (old, now Entry, ok bool) {
	for i := range l.Runs {
		if old, now, ok = alike(l.Runs[i:]); ok {
			return old, now, true
		}
	}
	return Entry{}, Entry{}, false
}

func alike(runs []Entry) (old, now Entry, ok bool) {
	for _, e := range runs {
		switch {
		case e.Error != "":
		case now.Number == 0:
			now = e
		case now.Plan != "" && e.Plan == now.Plan:
			return e, now, true
		}
	}
	return Entry{}, now, false
}

// CommandLine returns the command line that made a run, or the command and "…" if its arguments are
// not kept because they may contain secrets.
func (s Summary) CommandLine() string {
	if s.Command == nil {
		return "toll " + commandWord(s) + " …"
	}
	return sample.CommandLine(s.Command)
}

func commandWord(s Summary) string {
	port, isPort := strings.CutPrefix(s.Baseline, "port-")
	switch {
	case isPort && slices.Contains(s.Modes, "fast-"+port):
		return "fast on"
	case s.Study == sample.StudyEndpoints && slices.Contains(s.Loads, workload.SQL):
		return "sql"
	case s.Study == sample.StudyEndpoints && slices.Contains(s.Loads, workload.Exec):
		return "run"
	case s.Study == sample.StudyEndpoints:
		return "stream"
	case s.Plan == "":
		return "mesh"
	case slices.Contains(s.Loads, workload.Exec):
		return "run"
	case s.Study == sample.StudySweep:
		return string(sample.StudyCompare)
	}
	return string(s.Study)
}
