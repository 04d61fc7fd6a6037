package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/bridgetoll/bridgetoll/internal/machine/exchange"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
)

// Client talks to an API server, in one namespace.
type Client struct {
	Context   string // its name; "" inside a cluster
	Server    string // URL
	Namespace string

	config *rest.Config
	rest   *rest.RESTClient
	plugin string // the kubeconfig's credential plug-in; "": none
}

const answerLimit = 15 * time.Second

// scheme contains only the types that toll uses: with all of Kubernetes's types, the client would
// be four times as large.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := corev1.AddToScheme(s); err != nil {
		panic(err)
	}
	return s
}()

var parameters = runtime.NewParameterCodec(scheme)

// connect reads the kubeconfig, and runs its credential plug-in. It does not contact the server.
func connect(ctx context.Context, a cluster.Access) (*Client, error) {
	klog.SetLogger(logr.Discard()) // client-go also returns what it would log
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.Kubeconfig
	if all := listed(a.Kubeconfig); all != nil {
		rules.ExplicitPath, rules.Precedence = "", all
	}
	rules.WarnIfAllMissing = false
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		rules, &clientcmd.ConfigOverrides{CurrentContext: a.Context})
	config, err := loaded.ClientConfig()
	if err != nil {
		return nil, explainConfig(a, err)
	}
	c := &Client{Context: a.Context, Server: config.Host, Namespace: a.Namespace, config: config}
	if raw, err := loaded.RawConfig(); err == nil {
		c.Context = cmp.Or(c.Context, raw.CurrentContext)
	}
	if c.Namespace == "" {
		if c.Namespace, _, err = loaded.Namespace(); err != nil {
			return nil, explainConfig(a, err)
		}
	}
	config.UserAgent = "bridgetoll"
	config.QPS = -1 // no rate limit: toll makes few requests
	config.WarningHandler = rest.NoWarnings{}
	config.Wrap(limitAnswers)
	if err := c.boundPlugin(); err != nil {
		return nil, err
	}
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if c.rest, err = rest.RESTClientFor(config); err != nil {
		return nil, explainConfig(a, err)
	}
	return c, c.logIn(ctx)
}

// kubeconfigOf returns the kubeconfig's existing files as a list like that in $KUBECONFIG, which is
// valid in any directory and any environment. It returns "" if there are none.
func kubeconfigOf(a cluster.Access) string {
	files := []string{a.Kubeconfig}
	if a.Kubeconfig == "" {
		files = clientcmd.NewDefaultClientConfigLoadingRules().Precedence
	}
	var out []string
	for _, f := range files {
		if at, err := filepath.Abs(f); err == nil && !isMissing(at) {
			out = append(out, at)
		}
	}
	return strings.Join(out, string(filepath.ListSeparator))
}

// listed returns the files of a list, as a journal may have one, or nil for a single file.
func listed(kubeconfig string) []string {
	if all := filepath.SplitList(kubeconfig); len(all) > 1 && isMissing(kubeconfig) {
		return all
	}
	return nil
}

func (c *Client) asked(ctx context.Context) (context.Context, context.CancelFunc) {
	done := exchange.Waiting("the API server at " + c.Server)
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, errSlow)
	return ctx, func() { done(); cancel() }
}

var errSlow = fmt.Errorf("the API server did not answer within %s", answerLimit)

// version returns the API server's version, such as "v1.34.4".
func (c *Client) version(ctx context.Context) (string, error) {
	ctx, cancel := c.asked(ctx)
	defer cancel()
	text, err := c.rest.Get().AbsPath("/version").DoRaw(ctx)
	if err != nil {
		return "", c.explain(ctx, "", "", err)
	}
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(text, &v); err != nil || v.GitVersion == "" {
		return "", fmt.Errorf("%s is not a Kubernetes API server: it does not report its version",
			c.Server)
	}
	return v.GitVersion, nil
}

const (
	pods     = "pods"
	services = "services"
	nodes    = "nodes"
)

func (c *Client) create(ctx context.Context, kind string, object, into runtime.Object) error {
	ctx, cancel := c.asked(ctx)
	defer cancel()
	err := c.rest.Post().Namespace(c.Namespace).Resource(kind).Body(object).Do(ctx).Into(into)
	return c.explain(ctx, "create", kind, err)
}

func (c *Client) get(ctx context.Context, kind, name string, into runtime.Object) error {
	ctx, cancel := c.asked(ctx)
	defer cancel()
	err := c.rest.Get().NamespaceIfScoped(c.Namespace, kind != nodes).Resource(kind).Name(name).Do(
		ctx).Into(into)
	return c.explain(ctx, "get", kind, err)
}

func (c *Client) list(ctx context.Context, kind, selector string, into runtime.Object) error {
	ctx, cancel := c.asked(ctx)
	defer cancel()
	err := c.rest.Get().NamespaceIfScoped(c.Namespace, kind != nodes).Resource(kind).
		VersionedParams(&metav1.ListOptions{LabelSelector: selector}, parameters).Do(ctx).Into(into)
	return c.explain(ctx, "list", kind, err)
}

// remove removes an object. It returns nil if the object does not exist. A pod has a second to end.
func (c *Client) remove(ctx context.Context, kind, name string) error {
	ctx, cancel := c.asked(ctx)
	defer cancel()
	grace := int64(1)
	err := c.rest.Delete().Namespace(c.Namespace).Resource(kind).Name(name).
		Body(&metav1.DeleteOptions{GracePeriodSeconds: &grace}).Do(ctx).Error()
	if apierrors.IsNotFound(err) {
		return nil
	}
	return c.explain(ctx, "delete", kind, err)
}

// Object is an object that a run made.
type Object struct {
	Kind, Name string // pods or services
	Run        string
	Owner      string // mark of its toll
}

// made returns the namespace's objects with runLabel: those of one run or, if run is "", of all
// runs.
func (c *Client) made(ctx context.Context, run string) (out []Object, err error) {
	selector := runLabel
	if run != "" {
		selector += "=" + run
	}
	var p corev1.PodList
	if err := c.list(ctx, pods, selector, &p); err != nil {
		return nil, err
	}
	for _, o := range p.Items {
		out = append(out, Object{pods, o.Name, o.Labels[runLabel], o.Annotations[ownerAnnotation]})
	}
	var s corev1.ServiceList
	if err := c.list(ctx, services, selector, &s); err != nil {
		return out, err
	}
	for _, o := range s.Items {
		out = append(out, Object{services, o.Name, o.Labels[runLabel],
			o.Annotations[ownerAnnotation]})
	}
	return out, nil
}

// removeAll removes objects, and waits until they no longer exist or ctx ends.
func (c *Client) removeAll(ctx context.Context, all []Object) error {
	var errs []error
	for _, o := range all {
		if err := c.remove(ctx, o.Kind, o.Name); err != nil {
			errs = append(errs, fmt.Errorf("remove %s %s: %w", o.one(), o.Name, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, o := range all {
		if err := c.gone(ctx, o); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (o Object) one() string { return o.Kind[:len(o.Kind)-1] }

func (c *Client) gone(ctx context.Context, o Object) error {
	const again = 200 * time.Millisecond
	for {
		var err error
		if o.Kind == pods {
			err = c.get(ctx, pods, o.Name, &corev1.Pod{})
		} else {
			err = c.get(ctx, services, o.Name, &corev1.Service{})
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s %s is still there: its node may be down: %w", o.one(), o.Name,
				cmp.Or(err, context.Cause(ctx)))
		case <-time.After(again):
		}
	}
}

// maxAnswer limits the size of an answer, in bytes. A node's object has about 10 kB, and clusters
// have thousands of nodes.
const maxAnswer = 256 << 20

// limited limits the size of answers: client-go reads them into memory without a limit.
type limited struct {
	http.RoundTripper
	most int64
}

func limitAnswers(next http.RoundTripper) http.RoundTripper { return &limited{next, maxAnswer} }

// RoundTrip sends the request. It limits the size of the answer, unless the answer is a stream.
func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.RoundTripper.RoundTrip(r)
	if err == nil && answer.Body != nil && answer.StatusCode != http.StatusSwitchingProtocols {
		answer.Body = &bounded{answer.Body, l.most}
	}
	return answer, err
}

type bounded struct {
	io.ReadCloser
	left int64
}

var errTooLong = errors.New("the answer is too long")

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, errTooLong
	}
	return n, err
}
