package lab

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/path"
	"github.com/bridgetoll/bridgetoll/internal/record/mode"
)

func specs(b *testing.B, l *Lab) []path.Spec {
	b.Helper()
	var out []path.Spec
	for _, m := range mode.OfLab() {
		for _, r := range m.Routes {
			s := path.Spec{Mode: m.Name, From: r.From, To: r.To}
			switch err := l.Check(context.Background(), s); {
			case err == nil:
				out = append(out, s)
			case !errors.Is(err, machine.ErrUnsupported):
				b.Fatal(err)
			}
		}
	}
	return out
}

// A path should take less than 2 s on average.
func BenchmarkAllPaths(b *testing.B) {
	l := &Lab{}
	defer l.Close()
	if !l.MayBuild() {
		b.Skip("network namespaces need root here")
	}
	list := specs(b, l)
	paths := make([]*path.Path, len(list))
	each := func(f func(i int) error) {
		var wg sync.WaitGroup
		errs := make([]error, len(list))
		for i := range list {
			wg.Go(func() { errs[i] = f(i) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil {
			b.Fatal(err)
		}
	}
	build := func() {
		each(func(i int) (err error) {
			paths[i], err = l.Build(context.Background(), list[i])
			return err
		})
	}
	tearDown := func() { each(func(i int) error { return paths[i].Close() }) }
	b.Run("build", func(b *testing.B) {
		for b.Loop() {
			build()
			b.StopTimer()
			tearDown()
			b.StartTimer()
		}
		b.ReportMetric(float64(len(list)), "paths")
	})
	b.Run("close", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			build()
			b.StartTimer()
			tearDown()
		}
		b.ReportMetric(float64(len(list)), "paths")
	})
}

func BenchmarkInspect(b *testing.B) {
	l := &Lab{}
	defer l.Close()
	if !l.MayBuild() {
		b.Skip("network namespaces need root here")
	}
	p, err := l.Build(context.Background(),
		path.Spec{Mode: mode.PublishNAT, From: mode.FromRemote, To: mode.ToAddress})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	for b.Loop() {
		if _, err := p.Inspect(); err != nil {
			b.Fatal(err)
		}
	}
}
