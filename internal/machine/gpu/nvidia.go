package gpu

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/machine/meter"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
)

const (
	smi = "nvidia-smi"
	// smiInterval is the time between its readings.
	smiInterval = 100 * time.Millisecond
	// average is the longest time over which NVIDIA's GPUs average their utilization.
	average = time.Second
	// smiPatience is for a driver that initializes the GPU for each caller.
	smiPatience = 10 * time.Second
)

// nvidia reads what nvidia-smi prints, line by line.
type nvidia struct {
	gpus []string // UUIDs of those that the server uses

	cancel context.CancelFunc
	ended  chan struct{}

	mu    sync.Mutex
	since time.Time // the visit's begin
	read  []utilization
}

// utilization is the share of the time up to a reading in which a GPU worked.
type utilization struct {
	at    time.Time
	gpu   string
	share float64
}

func (u utilization) span() Span { return Span{u.at.Add(-average), u.at} }

// openNVIDIA returns nil if nvidia-smi is not there, or does not name one of the processes.
func openNVIDIA(ctx context.Context, pid int, patience time.Duration) *nvidia {
	if _, err := exec.LookPath(smi); err != nil {
		return nil
	}
	cmd := exec.Command(smi, "--query-compute-apps=pid,gpu_uuid", "--format=csv,noheader,nounits")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := exchange.Output(ctx, cmd, exchange.Limits{Time: patience})
	if err != nil {
		return nil
	}
	n := &nvidia{gpus: gpusOf(string(out), pid)}
	if len(n.gpus) == 0 {
		return nil
	}
	n.start()
	return n
}

// gpusOf returns the GPUs that a process or a descendant uses, from lines of PID and UUID.
func gpusOf(lines string, pid int) (out []string) {
	family := meter.Family("/proc", pid)
	for line := range strings.Lines(lines) {
		number, uuid, _ := strings.Cut(line, ",")
		uuid = strings.TrimSpace(uuid)
		pid, err := strconv.Atoi(strings.TrimSpace(number))
		if err == nil && family[pid] != nil && uuid != "" && !slices.Contains(out, uuid) {
			out = append(out, uuid)
		}
	}
	return out
}

func (n *nvidia) start() {
	var ctx context.Context
	ctx, n.cancel = context.WithCancel(context.Background())
	n.ended = make(chan struct{})
	cmd := exec.CommandContext(ctx, smi, "--query-gpu=timestamp,uuid,utilization.gpu",
		"--format=csv,noheader,nounits",
		"-lms", strconv.FormatInt(smiInterval.Milliseconds(), 10))
	cmd.Env = append(os.Environ(), "TZ=UTC") // its timestamps have no zone
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	go func() {
		defer close(n.ended)
		runtime.LockOSThread() // Pdeathsig is tied to the thread
		out, err := cmd.StdoutPipe()
		if err != nil || cmd.Start() != nil {
			return
		}
		for lines := bufio.NewScanner(out); lines.Scan(); {
			n.note(lines.Text())
		}
		n.cancel() // what prints endless lines has ended for us, too
		_ = cmd.Wait()
	}()
}

func (n *nvidia) note(line string) {
	f := strings.Split(line, ",")
	const fields = 3
	if len(f) != fields {
		return
	}
	at, err := time.Parse("2006/01/02 15:04:05.000", strings.TrimSpace(f[0]))
	percent, bad := strconv.ParseFloat(strings.TrimSpace(f[2]), 64)
	uuid := strings.TrimSpace(f[1])
	const most = 100
	if err != nil || bad != nil || !(percent >= 0 && percent <= most) ||
		!slices.Contains(n.gpus, uuid) {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.since.IsZero() {
		n.read = append(n.read, utilization{at, uuid, percent / most})
	}
}

func (n *nvidia) begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.since, n.read = time.Now(), nil
}

func (n *nvidia) end(whole, slow []Span) *sample.GPU {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.since = time.Time{}
	var best *sample.GPU
	for _, uuid := range n.gpus {
		g := &sample.GPU{By: sample.GPUByNvidiaSMI, Device: uuid, Over: average.Seconds()}
		for _, gap := range longer(slow, average) {
			if share, ok := n.mean(uuid, gap.holds); ok {
				g.Slow.Add(sample.GPUTime{Gaps: 1, Time: gap.seconds(),
					Busy: share * gap.seconds()})
			}
		}
		for _, w := range whole {
			share, ok := n.mean(uuid, func(s Span) bool {
				return w.holds(s) && !slices.ContainsFunc(slow, s.overlaps)
			})
			if ok {
				rest := w.seconds() - within(w, slow)
				g.Rest.Add(sample.GPUTime{Time: rest, Busy: share * rest})
			}
		}
		if g.Work() > 0 && (best == nil || g.Work() > best.Work()) {
			best = g
		}
	}
	return best
}

// within returns the sum of those of the spans that a span holds, in seconds.
func within(whole Span, spans []Span) (sum float64) {
	for _, s := range spans {
		if whole.holds(s) {
			sum += s.seconds()
		}
	}
	return sum
}

// mean returns the mean share of a GPU's readings over suitable times, or false without any.
func (n *nvidia) mean(uuid string, suits func(Span) bool) (share float64, ok bool) {
	k := 0.0
	for _, u := range n.read {
		if u.gpu == uuid && suits(u.span()) {
			share, k = share+u.share, k+1
		}
	}
	return share / max(1, k), k > 0
}

// close ends the program. It does not wait for one that the kernel does not let go.
func (n *nvidia) close() {
	n.cancel()
	select {
	case <-n.ended:
	case <-time.After(time.Second):
	}
}
