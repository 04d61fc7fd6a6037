package worker

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bridgetoll/bridgetoll/internal/machine/clock"
	"github.com/bridgetoll/bridgetoll/internal/measure/load"
	"github.com/bridgetoll/bridgetoll/internal/record/sample"
	"github.com/bridgetoll/bridgetoll/internal/testing/testgolden"
	"github.com/bridgetoll/bridgetoll/internal/testing/testnet"
	"github.com/bridgetoll/bridgetoll/internal/testing/testwait"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Arg {
		if err := Main(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type process struct {
	*Control
	cmd *exec.Cmd
}

func start(t *testing.T) *process {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", Arg)
	cmd.Env = append(os.Environ(), Env()...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	err = cmd.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return &process{NewControl(in, out), cmd}
}

func TestWorkersMoveALoad(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	addr := testnet.TCP(t)
	server, client := start(t), start(t)
	l := sample.Load{Kind: "rr", Options: sample.RROptions{
		Messages: sample.Messages{Request: 10, Reply: 20}}}
	if err := server.Open(ctx, Request{Role: Server, Load: l, Addr: addr}); err != nil {
		t.Fatal(err)
	}
	err := client.Open(ctx, Request{Role: Client, Load: l, Addr: addr, CPUs: []int{0}})
	if err != nil {
		t.Fatal(err)
	}
	begin := clock.Now()
	when := load.Schedule{Start: begin, From: begin + 1e7, To: begin + 6e7}
	if err := errors.Join(server.Go(when), client.Go(when)); err != nil {
		t.Fatal(err)
	}
	fromClient, err := client.Done(ctx)
	if err != nil {
		t.Fatal(err)
	}
	fromServer, err := server.Done(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c, s, latency := fromClient.Done, fromServer.Done, fromClient.Latency
	if c.Trips == 0 || c.TotalSent != s.TotalRecv || c.TotalRecv != s.TotalSent || c.RSS == 0 ||
		len(c.CPUs) != 1 {
		t.Errorf("client %+v\nserver %+v", c, s)
	}
	for _, tcp := range []sample.TCPInfo{c.TCP, s.TCP} {
		const headers, largest = 20 + 20 + 12, 65535
		if tcp.Device != "lo" || tcp.DeviceMTU <= largest || tcp.PMTU != largest ||
			tcp.Headers != headers && tcp.Headers != headers-12 || tcp.Packet <= tcp.Headers {
			t.Errorf("the kernel's view of the path is %+v", tcp)
		}
	}
	if latency == nil {
		t.Fatal("no latencies")
	}
	if h, err := latency.Decode(); err != nil || h.TotalCount() == 0 {
		t.Errorf("latencies: %v", err)
	}
	for _, p := range []*process{server, client} {
		if err := errors.Join(p.Close(), p.cmd.Wait()); err != nil {
			t.Error(err)
		}
	}
}

func TestWorkerSaysWhatIsWrong(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	taken, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	addr := taken.Addr().(*net.TCPAddr).AddrPort()
	for _, c := range []struct {
		name    string
		request Request
		want    string
	}{
		{"port-taken", Request{Role: Server, Load: sample.Load{Kind: "bulk"}, Addr: addr},
			"listen on 127.0.0.1:PORT: address already in use"},
		{"unknown-load", Request{Role: Server, Load: sample.Load{Kind: "ftp"}, Addr: addr},
			`unknown load "ftp"`},
		{"unknown-role", Request{Role: "referee", Load: sample.Load{Kind: "rr"}},
			`unknown role "referee"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := start(t).Open(ctx, c.request); err == nil ||
				testgolden.Stable(err.Error()) != c.want {
				t.Errorf("Open = %v, want %q", err, c.want)
			}
		})
	}
}

func TestWorkerDiesWithItsInputInMidLoad(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	silent, err := net.Listen("tcp4", "127.0.0.1:0") // accepts in the kernel, never reads
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	p := start(t)
	err = p.Open(ctx, Request{Role: Client, Load: sample.Load{Kind: "bulk"},
		Addr: silent.Addr().(*net.TCPAddr).AddrPort()})
	if err != nil {
		t.Fatal(err)
	}
	now := clock.Now()
	if err := p.Go(load.Schedule{Start: now, From: now + 1e9, To: now + 1e11}); err != nil {
		t.Fatal(err)
	}
	testwait.InCall(t, 20*time.Second, p.cmd.Process.Pid, unix.SYS_SENDTO, unix.SYS_WRITE)
	if err := errors.Join(p.Close(), p.cmd.Wait()); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestControlOfADeadOrMadWorker(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name, says string
		want       error
	}{
		{"dead", "", ErrDied},
		{"dead-in-mid-word", `{"rea`, ErrDied},
		{"mad", "hello\n", nil},
		{"error", `{"error": "no luck"}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			go func() {
				var o Request
				_ = json.NewDecoder(inR).Decode(&o)
				_, _ = io.WriteString(outW, c.says)
				outW.Close()
			}()
			s := NewControl(inW, outR)
			err := s.Open(ctx, Request{Role: Client})
			if err == nil || c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("Open = %v", err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
