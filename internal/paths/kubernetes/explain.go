package kubernetes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"syscall"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/bridgetoll/bridgetoll/internal/machine"
	"github.com/bridgetoll/bridgetoll/internal/paths/cluster"
	"github.com/bridgetoll/bridgetoll/internal/paths/path/local"
	"github.com/bridgetoll/bridgetoll/internal/text/printable"
)

const maxSaid = 600

// said makes a server's message printable and limits its length.
func said(text string) string {
	return printable.Words(printable.Limit(strings.TrimSpace(text), maxSaid))
}

func explainConfig(a cluster.Access, err error) error {
	words := said(err.Error())
	switch {
	case a.Kubeconfig != "" && isMissing(a.Kubeconfig) && listed(a.Kubeconfig) == nil:
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"there is no kubeconfig %s", said(a.Kubeconfig)),
			Remedy: "--kubeconfig with a file that kubectl uses, or leave it out"}
	case clientcmd.IsEmptyConfig(err):
		return &machine.UnsupportedError{
			Missing: "no cluster is configured: there is no kubeconfig, or nothing in it",
			Remedy:  "--kubeconfig FILE or $KUBECONFIG; kubectl config view shows what kubectl uses; --on lab needs no cluster"}
	case a.Context != "" && (clientcmd.IsContextNotFound(err) ||
		strings.Contains(words, "does not exist")):
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the kubeconfig has no context %q", said(a.Context)),
			Remedy: "kubectl config get-contexts lists them"}
	}
	return &machine.UnsupportedError{Missing: "the kubeconfig selects no cluster: " + words,
		Remedy: "kubectl config view; --context with another one"}
}

func isMissing(file string) bool {
	_, err := os.Stat(file)
	return errors.Is(err, os.ErrNotExist)
}

// rights matches what policies of clusters (GKE Autopilot, OpenShift, Kyverno, Gatekeeper) say of
// the pods that read nodes' counters.
var rights = regexp.MustCompile(`hostNetwork|NET_ADMIN`)

var cannot = regexp.MustCompile(`cannot (\w+) resource "([^"]+)"`)

// explain returns an error that explains err to the user. Errors that callers check, such as a
// missing object, stay in the chain.
func (c *Client) explain(ctx context.Context, verb, kind string, err error) error {
	if err == nil {
		return nil
	}
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return c.refused(verb, kind, status, err)
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, errSlow) {
		return cause
	}
	remedy := "kubectl cluster-info; is the cluster up and reachable from here (VPN, proxy)? --context chooses another one"
	var (
		dns  *net.DNSError
		exec *url.Error
	)
	inner := err
	if errors.As(err, &exec) {
		inner = exec.Err
	}
	u := &machine.UnsupportedError{Missing: fmt.Sprintf(
		"the API server at %s cannot be reached", said(c.Server)), Remedy: remedy,
		Err: errors.New(said(inner.Error()))}
	words := inner.Error()
	switch {
	case errors.As(err, &dns):
		u.Missing = fmt.Sprintf("the name of the API server in %s does not resolve here", said(c.Server))
	case distrusts(inner):
		u.Missing = fmt.Sprintf("the certificate of the API server at %s is not trusted", said(c.Server))
		u.Remedy = "the cluster's certificate-authority in the kubeconfig; kubectl cluster-info must work"
	case strings.Contains(words, "getting credentials"):
		u.Missing = "the kubeconfig's credential plug-in fails"
		if c.plugin != "" {
			u.Missing = fmt.Sprintf("the kubeconfig's credential plug-in %s fails", said(c.plugin))
			u.Err = errors.New(said(strings.ReplaceAll(words, local.Self, c.plugin)))
		}
		u.Remedy = "log in again as your cluster's provider says; kubectl get nodes must work"
	case strings.Contains(words, "serializer for") ||
		strings.Contains(words, "couldn't get version/kind") || errors.Is(err, errTooLong):
		u.Missing = fmt.Sprintf("what answers at %s is not a Kubernetes API server", said(c.Server))
		u.Remedy = "kubectl cluster-info; a proxy may have answered instead: HTTPS_PROXY, NO_PROXY"
		if errors.Is(err, errTooLong) {
			u.Err = errTooLong // client-go advises to retry
		}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		u.Missing = fmt.Sprintf("the API server at %s does not answer", said(c.Server))
	}
	return u
}

// distrusts reports whether err is about TLS, such as an untrusted certificate. Some of these
// errors are only text.
func distrusts(err error) bool {
	var (
		verify *tls.CertificateVerificationError
		record tls.RecordHeaderError
		alert  tls.AlertError
	)
	return errors.As(err, &verify) || errors.As(err, &record) || errors.As(err, &alert) ||
		strings.Contains(err.Error(), "x509:") || strings.Contains(err.Error(), "tls:")
}

func (c *Client) refused(verb, kind string, status apierrors.APIStatus, err error) error {
	words := said(status.Status().Message)
	switch details := status.Status().Details; {
	case apierrors.IsNotFound(err) && details != nil && details.Kind == "namespaces" &&
		details.Name == c.Namespace:
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the cluster has no namespace %s", c.Namespace),
			Remedy: "--namespace with an existing one: kubectl get namespaces", Err: err}
	case apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err):
		return err
	case apierrors.IsUnauthorized(err):
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the API server at %s does not accept your credentials (401): they are wrong, or have expired", said(c.Server)),
			Remedy: "log in again; kubectl auth whoami must answer", Err: err}
	case apierrors.IsForbidden(err) && strings.Contains(words, "violates PodSecurity"):
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the namespace %s forbids the pod (Pod Security): %s", c.Namespace, words),
			Remedy: fmt.Sprintf(
				"--unprivileged, with which toll reads only the pods' own counters; or permit it: kubectl label namespace %s pod-security.kubernetes.io/enforce=privileged", c.Namespace),
			Lack: machine.LackPodSecurity}
	case apierrors.IsForbidden(err) && strings.Contains(words, "exceeded quota"):
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the namespace %s has no quota left: %s", c.Namespace, words),
			Remedy: "--namespace with another one; kubectl describe quota"}
	case apierrors.IsForbidden(err) && cannot.MatchString(words):
		m := cannot.FindStringSubmatch(words)
		where := " in namespace " + c.Namespace
		if kind == nodes {
			where = ""
		}
		return &machine.UnsupportedError{Missing: fmt.Sprintf(
			"you may not %s %s%s (403): %s", m[1], m[2], where, words), Lack: machine.LackPermission,
			Remedy: "toll kubernetes manifest prints a role with the permissions that toll needs"}
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		status.Status().Code == 422:
		u := &machine.UnsupportedError{Missing: fmt.Sprintf(
			"the cluster refuses to %s %s: %s", verb, kind, words),
			Remedy: "this is a policy of the cluster (admission webhook, quota, limits): --namespace with another one, or ask the administrator"}
		if kind == pods && rights.MatchString(words) {
			u.Remedy = "--unprivileged, with which toll reads only the pods' own counters; " + u.Remedy
			u.Lack = machine.LackPodSecurity
		}
		return u
	}
	return fmt.Errorf("%s %s: %s", verb, kind, words)
}

// errCut means that the connection broke, so toll does not know whether the command has ended.
var errCut = errors.New("the connection was cut")

func broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return errCut
	}
	return fmt.Errorf("%w (%s)", errCut, said(err.Error()))
}
