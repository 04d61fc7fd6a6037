package live

import (
	"testing"

	tea "charm.land/bubbletea/v2"

	"github.com/bridgetoll/bridgetoll/internal/judge"
)

func FuzzKeys(f *testing.F) {
	for _, seed := range []string{"", "jj\rk\x1b", "?w?q", "sssssrG g", "\x80j\x81k\x82G\r\x83",
		"qsx", "qp", "12345rrw\r", "\xff\xfe\xfd"} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	reports := []judge.Report{judge.Judge(file(f, 0)), judge.Judge(file(f, 3)),
		judge.Judge(file(f, 7))}
	special := []string{"up", "down", "enter", "esc", "end", "home", "pgdown", "pgup", "space",
		"left", "right", "tab"}
	f.Fuzz(func(t *testing.T, keys []byte, running bool) {
		if len(keys) > 200 {
			return
		}
		m := New("toll", running, len(keys)%2 == 0, 80, 24)
		for i, k := range keys {
			var msg tea.Msg
			switch {
			case k < 0x80 && k >= ' ':
				msg = keyOf(string(rune(k)))
			case k < ' ':
				msg = keyOf(special[int(k)%len(special)])
			case k < 0xc0:
				s := State{Report: reports[int(k)%len(reports)]}
				if running {
					s.Step = &Progress{Next: "next", Elapsed: float64(k), Total: float64(i) - 3}
				}
				msg = s
			default:
				msg = tea.WindowSizeMsg{Width: int(k&7) * 17, Height: int(k>>3&7) * 5}
			}
			next, cmd := m.Update(msg)
			m = next.(Model)
			checkLines(t, m, m.Lines())
			if (cmd != nil) != (m.Outcome() != Undecided) {
				t.Fatalf("quits %t, outcome %v", cmd != nil, m.Outcome())
			}
			if m.Outcome() != Undecided {
				return
			}
		}
	})
}
