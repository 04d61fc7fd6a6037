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

// Display shows a model on a terminal. Its methods may be called from any goroutine.
type Display struct {
	terminal *Terminal
	program  *tea.Program
	still    atomic.Bool
	ended    chan struct{}
	model    live.Model // the last state; read only after ended
	err      error
	once     sync.Once // for Close
	resized  chan os.Signal
}

// Show starts to display the model that first returns for the terminal's size. It ends at Close, or
// when the user closes the screen.
func Show(t *Terminal, first func(columns, lines int) live.Model) *Display {
	columns, lines := t.size()
	d := &Display{terminal: t, ended: make(chan struct{}), resized: make(chan os.Signal, 1)}
	m := first(columns, lines)
	d.program = tea.NewProgram(shell{d, m}, tea.WithInput(t.keys), tea.WithOutput(t.out),
		tea.WithWindowSize(columns, lines),
		tea.WithoutRenderer(), tea.WithoutSignalHandler(), tea.WithFPS(1))
	signal.Notify(d.resized, syscall.SIGWINCH)
	_ = t.draw(m.Lines()) // an error will show again at the next drawing
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
			columns, lines := d.terminal.size()
			d.program.Send(tea.WindowSizeMsg{Width: columns, Height: lines})
		}
	}
}

// Still sets whether the screen is still. A still screen handles keys and changes of size, but
// draws only what is urgent until the next Send.
func (d *Display) Still(still bool) { d.still.Store(still) }

// Send passes a message to the model and returns when the result is drawn or the display has ended.
func (d *Display) Send(s live.State) {
	drawn := make(chan struct{})
	d.program.Send(told{s, drawn})
	select {
	case <-drawn:
	case <-d.ended:
	}
}

// Ended returns a channel that is closed when the display ends.
func (d *Display) Ended() <-chan struct{} { return d.ended }

// Outcome returns live.Undecided until the display has ended.
func (d *Display) Outcome() live.Outcome {
	select {
	case <-d.ended:
		return d.model.Outcome()
	default:
		return live.Undecided
	}
}

// Close ends the display and restores the terminal. It waits at most a second for the program. Only
// the first call has an effect.
func (d *Display) Close() error {
	var err error
	d.once.Do(func() {
		signal.Stop(d.resized)
		go d.program.Quit()
		const patience = time.Second // the terminal may have stopped reading
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

// told is a state whose sender waits until it is drawn.
type told struct {
	live.State
	drawn chan struct{}
}

type shell struct {
	d     *Display
	model live.Model
}

func (s shell) Init() tea.Cmd { return nil }

// View returns nothing, because Update draws.
func (s shell) View() tea.View { return tea.View{} }

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
		s.d.terminal.forget()
	case tea.KeyPressMsg:
	default:
		return s, nil
	}
	next, cmd := s.model.Update(inner)
	s.model = next.(live.Model)
	if forced || s.model.Urgent() || !s.d.still.Load() {
		if err := s.d.terminal.draw(s.model.Lines()); err != nil {
			return s, tea.Quit // the terminal is gone
		}
	}
	return s, cmd
}
