package docker

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/bridgetoll/bridgetoll/internal/kernel/link"
	"github.com/bridgetoll/bridgetoll/internal/kernel/netns"
	"github.com/bridgetoll/bridgetoll/internal/paths/dockerapi"
)

// Leftovers returns the part of toll clean that removes what ended tolls left on the machine
// outside of Docker: settings, rules, switches, routes and devices.
func Leftovers() dockerapi.Part { return dockerapi.Part{Machine: cleanMachine} }

// cleanMachine returns what it removed. still has the files of journals that list things which
// could not be removed.
func cleanMachine(orphans []dockerapi.Orphan, dead func(mark string) bool) (removed []string,
	still map[string]bool, err error) {
	ns, err := netns.Here()
	if err != nil {
		if slices.ContainsFunc(orphans, func(j dockerapi.Orphan) bool {
			return slices.ContainsFunc(j.Made, dockerapi.Entry.OfMachine)
		}) {
			return nil, stillOf(orphans, dockerapi.Entry.OfMachine), err
		}
		return nil, nil, nil
	}
	defer ns.Close()
	c := machineCleaner{ns: ns, dead: dead, still: map[string]bool{}}
	for _, j := range orphans {
		if slices.ContainsFunc(j.Made, inNamespace) {
			elsewhere, err := j.Elsewhere()
			if elsewhere {
				err = fmt.Errorf(
					"journal %q lists devices in another network namespace: run toll clean there",
					j.File)
			}
			if err != nil {
				c.still[j.File] = true
				c.errs = append(c.errs, err)
				continue
			}
		}
		c.here = append(c.here, j)
	}
	c.settings()
	c.rules()
	c.switches()
	c.routes()
	c.links()
	return c.removed, c.still, errors.Join(c.errs...)
}

func inNamespace(e dockerapi.Entry) bool {
	return slices.Contains([]dockerapi.Kind{dockerapi.Link, dockerapi.Rule, dockerapi.Route,
		dockerapi.Setting}, e.Kind)
}

func stillOf(orphans []dockerapi.Orphan, of func(dockerapi.Entry) bool) map[string]bool {
	still := map[string]bool{}
	for _, j := range orphans {
		if slices.ContainsFunc(j.Made, of) {
			still[j.File] = true
		}
	}
	return still
}

type machineCleaner struct {
	ns      *netns.NS
	dead    func(mark string) bool
	here    []dockerapi.Orphan
	removed []string
	still   map[string]bool
	errs    []error
}

func (c *machineCleaner) names(kind dockerapi.Kind) (out []string) {
	for _, j := range c.here {
		for _, e := range j.Made {
			if e.Kind == kind {
				out = append(out, e.Name)
			}
		}
	}
	return out
}

// failed records an error about things of one kind, if a journal lists any. Otherwise the error
// does not matter: a user may lack permission to list such things.
func (c *machineCleaner) failed(kind dockerapi.Kind, err error) {
	of := func(e dockerapi.Entry) bool { return e.Kind == kind }
	stay := stillOf(c.here, of)
	if len(stay) == 0 {
		return
	}
	for file := range stay {
		c.still[file] = true
	}
	c.errs = append(c.errs, err)
}

func (c *machineCleaner) rules() {
	ran := 0
	var last error
	for _, p := range savers {
		rules, err := save(p, "") // listing a single table would create it
		if err != nil {
			last = err
			continue
		}
		ran++
		if !slices.ContainsFunc(rules, func(r rule) bool { return c.dead(r.mark()) }) {
			continue
		}
		n, err := removeRules(c.ns, p, func(r rule) bool { return c.dead(r.mark()) })
		for range n {
			c.removed = append(c.removed, string(dockerapi.Rule)+" of "+userChain)
		}
		if err != nil {
			c.errs = append(c.errs, err)
			c.failed(dockerapi.Rule, nil)
		}
	}
	if ran == 0 {
		c.failed(dockerapi.Rule, last)
	}
}

func (c *machineCleaner) switches() {
	left, err := leftSwitches(c.dead)
	if err != nil {
		c.failed(dockerapi.Switch, err)
		return
	}
	for _, name := range left {
		if err := removeSwitch(name); err != nil {
			c.errs = append(c.errs, err)
			c.failed(dockerapi.Switch, nil)
			continue
		}
		c.removed = append(c.removed, "bridge "+name+" of Open vSwitch")
	}
}

func (c *machineCleaner) settings() {
	var all []dockerapi.Entry
	for _, j := range c.here {
		made, err := j.Settings()
		if err != nil {
			c.failed(dockerapi.Setting, err)
		}
		all = append(all, made...)
	}
	for _, m := range restoring(all) {
		was, err := restoreSetting(c.ns, m.Name)
		if err != nil {
			c.failed(dockerapi.Setting, err)
		}
		if was {
			c.removed = append(c.removed, string(dockerapi.Setting)+" of "+m.Name)
		}
	}
}

func (c *machineCleaner) routes() {
	for _, name := range c.names(dockerapi.Route) {
		l, ok := dockerapi.ParseRoute(name)
		if !ok {
			continue
		}
		var was bool
		if err := c.ns.Do(func() (err error) {
			was, err = l.Lift()
			return err
		}); err != nil {
			c.failed(dockerapi.Route, err)
		}
		if was {
			c.removed = append(c.removed, string(dockerapi.Route)+" "+name)
		}
	}
}

// links removes devices, after the switches that use them. A device in a journal may be unmarked.
func (c *machineCleaner) links() {
	var aliases map[string]string
	var all []string
	err := c.ns.Do(func() (err error) {
		if aliases, err = link.Aliases(); err == nil {
			all, err = link.Names()
		}
		return err
	})
	if err != nil {
		c.failed(dockerapi.Link, err)
		return
	}
	named := c.names(dockerapi.Link)
	for _, name := range all {
		mark := markOf(aliases[name])
		unmarked := mark == "" && slices.Contains(named, name) && ownName.MatchString(name)
		if !isOurName(name) || !c.dead(mark) && !unmarked {
			continue
		}
		if err := c.ns.Do(func() error { return link.Remove(name) }); err != nil {
			c.errs = append(c.errs, err)
			c.failed(dockerapi.Link, nil)
			continue
		}
		c.removed = append(c.removed, string(dockerapi.Link)+" "+name)
	}
}

// ownName matches the devices that are removed without a mark if a journal lists them.
var ownName = regexp.MustCompile(`^` + deviceName + `[0-9a-f]{8}$`)

func isOurName(name string) bool { return strings.HasPrefix(name, deviceName) }
