#!/bin/bash
# One would guess that an average lies between the fastest and the slowest of what was averaged.
#
# ghz averages all calls, while fastest, slowest, percentiles and histogram are those of the calls
# without an error: with 5 of 50 calls that end at a deadline of 1 s, the average is far above the
# slowest, and no percentile shows the calls that failed.
#
# ghz 0.121.0 (Go), 2026-11-29
set -euo pipefail
. "$(dirname "$0")/lib.sh"

cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/bojand/ghz/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	pb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var calls atomic.Int64
	server := grpc.NewServer(grpc.UnaryInterceptor(func(ctx context.Context, request any,
		_ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
		if calls.Add(1)%10 == 0 {
			<-ctx.Done()
		}
		return handle(ctx, request)
	}))
	pb.RegisterHealthServer(server, health.NewServer())
	reflection.Register(server)
	go server.Serve(listener)
	report, err := runner.Run("grpc.health.v1.Health.Check", listener.Addr().String(),
		runner.WithInsecure(true), runner.WithTotalRequests(50), runner.WithConcurrency(1),
		runner.WithTimeout(time.Second), runner.WithData(map[string]string{}))
	if err != nil {
		panic(err)
	}
	last := report.LatencyDistribution[len(report.LatencyDistribution)-1]
	fmt.Fprintln(os.Stderr, report.StatusCodeDist)
	fmt.Println(report.Average.Seconds(), report.Slowest.Seconds(), last.Latency.Seconds(),
		report.StatusCodeDist["DeadlineExceeded"])
}
END
go_get github.com/bojand/ghz/runner@v0.121.0
go run -mod=mod . >found
read -r average slowest p99 failed <found
echo "average $average s, slowest $slowest s, p99 $p99 s"
expect "calls that failed" 5 "$failed"
holds "average above 0.1 s" "$average > 0.1"
holds "slowest and p99 below it" "$slowest < $average && $p99 < $average"
