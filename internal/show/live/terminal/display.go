package terminal

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/bridgetoll/bridgetoll/internal/show/live"
)

// Display shows a model on a terminal.
type Display struct {
	terminal *Terminal
	program  *tea.Program
	still    atomic.Bool
	ended    chan struct{} // the program's end
	model    live.Model    // as it was then
	err      error
	once     sync.Once // of Close
	resized  chan os.Signal
}

// Show shows what a screen of so many columns and lines begins with, until it is closed or
// the user closes it.
func Show(t *Terminal, first func(columns, lines int) live.Model) *Display {
	columns, lines := t.Size()
	d := &Display{terminal: t, ended: make(chan struct{}), resized: make(chan os.Signal, 1)}
	m := first(columns, lines)
	d.program = tea.NewProgram(shell{d, m}, tea.WithInput(t.keys), tea.WithOutput(t.out), tea.WithWindowSize(columns, lines),
		tea.WithoutRenderer(), tea.WithoutSignalHandler(), tea.WithFPS(1))
	signal.Notify(d.resized, syscall.SIGWINCH)
	_ = t.Draw(m.Lines()) // what keeps it from drawing shows when it draws again
	go func() {
		defer close(d.ended)
		end, err := d.program.Run()
		if s, is := end.(shell); is {
			d.model = s.model
		}
		d.err = err
	}()
	go d.resize()
	return d
}

func (d *Display) resize() {
	for {
		select {
		case <-d.ended:
			return
		case <-d.resized:
			columns, lines := d.terminal.Size()
			d.program.Send(tea.WindowSizeMsg{Width: columns, Height: lines})
		}
	}
}

// Still says whether the screen stands still: keys and sizes are taken, but nothing is drawn
// until the next Send, except what is urgent.
func (d *Display) Still(still bool) { d.still.Store(still) }

// Send gives the model a message, and returns when that is drawn.
func (d *Display) Send(s live.State) {
	drawn := make(chan struct{})
	d.program.Send(told{s, drawn})
	select {
	case <-drawn:
	case <-d.ended:
	}
}

// Ended is closed when the user has closed the screen.
func (d *Display) Ended() <-chan struct{} { return d.ended }

// Outcome is what the user decided, once it has ended.
func (d *Display) Outcome() live.Outcome {
	select {
	case <-d.ended:
		return d.model.Outcome()
	default:
		return live.Undecided
	}
}

// Close gives the terminal back as it was.
func (d *Display) Close() error {
	var err error
	d.once.Do(func() {
		signal.Stop(d.resized)
		go d.program.Quit()
		const patience = time.Second // of a terminal that takes nothing any more
		select {
		case <-d.ended:
			err = d.err
		case <-time.After(patience):
		}
		err = errors.Join(err, d.terminal.Close())
	})
	if err != nil {
		return fmt.Errorf("show on the terminal: %w", err)
	}
	return nil
}

// told is a message whose sender waits until it is drawn.
type told struct {
	live.State
	drawn chan struct{}
}

// shell is the model with the terminal that it is drawn on.
type shell struct {
	d     *Display
	model live.Model
}

func (s shell) Init() tea.Cmd { return nil }

// View is nothing: Update draws.
func (s shell) View() tea.View { return tea.View{} }

// Update passes a message on, and draws what came of it.
func (s shell) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	inner, forced := msg, s.model.Urgent()
	switch m := msg.(type) {
	case told:
		inner, forced = m.State, true
		defer close(m.drawn)
	case tea.WindowSizeMsg:
		if m.Width <= 0 || m.Height <= 0 {
			return s, nil
		}
		s.d.terminal.Forget()
	case tea.KeyPressMsg:
	default:
		return s, nil
	}
	next, cmd := s.model.Update(inner)
	s.model = next.(live.Model)
	if forced || s.model.Urgent() || !s.d.still.Load() {
		if err := s.d.terminal.Draw(s.model.Lines()); err != nil {
			return s, tea.Quit // the terminal has gone
		}
	}
	return s, cmd
}
